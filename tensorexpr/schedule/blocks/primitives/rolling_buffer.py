"""Rolling buffer: what the iterations of a loop share is computed once, and kept in a ring.

for t in range(3)                                  ->   for t in range(3)
    for h in range(6): B: vh = t * 4 + h                    for h in range(6): B: where t < 1 or 2 <= h
        B[vh] = A[vh]                                           B[vh % 6] = A[vh]
    for h, k: C: reads B[t * 4 + h + k]                     for h, k: C: reads B[(t * 4 + h + k) % 6]

Axes of the loop become opaque, since its iterations now need those before. Where iterations of several nested loops overlap, each
along a dimension of its own, the ring is along that of the outermost, and the others keep their whole extent.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....arith import Linear, linear_form
from ....arith.analyzer import Analyzer
from ....dataclass import dataclass, replace
from ....tir.arithmetic import any as any_of
from ....tir.arithmetic import floormod
from ....tir.block import BlockRealize
from ....tir.buffer import Buffer, decl_buffer
from ....tir.expr import LE, IntImm, IterVar, PrimExpr, Range, Var
from ....tir.rewriting import substitute, variables
from ....tir.stmt import For, ForKind, Stmt
from ..accesses import Indices, Redirection, check_plain_use
from ..bindings import bound_values, conditions, conjunction, knowing
from ..buffers import own_buffer
from ..diagnostics import PrimitiveError
from ..instruction import BlockPrimitive
from ..program import BlockProgram, map_inner
from ..scope import Scope, check_complete_or_reduction


@dataclass(frozen=True)
class _Window:
    """Of dimension `place` of a buffer, iteration t of `loop` writes `extent` elements from stride * t on; `inside` counts within them."""

    loop: For
    place: int
    axis: IterVar
    value: PrimExpr
    inside: PrimExpr
    stride: int
    extent: int


def rolling_buffer(program: BlockProgram, name: str, index: int) -> BlockProgram:
    """The program with the buffer of a number among those that a block writes as a ring."""
    node, realize = program.block_node(name), program.realize(name)
    buffer = own_buffer(program, realize, index, "rolling_buffer")
    check_plain_use(program.func.body, buffer, "rolling_buffer", realize)
    scope = Scope.around(program, node)
    _check_kind(program, realize)
    readers = scope.consumers(realize.block)
    shared = _shared_loops(program, realize, readers)
    windows = _windows(program, realize, buffer, shared)
    for window in windows:
        _check_reads(program, buffer, readers, window)
    return _rolled(program, realize, readers, buffer, windows)


def _check_kind(program: BlockProgram, realize: BlockRealize) -> None:
    """Refuse a block that is neither complete nor a reduction; axes that another ring made opaque count as what they were: spatial."""
    axes = tuple(
        replace(axis, iter_type=IterVar.DATA_PAR) if axis.iter_type == IterVar.DIM_INFO else axis for axis in realize.block.iter_vars
    )
    plain = replace(realize, block=replace(realize.block, iter_vars=axes))
    before = program.replace(realize, plain)
    check_complete_or_reduction(Scope.around(before, before.node_of(plain)), plain, "rolling_buffer")


def _shared_loops(program: BlockProgram, realize: BlockRealize, readers: Sequence[BlockRealize]) -> list[For]:
    """The loops around a block and all that read its result."""
    chains = [program.loops_above(program.node_of(one)) for one in (realize, *readers)]
    shared = [loop for loop in chains[0] if all(any(loop is other for other in chain) for chain in chains[1:])]
    if not readers or not shared:
        raise PrimitiveError(
            f"rolling_buffer: no loop is around {realize.block.name_hint} and all that read its result; use compute_at before", realize
        )
    return shared


def _windows(program: BlockProgram, realize: BlockRealize, buffer: Buffer, shared: Sequence[For]) -> list[_Window]:
    """The windows of shared loops whose iterations overlap, outer ones first; of one dimension that of the innermost."""
    loops = program.loops_above(program.node_of(realize))
    region = next(region for region in realize.block.writes if region.buffer is buffer)
    values = {axis.var: (axis, value) for axis, value in realize.bindings()}
    windows: list[_Window] = []
    # The innermost loop first: of two loops that move along one dimension it is the one whose windows follow each other.
    for loop in reversed(shared):
        inner = {one.loop_var for one in loops[next(n for n, one in enumerate(loops) if one is loop) + 1 :]}
        found = [
            window
            for place, side in enumerate(region.region)
            if isinstance(side.min, Var) and side.min in values and loop.loop_var in variables(values[side.min][1])
            for window in [_window_of(loop, place, *values[side.min], inner, knowing(loops))]
        ]
        window = found[0] if len(found) == 1 else None
        # Windows that don't overlap have nothing to keep, and two loops along one dimension would wrap around each other.
        if window is None or window.extent <= window.stride or any(other.place == window.place for other in windows):
            continue
        reason = _why_not_in_order(realize, loop, window)
        if reason is None:
            windows.insert(0, window)
        # Outside a window that rolls a loop may be in any order; the first one, which all depends on, may not.
        elif not windows:
            raise PrimitiveError(f"rolling_buffer: {reason}", loop)
    if not windows:
        raise PrimitiveError(
            f"rolling_buffer: no loop around {realize.block.name_hint} has iterations that share elements of {buffer.name} "
            "along one dimension, each a window of constant size further on",
            realize,
        )
    return windows


def _window_of(loop: For, place: int, axis: IterVar, value: PrimExpr, inner: set[Var], analyzer: Analyzer) -> _Window | None:
    form = linear_form(analyzer.simplify(value))
    stride = form.coefficient_of(loop.loop_var)
    rest = form.without(loop.loop_var)
    inside = Linear({atom: k for atom, k in rest.terms.items() if variables(atom) & inner}).to_expr(value.dtype)
    # A window moves forward. A term of inner and other loops together has no place within it.
    if stride <= 0 or any(variables(atom) - inner and variables(atom) & (inner | {loop.loop_var}) for atom in rest.terms):
        return None
    bound = analyzer.const_int_bound(inside)
    if bound.min_value != 0 or bound.max_value >= bound.POS_INF:
        return None
    return _Window(loop, place, axis, value, inside, stride, bound.max_value + 1)


def _why_not_in_order(realize: BlockRealize, loop: For, window: _Window) -> str | None:
    """What keeps an iteration from finding what earlier ones computed; None if nothing does."""
    if loop.kind not in (ForKind.SERIAL, ForKind.UNROLLED):
        return f"the iterations of {loop.loop_var.name} don't run one after another"
    for condition in conditions(realize.predicate):
        form = linear_form(condition.a - window.value) if hasattr(condition, "a") else None
        if variables(condition) & variables(window.value) and (form is None or form.terms):
            return f"{condition} may keep {realize.block.name_hint} from elements that a later iteration needs"
    return None


def _check_reads(program: BlockProgram, buffer: Buffer, readers: Sequence[BlockRealize], window: _Window) -> None:
    """What an iteration reads lies in its window."""
    # where the window of an iteration begins: its inner loops at 0
    start = substitute(window.value, {var: IntImm(var.dtype, 0) for var in variables(window.inside)})
    for reader in readers:
        loops = program.loops_above(program.node_of(reader))
        analyzer = knowing(loops)
        for axis in reader.block.iter_vars:
            if axis.dom is not None:
                analyzer.bind(axis.var, axis.dom, allow_override=True)
        values = bound_values(reader)
        for region in reader.block.reads:
            side = region.region[window.place]
            if region.buffer is not buffer:
                continue
            low = substitute(side.min, values) - start
            high = substitute(side.min + side.extent, values) - start
            if not (analyzer.known_true(low >= 0) and analyzer.known_true(high <= window.extent)):
                raise PrimitiveError(
                    f"rolling_buffer: {reader.block.name_hint} may read of {buffer.name} what isn't in the window of {window.extent} "
                    f"that an iteration of {window.loop.loop_var.name} computes",
                    reader,
                )


def _rolled(
    program: BlockProgram, realize: BlockRealize, readers: Sequence[BlockRealize], buffer: Buffer, windows: Sequence[_Window]
) -> BlockProgram:
    window = windows[0]
    size = IntImm(buffer.shape[window.place].dtype, window.extent)
    shape = (*buffer.shape[: window.place], size, *buffer.shape[window.place + 1 :])
    ring = decl_buffer(shape, buffer.dtype, buffer.name, scope=buffer.scope())

    def index(indices: Indices, facts: Analyzer) -> Indices:
        rolled = floormod(indices[window.place], window.extent)
        return (*indices[: window.place], rolled, *indices[window.place + 1 :])

    def region(sides: tuple[Range, ...], facts: Analyzer) -> tuple[Range, ...]:
        side = sides[window.place]
        point = isinstance(side.extent, IntImm) and side.extent.value == 1
        # a part of the window may wrap around the end of the ring, so the whole of it is stated
        rolled = (
            Range.from_min_extent(floormod(side.min, window.extent), side.extent)
            if point
            else Range.from_min_extent(IntImm(size.dtype, 0), size)
        )
        return (*sides[: window.place], rolled, *sides[window.place + 1 :])

    # The first iteration computes its whole window; later ones only its last `stride` elements, as the ring holds the others.
    fresh = [any_of(one.loop.loop_var < 1, LE(IntImm(one.inside.dtype, one.extent - one.stride), one.inside)) for one in windows]
    changes: dict[str, BlockRealize] = {}
    for one in (realize, *readers):
        block = replace(one.block, iter_vars=_opaque(one, window.loop.loop_var))
        holds = conjunction([*conditions(one.predicate), *fresh]) if one is realize else one.predicate
        changes[one.block.name_hint] = replace(one, block=block, predicate=holds)
    marked = program.replaced({program.realize(name): made for name, made in changes.items()})
    sent = Redirection(buffer, ring, index, region)(_allocating(marked.func.body, buffer, ring))
    return BlockProgram(program.func.with_body(sent))


def _opaque(realize: BlockRealize, var: Var) -> tuple[IterVar, ...]:
    """The axes, those that mention the loop as opaque ones."""
    pairs = realize.bindings()
    return tuple(replace(axis, iter_type=IterVar.DIM_INFO) if var in variables(value) else axis for axis, value in pairs)


def _allocating(stmt: Stmt, old: Buffer, new: Buffer) -> Stmt:
    """The statement whose block allocates `new` instead of `old`."""
    if isinstance(stmt, BlockRealize) and old in stmt.block.alloc_buffers:
        own = tuple(new if buffer is old else buffer for buffer in stmt.block.alloc_buffers)
        return replace(stmt, block=replace(stmt.block, alloc_buffers=own))
    return map_inner(stmt, lambda inner: _allocating(inner, old, new))


class RollingBuffer(BlockPrimitive):
    """The instruction."""

    kind, method, attrs = "RollingBuffer", "rolling_buffer", ("write_buffer_index",)
    change = staticmethod(rolling_buffer)
