"""Whether what a block reads has been written when it runs: producers cover it within the loops that both stand in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from ...arith import Interval, linear_form, relax
from ...arith.analyzer import Analyzer
from ...arith.block_access import on_indices
from ...arith.iter_map import detect_iter_map
from ...tir.arithmetic import as_int, maximum, minimum
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import FloorDiv, FloorMod, IntImm, PrimExpr, Range, Var
from ...tir.rewriting import substitute, variables
from ...tir.stmt import For
from ...tir.thread import HARDWARE_TAGS, bound_tag
from .bindings import bound_values, is_true, ranges_of
from .dataflow import place_of_range, shared_loops, touched_box, why_beyond_domain, why_not_whole
from .narrowing import narrowed
from .program import BlockProgram, Node, block_at, realized
from .scope import read, written


def why_not_covered(program: BlockProgram, producer: Node, consumer: Node) -> str | None:
    """What a consumer may read of a producer's buffers before it is written; None if nothing."""
    shared = shared_loops(program, producer, consumer)
    # predicates that only shorten loops become shorter loops, of which boxes are exact
    made, inner = narrowed(realized(producer), program.loops_above(producer)[len(shared) :])
    user, below = narrowed(realized(consumer), program.loops_above(consumer)[len(shared) :])
    analyzer = Analyzer(ranges_of(shared))
    wanted = set(read(user.block))
    for buffer in written(made.block):
        if buffer not in wanted:
            continue
        regions = [region for region in made.block.writes if region.buffer is buffer]
        reason = why_beyond_domain(made, [*shared, *inner]) if len(regions) == 1 else "it is written in several regions"
        boxes = [] if reason is not None else _produced(regions[0], made, inner, analyzer)
        # Without a shared loop the producer is done before the consumer starts, so how its loops make up its axes doesn't matter.
        if not boxes and not shared and len(regions) == 1:
            boxes = _whole(regions[0], made, inner, analyzer)
        needed = [touched_box(region, user, below, analyzer) for region in user.block.reads if region.buffer is buffer]
        if not boxes or not all(_inside(box, made_box, buffer, analyzer) for box in needed for made_box in boxes):
            why = f" ({reason})" if reason is not None else ""
            return f"{user.block.name_hint} would read parts of {buffer.name} that {made.block.name_hint} hasn't written yet{why}"
    return None


def carried(program: BlockProgram, nodes: Sequence[Node]) -> Iterator[tuple[Node, Node, set[Buffer]]]:
    """Pairs of blocks of which the second may read, of those buffers, what the first writes in another iteration of the loops around."""
    for place, made in enumerate(nodes):
        for other_place, other in enumerate(nodes):
            shared = set(written(block_at(made))) & set(read(block_at(other))) if other is not made else set()
            # A reader in front of its writer sees only what an earlier iteration wrote.
            if shared and (other_place < place or why_not_covered(program, made, other) is not None):
                yield made, other, shared


def is_covered(program: BlockProgram, region: BufferRegion, consumer: Node, producers: Sequence[Node]) -> bool:
    """True if several producers together write what a consumer reads of a buffer, before the loops that all stand in go on.

    Threads that share the buffer write for each other.
    """
    buffer = region.buffer
    shared = shared_loops(program, consumer, consumer)
    for producer in producers:
        # each is a prefix of the consumer's loops, so the shortest is common to all
        shared = shared[: len(shared_loops(program, producer, consumer))]
    # they count as inner loops on both sides: what one thread makes is there for all
    threads = [loop for loop in shared if shares(loop, buffer)]
    analyzer = Analyzer(ranges_of(shared))
    below = program.loops_above(consumer)[len(shared) :]
    needed = touched_box(region, realized(consumer), [*threads, *below], analyzer)
    boxes: list[list[Interval]] = []
    for producer in producers:
        realize, inner = narrowed(realized(producer), [*threads, *program.loops_above(producer)[len(shared) :]])
        # `if i % 2 == 0` within an axis leaves holes in any box
        if why_beyond_domain(realize, [*shared, *inner]) is not None:
            continue
        for made in (made for made in realize.block.writes if made.buffer is buffer):
            boxes += _met(_produced(made, realize, inner, analyzer), analyzer)
    return any(_inside(needed, box, buffer, analyzer) for box in _united(boxes, analyzer))


def _met(boxes: list[list[Interval]], analyzer: Analyzer) -> list[list[Interval]]:
    """What several boxes have in common, as one box; none of none."""
    if len(boxes) < 2:
        return boxes
    return [
        [
            Interval(
                analyzer.simplify(reduce(maximum, [side.min for side in sides])),
                analyzer.simplify(reduce(minimum, [side.max for side in sides])),
            )
            for sides in zip(*boxes, strict=True)
        ]
    ]


def _united(boxes: list[list[Interval]], analyzer: Analyzer) -> list[list[Interval]]:
    """The boxes, those that make a larger one in its place."""
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            whole = _joined(one, other, analyzer)
            if whole is not None:
                # one box fewer each time, so it ends
                return _united([whole, *(box for box in boxes if box is not one and box is not other)], analyzer)
    return boxes


def _joined(one: list[Interval], other: list[Interval], analyzer: Analyzer) -> list[Interval] | None:
    """The box that two make together; None if they make none: they differ in more than one dimension, or don't touch there."""
    sides = enumerate(zip(one, other, strict=True))
    odd = [n for n, (a, b) in sides if not (_equal(a.min, b.min, analyzer) and _equal(a.max, b.max, analyzer))]
    if len(odd) > 1:
        return None
    made = list(one)
    for n in odd:
        a, b = one[n], other[n]
        # [0, 3] and [4, 7] meet without a gap; [0, 3] and [5, 7] leave out 4
        if not analyzer.known_less_equal(b.min, a.max + 1) or not analyzer.known_less_equal(a.min, b.max + 1):
            return None
        made[n] = Interval(analyzer.simplify(minimum(a.min, b.min)), analyzer.simplify(maximum(a.max, b.max)))
    return made


def _equal(a: PrimExpr, b: PrimExpr, analyzer: Analyzer) -> bool:
    return a is b or analyzer.known_equal(a, b)


def shares(loop: For, buffer: Buffer, virtual: bool = False) -> bool:
    """True if the threads of a loop fill a buffer together, so that one of them needs what all do.

    They see all of global memory too, but don't wait for each other there: each writes what it reads.

    Args:
        virtual: count virtual threads too; they share it, but run one after the other.
    """
    tag = bound_tag(loop)
    if tag is None or (tag not in HARDWARE_TAGS and not virtual):
        return False
    scope = buffer.scope().split(".")[0]
    return tag == "threadIdx.x" if scope == "warp" else scope == "shared" and not tag.startswith("blockIdx")


def reads_inside(block: Block, region: BufferRegion) -> bool:
    """True if a region that a block states lies in the buffer at all points of the block's axes."""
    analyzer = Analyzer({axis.var: axis.dom for axis in block.iter_vars if axis.dom is not None})
    return all(
        analyzer.known_less_equal(0, side.min) and analyzer.known_less_equal(side.min + side.extent, extent)
        for side, extent in zip(region.region, region.buffer.shape, strict=True)
    )


def _produced(region: BufferRegion, realize: BlockRealize, inner: Sequence[For], analyzer: Analyzer) -> list[list[Interval]]:
    """Boxes whose common part is what a block writes while its loops run; none if that isn't known exactly."""
    values, domain = bound_values(realize), ranges_of(inner)
    places = [place_of_range(side) for side in region.region]
    if (
        not _fills([analyzer.simplify(substitute(place, values)) for place in places if place is not None], domain, analyzer)
        or None in places
    ):
        return []
    found = [_known(touched_box(region, realize, inner, analyzer))]
    if not is_true(realize.predicate):
        axes = {axis.var for axis in realize.block.iter_vars}
        if any(len(variables(side.min) & axes) > 1 for side in region.region):
            return []  # where one axis ends, another may go on: the end of the places isn't that of an axis
        found.append(_known(_image(region, realize, analyzer)))  # the predicate cuts off what lies outside of the axes
    return [box for box in found if box is not None] if None not in found else []


def _whole(region: BufferRegion, realize: BlockRealize, loops: Sequence[For], analyzer: Analyzer) -> list[list[Interval]]:
    """The box that a block writes which runs at each point of its axes, an axis for each index; none if it is another."""
    places = [side.min for side in region.region if not isinstance(side.min, IntImm)]
    plain = all(isinstance(place, Var) for place in places) and len(set(places)) == len(places)
    if not plain or any(as_int(side.extent) != 1 for side in region.region) or why_not_whole(realize, loops) is not None:
        return []
    box = _known(_image(region, realize, analyzer))
    return [] if box is None else [box]


def _known(box: Sequence[Interval | None]) -> list[Interval] | None:
    sides = [side for side in box if side is not None]
    return sides if len(sides) == len(box) else None


def _image(region: BufferRegion, realize: BlockRealize, analyzer: Analyzer) -> list[Interval | None]:
    """What a block writes over all its axes."""
    domain = {axis.var: axis.dom for axis in realize.block.iter_vars if axis.dom is not None}
    box: list[Interval | None] = []
    for side in region.region:
        first, last = relax(side.min, domain, analyzer), relax(side.min + side.extent - 1, domain, analyzer)
        box.append(None if first is None or last is None else Interval(first.min, last.max))
    return box


def _fills(places: Sequence[PrimExpr], domain: Mapping[Var, Range], analyzer: Analyzer) -> bool:
    """True if expressions take each combination of values between their bounds while variables run over their ranges."""
    used = [variables(place) & set(domain) for place in places]
    # No variable in two places, and each place without gaps: then every combination occurs.
    if sum(map(len, used)) == len(set().union(*used)) and all(_is_contiguous(place, domain, analyzer) for place in places):
        return True
    # One variable in two places, as in (i // 4, i % 4): only together do they tell whether each pair of values occurs.
    kept = {var: dom for var, dom in domain.items() if any(var in one for one in used)}
    found = detect_iter_map([place for place, one in zip(places, used, strict=True) if one], kept, analyzer=analyzer)
    return not found.errors and all(split.scale == 1 for total in found.indices for split in total.args)


def _is_contiguous(expr: PrimExpr, domain: Mapping[Var, Range], analyzer: Analyzer) -> bool:
    """True if an expression takes all values between its bounds."""
    varying = {atom: abs(k) for atom, k in linear_form(expr).terms.items() if variables(atom) & set(domain)}
    if len(varying) == 1:
        ((atom, scale),) = varying.items()
        return scale == 1 and (isinstance(atom, Var) or _is_contiguous_quotient(atom, domain, analyzer))
    reach = 1  # values from 0 on that the smaller terms take together
    largest = max(varying, key=lambda atom: varying[atom], default=None)
    for atom, scale in sorted(varying.items(), key=lambda item: item[1]):
        extent = as_int(domain[atom].extent) if isinstance(atom, Var) else None
        # i * 4 + j with j < 4: j reaches 4 values, so i may step by 4 at most. After the largest nothing follows: it may be symbolic.
        if not isinstance(atom, Var) or scale > reach or (extent is None and atom is not largest):
            return False
        reach += 0 if extent is None else scale * (extent - 1)
    return True


def _is_contiguous_quotient(atom: PrimExpr, domain: Mapping[Var, Range], analyzer: Analyzer) -> bool:
    if not isinstance(atom, (FloorDiv, FloorMod)) or not isinstance(atom.b, IntImm) or not _is_contiguous(atom.a, domain, analyzer):
        return False
    if isinstance(atom, FloorDiv):
        return True
    inside, whole = relax(atom.a, domain, analyzer), relax(atom, domain, analyzer)
    if inside is None or whole is None:
        return False
    # x % b takes all values between its bounds if x never wraps around, or if it runs through at least b values.
    steps = analyzer.simplify(inside.max - inside.min)
    return analyzer.known_equal(steps, whole.max - whole.min) or (isinstance(steps, IntImm) and steps.value >= atom.b.value - 1)


def _inside(box: Sequence[Interval | None], made: Sequence[Interval], buffer: Buffer, analyzer: Analyzer) -> bool:
    """True if a box, or all of it that lies in the buffer, is part of what was made."""
    for needed, there, extent in zip(box, made, buffer.shape, strict=True):
        from_start = analyzer.known_less_equal(there.min, 0)
        to_end = analyzer.known_less_equal(extent - 1, there.max)
        # symbolic sizes of buffers are indices, whose arithmetic doesn't overflow
        if not to_end and variables(extent):
            to_end = on_indices(analyzer, extent, there.max).known_less_equal(extent - 1, there.max)
        if not from_start and (needed is None or not analyzer.known_less_equal(there.min, needed.min)):
            return False
        if not to_end and (needed is None or not analyzer.known_less_equal(needed.max, there.max)):
            return False
    return True
