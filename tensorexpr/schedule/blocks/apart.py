"""Do iterations of loops touch different elements, or have memory of their own?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...arith.analyzer import Analyzer
from ...arith.block_access import is_self_contained
from ...tir.arithmetic import as_int
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import BufferLoad, IntImm, IterVar, PrimExpr, Range, Var
from ...tir.rewriting import Node as Part
from ...tir.rewriting import children, substitute, variables
from ...tir.stmt import BufferBind, BufferStore, For, Stmt
from .bindings import ranges_of
from .program import BlockProgram, Node, realized
from .scope import read, written


def is_apart(late: BufferRegion, early: BufferRegion, loops: Sequence[For], around: Mapping[Var, Range]) -> bool:
    """True if the box `late` of any iteration and the box `early` of any iteration before it are certainly disjoint.

    Args:
        loops: a nest, outermost first, whose variables the boxes are in terms of.
        around: ranges of other variables, which have the same values in both iterations.
    """
    ranges = ranges_of(loops)
    for level, loop in enumerate(loops):
        var, extent = loop.loop_var, as_int(loop.extent)
        if extent == 1:
            continue
        # Iteration `var + ahead` against `var`; loops further in are anywhere.
        ahead = Var("ahead", var.dtype)
        other = {deeper.loop_var: Var(deeper.loop_var.name, var.dtype) for deeper in loops[level + 1 :]}
        analyzer = Analyzer({**around, **ranges, **{fresh: ranges[deeper] for deeper, fresh in other.items()}})
        # var + ahead may pass the loop's end: pairs that don't exist can only make this refuse more.
        analyzer.bind(ahead, Range.from_min_extent(IntImm(var.dtype, 1), loop.extent - 1))
        if not _are_disjoint(analyzer, late, early, {var: var + ahead, **other}):
            return False
    return True


def _are_disjoint(analyzer: Analyzer, late: BufferRegion, early: BufferRegion, moved: Mapping[Var, PrimExpr]) -> bool:
    """True if the boxes lie beside each other along some dimension."""
    for a, b in zip(late.region, early.region, strict=True):
        low, high = substitute(a.min, moved), substitute(a.min + a.extent, moved)
        if analyzer.known_true(low >= b.min + b.extent) or analyzer.known_true(high <= b.min):
            return True
    return False


def is_private(program: BlockProgram, loop: For, buffer: Buffer) -> bool:
    """True if each iteration of a loop makes what it reads of a buffer that nothing else uses: lowering gives it one of its own."""
    top = program.loop_node(loop.loop_var)
    scope = realized(program.scope_of(top))
    if buffer not in scope.block.alloc_buffers or _is_used(scope.block.body, buffer, loop):
        return False
    blocks = [node.stmt.block for node in program.child_blocks(top) if isinstance(node.stmt, BlockRealize)]
    first = next((block for block in blocks if buffer in (*read(block), *written(block))), None)
    # an update without an init goes on from what the iteration before left
    if first is None or buffer not in written(first) or (buffer in read(first) and first.init is None):
        return False
    around = {above.loop_var for above in (loop, *program.loops_above(top))}
    # a sum over the loop itself, or over one around it, must outlive their iterations
    return not (around & _reducing(program, top, buffer)) and is_self_contained(loop.body, buffer)


def _is_used(stmt: Stmt, buffer: Buffer, without: Stmt) -> bool:
    """True if a buffer is used in a statement, apart from one inside of it."""
    stack: list[Part] = [stmt]
    while stack:
        node = stack.pop()
        if node is without:
            continue
        used: list[Buffer] = []
        match node:
            case BufferLoad() | BufferStore():
                used = [node.buffer]
            case BufferBind():
                used = [node.source.buffer]
            case Block():
                used = [view.source.buffer for view in node.match_buffers]
        # a pointer handed to a call, or another buffer over the same memory, is a use too
        if node is buffer.data or any(other.data is buffer.data for other in used):
            return True
        stack.extend(children(node))
    return False


_OF_TIME = (IterVar.COMM_REDUCE, IterVar.DIM_INFO)


def _reducing(program: BlockProgram, top: Node, buffer: Buffer) -> set[Var]:
    """The loops over which blocks below a node reduce into a buffer."""
    return {var for axis, value in _axes_of_writers(program, top, buffer, {}) if axis.iter_type in _OF_TIME for var in variables(value)}


def _axes_of_writers(
    program: BlockProgram, top: Node, buffer: Buffer, values: Mapping[Var, PrimExpr]
) -> Iterator[tuple[IterVar, PrimExpr]]:
    """The axes of the blocks below that write a buffer, and their values in terms of the loops around the outermost blocks."""
    for node in program.child_blocks(top):
        realize = realized(node)
        if buffer in written(realize.block):
            own = [substitute(value, values) for value in realize.iter_values]
            yield from zip(realize.block.iter_vars, own, strict=True)
            inside = {**values, **{axis.var: value for axis, value in zip(realize.block.iter_vars, own, strict=True)}}
            yield from _axes_of_writers(program, node, buffer, inside)
