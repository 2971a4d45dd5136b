"""Whether a block may be computed elsewhere in its scope, and whether what it reads is there when it runs.

A block that is complete or a reduction gives each element a value that depends on the element alone, as long as what it
reads doesn't change meanwhile. So it may be moved, or computed again, wherever what it reads is ready.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...arith import Interval, relax
from ...arith.analyzer import Analyzer
from ...arith.block_access import get_block_access_region
from ...arith.iter_map import IterSumExpr, detect_iter_map
from ...arith.symbolic_inverse import is_injective
from ...tir.arithmetic import all as all_of
from ...tir.arithmetic import as_int, floordiv, is_const_int
from ...tir.block import Block, BlockRealize
from ...tir.buffer import BufferRegion
from ...tir.expr import BufferLoad, FloorDiv, FloorMod, IntImm, IterVar, PrimExpr, Range, Var
from ...tir.rewriting import substitute, variables
from ...tir.stmt import BufferStore, For, ForKind, SeqStmt
from ...tir.thread import bound_tag
from .bindings import bound_values, is_true, ranges_of
from .buffers import stated_pointers
from .diagnostics import PrimitiveError
from .program import BlockProgram, Node, holds_for_scope, realized
from .scope import Scope, loops_of_axes, read, written

REDUCED = (IterVar.COMM_REDUCE,)
AT_ONCE = (ForKind.PARALLEL, ForKind.VECTORIZED, ForKind.THREAD_BINDING)


def reduces_across(loop: For) -> bool:
    """True for the threads of a block of threads, which may reduce together."""
    return (bound_tag(loop) or "").startswith("threadIdx")


def check_movable(program: BlockProgram, node: Node, primitive: str) -> None:
    """Refuse to move a block whose value would be another elsewhere.

    Raises:
        PrimitiveError: with the reason.
    """
    realize = realized(node)
    scope = Scope.around(program, node)
    reason = odd_surroundings(node) or _why_loose(program, node) or _why_of_time(scope, realize.block) or why_ambiguous(realize.block)
    if reason is None:
        reason = next(_reasons_of_neighbours(program, scope, node), None)
    if reason is not None:
        raise PrimitiveError(f"{primitive}: {realize.block.name_hint} can't be computed elsewhere: {reason}", realize)


def _reasons_of_neighbours(program: BlockProgram, scope: Scope, node: Node) -> Iterator[str]:
    realize = realized(node)
    for producer in scope.producers(realize.block):
        above = program.node_of(producer)
        yield from partial_sums(program, above, node)
        # In a loop of both, the producer may write an element again between two reads of it; without one it is done before.
        if shared_loops(program, above, node):
            ambiguous = why_ambiguous(producer.block)
            if ambiguous is not None and not _copies_what_stays(scope, producer.block):
                yield f"what it reads changes on the way: {ambiguous}"
    for consumer in scope.consumers(realize.block):
        yield from partial_sums(program, node, program.node_of(consumer))


def _copies_what_stays(scope: Scope, block: Block) -> bool:
    """Whether a block copies elements to the same places of another buffer, as `read_at` makes it: each time it writes the same."""
    body = block.body
    while isinstance(body, For):
        body = body.body
    if not isinstance(body, BufferStore) or not isinstance(body.value, BufferLoad) or body.value.indices != body.indices:
        return False
    return all(why_ambiguous(producer.block) is None for producer in scope.producers(block))


def odd_surroundings(node: Node) -> str | None:
    """What but loops stands around a node within its scope, and so decides whether it runs."""
    for above in node.ancestors():
        if isinstance(above.stmt, BlockRealize):
            break
        # A branch, say: taken out of it, the block would run where it didn't.
        if not isinstance(above.stmt, (For, SeqStmt, Block)) and not holds_for_scope(above):
            return f"a {type(above.stmt).__name__} decides where it runs"
    return None


def _why_loose(program: BlockProgram, node: Node) -> str | None:
    """The loop that a block uses without an axis."""
    around = {loop.loop_var for loop in program.loops_above(node)}
    # The block itself, without what its axes are bound to: only there may loops be used.
    loose = (variables(realized(node).block) & around) if around else set()
    return f"it uses the loop variable {next(iter(loose)).name} itself; bind it to an axis" if loose else None


def _why_of_time(scope: Scope, block: Block) -> str | None:
    """Which block before it reads what it writes, or which one after it writes what it reads."""
    own, wanted = set(written(block)), set(read(block))
    for child in scope.before(block):
        shared = own & set(read(child.block))
        if shared:
            return f"{child.block.name_hint} reads {next(iter(shared)).name} before it is written"
    for child in scope.after(block):
        shared = wanted & set(written(child.block))
        if shared:
            return f"{child.block.name_hint} writes {next(iter(shared)).name} after it is read"
    return None


def why_ambiguous(block: Block) -> str | None:
    """Which buffer a block may write twice at one place, at different points of its spatial axes.

    A block may state more than it writes; then what its body stores to counts. Of a buffer that a call gets nothing else is
    known, and the block's word that its axes are spatial is taken.
    """
    reason = _why_ambiguous(block, block.writes)
    # Regions first: to look into the body takes longer.
    if reason is None:
        return None
    _, stored, handed = get_block_access_region(block, stated_pointers(block))
    opaque = {region.buffer for region in handed}
    return _why_ambiguous(block, [region for region in stored if region.buffer not in opaque])


def _why_ambiguous(block: Block, written_regions: Sequence[BufferRegion]) -> str | None:
    spatial = {
        a.var: a.dom for a in block.iter_vars if a.iter_type not in REDUCED and a.dom is not None and not is_const_int(a.dom.extent, 1)
    }
    for region in written_regions:
        plain = {r.min for r in region.region if is_const_int(r.extent, 1)}
        if set(spatial) <= plain:  # each axis is an index by itself, so two points write two places
            continue
        places = [place_of_range(r) for r in region.region]
        # a range without such a number tells no points apart; the other dimensions must do so by themselves
        used = [place for place in places if place is not None and variables(place) & set(spatial)]
        found = detect_iter_map(used, spatial)
        if found.errors and not is_injective(spatial, used):
            return f"{block.name_hint} may write an element of {region.buffer.name} more than once ({found.errors[0]})"
    return None


def check_unambiguous(realize: BlockRealize, primitive: str) -> None:
    """Refuse to change the order of the points of a block where the last of several that write an element matters.

    Raises:
        PrimitiveError: with the buffer.
    """
    reason = why_ambiguous(realize.block)
    if reason is not None:
        raise PrimitiveError(f"{primitive}: the instances of {realize.block.name_hint} may not change their order: {reason}", realize)


def place_of_range(r: Range) -> PrimExpr | None:
    """A number that differs for ranges that don't overlap; None if there is none."""
    width = as_int(r.extent)
    if width is None:
        return None
    if width == 1:
        return r.min
    # ranges of one width that begin at multiples of it are the same or apart
    found = Analyzer().simplify(floordiv(r.min, width))
    return found if is_const_int(Analyzer().simplify(found * width - r.min), 0) else None


def partial_sums(program: BlockProgram, producer: Node, consumer: Node) -> Iterator[str]:
    """The loops in the middle of a reduction in which its result would be read."""
    reduced = loops_of_axes(realized(producer), REDUCED)
    for loop in shared_loops(program, producer, consumer):
        if loop.loop_var in reduced:
            names = realized(producer).block.name_hint, realized(consumer).block.name_hint
            yield f"{names[1]} stands in the loop {loop.loop_var.name}, over which {names[0]} reduces what it reads"


def shared_loops(program: BlockProgram, one: Node, other: Node) -> list[For]:
    """The loops around both of two blocks of a scope."""
    found = []
    for a, b in zip(program.loops_above(one), program.loops_above(other), strict=False):
        if a is not b:
            break
        found.append(a)
    return found


def touched_box(region: BufferRegion, realize: BlockRealize, inner: Sequence[For], analyzer: Analyzer) -> list[Interval | None]:
    """A box that holds what a block touches of a region while loops run; None where there are no bounds."""
    values, domain = bound_values(realize), ranges_of(inner)
    box: list[Interval | None] = []
    for side in region.region:
        low = substitute(side.min, values)
        first = _relaxed(low, domain, analyzer)
        last = first if is_const_int(side.extent, 1) else _relaxed(low + substitute(side.extent, values) - 1, domain, analyzer)
        box.append(None if first is None or last is None else Interval(first.min, last.max))
    return box


def _relaxed(index: PrimExpr, domain: Mapping[Var, Range], analyzer: Analyzer) -> Interval | None:
    """`relax`, without algebra for what most indices are."""
    if isinstance(index, IntImm):
        return Interval(index, index)
    if isinstance(index, Var):
        dom, fixed = domain.get(index), analyzer.simplify(index)
        return Interval(fixed, fixed) if dom is None else Interval(dom.min, analyzer.simplify(dom.min + dom.extent - 1))
    return relax(index, domain, analyzer)


def why_not_whole(realize: BlockRealize, loops: Sequence[For], once: bool = False) -> str | None:
    """What keeps a block from running at each point of its axes; None if it does.

    Args:
        once: each point exactly once; without it, points may come again.
    """
    domain = ranges_of(loops)
    used = set().union(*map(variables, realize.iter_values)) if realize.iter_values else set()
    # a loop that no axis mentions runs the same points again
    idle = next((loop for loop in loops if loop.loop_var not in used and not is_const_int(loop.extent, 1)), None)
    if once and idle is not None:
        return f"the loop {idle.loop_var.name} repeats it"
    if is_true(realize.predicate) and _is_each_its_own(realize, domain):
        return None
    kept = {var: dom for var, dom in domain.items() if var in used}
    found = detect_iter_map(realize.iter_values, kept, None if is_true(realize.predicate) else realize.predicate)
    if found.errors:
        # splits of symbolic extents, which the iteration map can't divide, are recognised by their form
        return None if is_true(realize.predicate) and is_symbolic_split(realize, domain) else found.errors[0]
    for axis, total in zip(realize.block.iter_vars, found.indices, strict=True):
        if axis.dom is None or not _is_range(total, axis.dom):
            whole = f"{axis.dom.min} to {axis.dom.min + axis.dom.extent - 1}" if axis.dom is not None else "none"
            return f"its loops don't run its axis {axis.var.name} from {whole}"
    return None


def _is_each_its_own(realize: BlockRealize, domain: Mapping[Var, Range]) -> bool:
    """True if each axis is a loop of the same range, or constant at its only value."""
    # Each loop once: vi = i, vj = i run along a diagonal only.
    seen: set[PrimExpr] = set()
    for axis, value in realize.bindings():
        assert axis.dom is not None
        if is_const_int(axis.dom.extent, 1) and value is axis.dom.min:
            continue
        own = domain.get(value) if isinstance(value, Var) else None
        if own is None or value in seen or own.min is not axis.dom.min or own.extent is not axis.dom.extent:
            return False
        seen.add(value)
    return True


def is_symbolic_split(realize: BlockRealize, domain: Mapping[Var, Range]) -> bool:
    """True if each axis is a loop of its range, or two are the quotient and the remainder of a loop that is as long as both together."""
    analyzer = Analyzer()
    # A loop with one value is that value: it may stand in any sum without changing what the axis runs over.
    units = {var: own.min for var, own in domain.items() if is_const_int(own.extent, 1)}
    values = [substitute(value, units) for value in realize.iter_values]
    pairs = [(value, axis.dom) for axis, value in zip(realize.block.iter_vars, values, strict=True) if axis.dom is not None]
    left = [(value, dom) for value, dom in pairs if not (is_const_int(dom.extent, 1) and value is dom.min)]
    seen: set[PrimExpr] = set()
    while left:
        value, dom = left.pop(0)
        loop, extent = value, dom.extent
        if isinstance(value, (FloorDiv, FloorMod)):
            place = _counterpart(value, [other for other, _ in left])
            if place is None:
                return False
            other = left.pop(place)[1]
            remainder = dom if isinstance(value, FloorMod) else other
            # Together they name each iteration of the loop once if the remainder is as long as the divisor.
            if not analyzer.known_equal(remainder.extent, value.b) or not is_const_int(other.min, 0):
                return False
            loop, extent = value.a, dom.extent * other.extent
        own = domain.get(loop) if isinstance(loop, Var) else None
        # each loop once: vi = i, vj = i run along a diagonal only
        if own is None or loop in seen or not (is_const_int(dom.min, 0) and is_const_int(own.min, 0)):
            return False
        if not analyzer.known_equal(own.extent, extent):
            return False
        seen.add(loop)
    return True


def _counterpart(value: FloorDiv | FloorMod, others: Sequence[PrimExpr]) -> int | None:
    """The place of x % c among others for x // c, and of x // c for x % c."""
    kind = FloorMod if isinstance(value, FloorDiv) else FloorDiv
    return next((n for n, other in enumerate(others) if isinstance(other, kind) and other.a is value.a and other.b is value.b), None)


def _is_range(total: IterSumExpr, dom: Range) -> bool:
    if total.base is not dom.min or not all(split.scale == 1 for split in total.args):
        return False
    return is_const_int(dom.extent, total.args[0].extent if total.args else 1)


def why_beyond_domain(realize: BlockRealize, loops: Sequence[For]) -> str | None:
    """The part of a predicate that doesn't follow from the ranges of the axes; None if all does."""
    if is_true(realize.predicate):
        return None
    analyzer = Analyzer(ranges_of(loops))
    inside = [
        bound
        for axis, value in realize.bindings()
        if axis.dom is not None
        for bound in (value >= axis.dom.min, value < axis.dom.min + axis.dom.extent)
    ]
    # `i_0 * 16 + i_1 < 100` for vi = i_0 * 16 + i_1 of 100 values only cuts off what lies outside of the axis.
    with analyzer.constraint_scope(all_of(*inside)):
        known = analyzer.known_true(realize.predicate) or analyzer.known_true(analyzer.simplify(realize.predicate))
    return None if known else f"its predicate {realize.predicate} leaves out points of its axes"
