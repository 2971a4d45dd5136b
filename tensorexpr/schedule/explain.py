"""Why a schedule is legal as it is, in words: one fact a line, by stage and loop."""

from __future__ import annotations

from collections.abc import Iterator

from ..arith.analyzer import Analyzer
from ..te.operation import ComputeOp, loads
from ..te.scan_op import ScanOp
from ..tir.arithmetic import is_const_int
from ..tir.expr import IntImm, ProducerLoad, Reduce
from ..tir.rewriting import walk
from .attachment import enclosing_loops
from .balanced import BalancedTiles
from .domain import StageDomain, covered, full_region, stage_domain
from .legality import check_tree, real_readers
from .memory_words import memory_facts
from .thread_words import block_facts, thread_facts
from .tree import At, FuseRelation, Inline, LoopKind, ScheduleTree, SplitRelation, StageNode, leaves_of


def explain(tree: ScheduleTree) -> str:
    """A text with one fact a line: where each stage is computed and whom that serves, why each loop may run as it does,
    and which splits need a guard.

    Extents are those of the whole stage; of a stage at a loop the part that one visit computes is found when the schedule
    is lowered, and may need guards at its borders.

    Raises:
        ScheduleError: if the schedule as a whole is illegal, with what to change.
    """
    check_tree(tree)
    readers = real_readers(tree)
    lines: list[str] = []
    for stage in tree.in_order():
        if stage.is_placeholder:
            layouts = stage.layouts if stage.source is not None else ()
            lines.extend(f"{stage.name}: passed by the caller, with {layout}" for layout in layouts)
            continue
        lines.append(f"{stage.name}: {_placement(tree, stage, readers[stage.id])}")
        if isinstance(stage.attach, Inline):
            continue
        if not stage.has_loops:
            lines.append("  loops: those of its statement, as written; it reads its inputs and writes its outputs as a whole")
            continue
        analyzer = Analyzer()
        domain = stage_domain(stage, full_region(stage), analyzer)
        said = (*_storage(tree, stage), *memory_facts(tree, stage), *_skipped(stage), *_unknown_indices(stage))
        threads = () if isinstance(stage.attach, At) else block_facts(domain)
        lines.extend(f"  {fact}" for fact in (*said, *threads, *_loops(domain), *_splits(domain, analyzer)))
    return "\n".join(lines)


def _placement(tree: ScheduleTree, stage: StageNode, readers: tuple[StageNode, ...]) -> str:
    names = _joined([reader.name for reader in readers])
    if isinstance(stage.attach, Inline):
        return f"inlined; {names} computes its expression at each read, which needs no storage as it is no reduction"
    if isinstance(stage.attach, At):
        target = tree[stage.attach.stage]
        loop = target.axes[stage.attach.axis].name
        covered = _joined([r.name if r.id == target.id else f"{r.name}, which is computed inside that loop," for r in readers])
        return f"computed at {loop} of {target.name}; each visit covers the reads of all its readers: {covered.rstrip(',')}"
    if not readers:
        return "computed at the root; nothing else reads it"
    return f"computed at the root, whole, before its readers: {names}"


def _storage(tree: ScheduleTree, stage: StageNode) -> Iterator[str]:
    """Who may see an attached stage's elements while a parallel loop runs, and how they are laid out."""
    if stage.double_buffer and isinstance(stage.attach, At):
        loop = tree[stage.attach.stage].axes[stage.attach.axis].name
        if stage.double_buffer == 2:
            yield f"storage: two copies; one is filled for the next iteration of {loop} while the other is read"
        else:
            yield f"storage: {stage.double_buffer} copies; one is read while the others are filled for the next iterations of {loop}"
    for layout in stage.layouts:
        yield f"storage: {layout}"
    for axis, factor, offset in stage.aligns:
        yield f"storage: the stride of {stage.axes[axis].name} leaves {offset} when divided by {factor}"
    for target, axis in enclosing_loops(tree, stage):
        if target.mark(axis).kind is LoopKind.PARALLEL:
            name = target.axes[axis].name
            yield f"storage: private to each iteration of the parallel loop {name} of {target.name}, so its threads share none of it"
    yield from thread_facts(tree, stage)


def _skipped(stage: StageNode) -> Iterator[str]:
    """Which terms skip_padding leaves out."""
    body, declared = (op.body[0] if isinstance(op, ComputeOp) else None for op in (stage.op, stage.origin))
    if isinstance(body, Reduce) and isinstance(declared, Reduce) and body.condition is not declared.condition:
        yield f"terms: only where {body.condition}; the others are padding and change nothing"


def _unknown_indices(stage: StageNode) -> Iterator[str]:
    """The reads whose place only the data says: out of range they touch other memory, or end the process."""
    for load in loads(stage.op) if isinstance(stage.op, ComputeOp) else ():
        if any(isinstance(node, ProducerLoad) for index in load.indices for node in walk(index)):
            yield (
                f"indices: where {load} reads, the data says, so nothing proves that it is inside of {load.producer.name}; to check it in "
                'each run, build under tvm.transform.PassContext(config={"tir.instrument_bound_checkers": True})'
            )


def _loops(domain: StageDomain) -> Iterator[str]:
    stage = domain.stage
    ordered = _natural_reductions(stage)
    reordered = [axis for axis in stage.leaf if stage.is_reduction(axis)] != ordered
    for axis in stage.leaf:
        intrin = stage.mark(axis).intrin
        if intrin is not None:
            inside = "it and the loops inside are one use of the intrinsic, legal because lowering proves that both compute the same"
            yield f"{stage.axes[axis].name}: tensorized with {intrin[0]}, {inside}"
            return
        reason = _reduction(stage, axis, reordered) if stage.is_reduction(axis) else _spatial(domain, axis)
        mark = stage.mark(axis)
        kind = f"bound to {mark.thread.tag}" if mark.thread else _KIND_NAMES[mark.kind]
        yield f"{stage.axes[axis].name}: {kind}, {reason}"


_KIND_NAMES = {
    LoopKind.SERIAL: "serial",
    LoopKind.PARALLEL: "parallel",
    LoopKind.VECTORIZE: "vectorised",
    LoopKind.UNROLL: "unrolled",
}


def _spatial(domain: StageDomain, axis: int) -> str:
    """Why the iterations of a loop over elements may run as they do."""
    stage = domain.stage
    if isinstance(stage.op, ScanOp):
        return "time: each step reads what earlier ones have written, so its iterations run in order"
    roots = [root for root in stage.spatial if axis in leaves_of(stage, root)]
    indices = ", ".join(stage.axes[root].name for root in roots)
    # the values of an attached stage are known when it is lowered
    known = [] if isinstance(stage.attach, At) else [root for root in roots if root != axis]
    places = [f"{stage.axes[root].name} = {domain.values[root]}" for root in known]
    detail = f" ({_joined(places)})" if places else ""
    same = f"({indices})" if len(roots) > 1 else indices
    disjoint = f"its iterations write disjoint elements of {stage.name} because no two of them reach the same {same}{detail}"
    match stage.mark(axis).kind:
        case LoopKind.PARALLEL | LoopKind.BIND:
            return disjoint
        case LoopKind.VECTORIZE:
            extent = domain.extents[axis]
            most = "up to " if isinstance(stage.attach, At) else ""
            lanes = f"{most}{extent} lanes" if isinstance(extent, IntImm) else f"but its extent {extent} is no constant"
            return f"{lanes}: {disjoint}; no other stage is computed inside"
        case LoopKind.UNROLL:
            return f"its iterations in their order, written out: the same elements of {stage.name} are written in the same order"
    inner = stage.leaf.index(axis) > next((n for n, a in enumerate(stage.leaf) if stage.is_reduction(a)), len(stage.leaf))
    note = "; the elements are initialised in loops of their own, before the first reduction loop" if inner else ""
    return f"may stand at any place: {disjoint}{note}"


def _reduction(stage: StageNode, axis: int, reordered: bool) -> str:
    """Why the iterations of a reduction loop may run as they do."""
    if stage.mark(axis).kind is LoopKind.VECTORIZE:
        return f"reduction: the lanes are combined by halves, legal because the combiner {_combiner(stage)} is associative and commutative"
    written = "written out in order; " if stage.mark(axis).kind is LoopKind.UNROLL else ""
    if reordered:
        law = f"the combiner {_combiner(stage)} is associative and commutative"
        return f"{written}reduction in another order than declared, legal because {law}"
    return f"{written}reduction: the terms of each element are combined one after the other, in the declared order"


def _combiner(stage: StageNode) -> str:
    body = stage.compute.body[0]
    return ", ".join(map(str, body.combiner.result)) if isinstance(body, Reduce) else ""


def _splits(domain: StageDomain, analyzer: Analyzer) -> Iterator[str]:
    """Which splits divide their axis, and what is guarded where they don't."""
    stage = domain.stage
    for relation in stage.relations:
        if isinstance(relation, FuseRelation):
            continue
        parent = stage.axes[relation.parent].name
        if isinstance(stage.attach, At) and not stage.is_reduction(relation.parent):
            yield f"split of {parent}: over the part that a visit computes, with a guard where that doesn't divide"
            continue
        if relation.balanced:
            yield f"split of {parent}: {_tile_sizes(domain, relation, analyzer)}"
            continue
        sizes = " x ".join(str(domain.extents[part]) for part in relation.parts)
        extent = domain.extents[relation.parent]
        if analyzer.known_equal(covered(relation.parts, domain.extents), extent):
            yield f"split of {parent}: {sizes} covers its {extent} iterations exactly, no guard"
        else:
            yield f"split of {parent}: {sizes} may cover more than its {extent} iterations, so a guard is needed"
    what = "updates" if len(stage.reduction) else "stores"
    for guard in domain.guards:
        if isinstance(stage.attach, At) and not guard.reduction:
            continue
        scope = f"the updates of {stage.name} alone" if guard.reduction else f"the {what} of {stage.name}"
        yield f"guard: {guard.condition} around {scope}{' and its initialisation' if len(stage.reduction) and not guard.reduction else ''}"


def _tile_sizes(domain: StageDomain, relation: SplitRelation, analyzer: Analyzer) -> str:
    tiles = BalancedTiles.of(domain.extents[relation.parent], domain.extents[relation.parts[0]], analyzer.simplify)
    size = domain.extents[relation.parts[1]]
    if is_const_int(tiles.longer, 0):
        return f"{tiles.count} tiles of {size}, no guard"
    return f"balanced, {tiles.count} tiles: the first {tiles.longer} of {size}, the others of {tiles.small}, told apart by a guard"


def _natural_reductions(stage: StageNode) -> list[int]:
    """The reduction loops in the order in which they visit the points as declared."""
    order = [*stage.spatial, *stage.reduction]
    for relation in stage.relations:
        if isinstance(relation, SplitRelation):
            place = order.index(relation.parent)
            order[place : place + 1] = relation.parts
        elif relation.parts:  # of no axes fused is a loop of elements, with one iteration
            place = order.index(relation.parts[-1])
            order[place] = relation.fused
            order = [axis for axis in order if axis not in relation.parts]
    return [axis for axis in order if stage.is_reduction(axis)]


def _joined(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1] if names else "")))
