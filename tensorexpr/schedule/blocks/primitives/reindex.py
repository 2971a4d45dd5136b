"""Reindex: a block reads or writes a buffer with one dimension for each axis that it uses there, copied from or to the buffer.

for i, j in T.grid(16, 32)             ->   for ax0, ax1 in T.grid(16, 32)
    B: B[vj, vi] = A[vi, vj, 3] * 2             A_reindex_reindex: A_reindex[v0, v1] = A[v0, v1, 3]
                                            for i, j in T.grid(16, 32)
                                                B: B[vj, vi] = A_reindex[vi, vj] * 2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....arith import IndexMap
from ....arith.analyzer import Analyzer
from ....arith.iter_map import detect_iter_map
from ....dataclass import dataclass
from ....errors import DeclarationError, ScheduleError
from ....tir.arithmetic import const
from ....tir.block import Block, BlockRealize
from ....tir.buffer import Buffer
from ....tir.expr import BufferLoad, IterVar, PrimExpr, Range, Var
from ....tir.rewriting import substitute, variables, walk
from ....tir.stmt import BufferStore, For, SeqStmt, Stmt, seq
from ..accesses import Redirection, check_plain_use
from ..bindings import TRUE, loosely
from ..buffers import region_at
from ..copying import copy_block, extent_from_zero, ranges_around, scoped_copy
from ..diagnostics import PrimitiveError
from ..handles import BlockRef
from ..instruction import Applied, Primitive, State, block_of
from ..nests import looped
from ..program import BlockProgram, Node, block_at, loops_around, realized
from ..scope import read
from .cache_read import sole_writer
from .cache_write import check_behind, check_written_alone

READ, WRITE = 0, 1
SIDES = ("read", "write")


@dataclass(frozen=True)
class Side:
    """A buffer of a block in Python: ("read", 0)."""

    side: int
    number: int

    def as_python(self) -> str:
        """The text."""
        return f'("{SIDES[self.side]}", {self.number})'


def reindex(program: BlockProgram, name: str, index: int, side: int) -> tuple[BlockProgram, str]:
    """The program with a copy of a buffer whose indices are the axes that a block uses it at, and the copy's name."""
    node = program.block_node(name)
    region = region_at(realized(node), SIDES[side], index, "reindex")
    block, buffer, scope = block_at(node), region.buffer, program.scope_of(node)
    indices = one_access(node, buffer, "reindex")
    check_plain_use(node.stmt, buffer, "reindex", node.stmt)
    siblings = program.child_blocks(scope)
    if side == WRITE:
        sole_writer(siblings, buffer, "reindex")
        check_written_alone(program, node, region, "reindex")
        check_behind(siblings, node, [other for other in siblings if buffer in read(block_at(other))], buffer, "reindex")
    elif any(buffer is own.buffer for own in block.writes) and block.init is None:
        raise PrimitiveError(f"reindex: {name} reads and writes {buffer.name}; a copy for reading alone would be of old values", node.stmt)
    # loosely: an axis of one value stays in the indices, and becomes a dimension of the copy
    facts = Analyzer({axis.var: loosely(_dom(axis)) for axis in block.iter_vars})
    indices = tuple(facts.simplify(index) for index in indices)
    # An axis that no index has would make the copy larger by its extent, with the same elements over and over.
    used = set().union(*map(variables, indices))
    axes = [axis for axis in block.iter_vars if axis.var in used]
    check_inside(node, axes, indices, buffer, "reindex")
    if side == WRITE:
        check_each_once(node, axes, indices, buffer, "reindex")
    copy = scoped_copy(buffer, [_dom(axis).extent for axis in axes], f"{buffer.name}_reindex", "global")
    made_name = program.fresh_block_name(copy.name if side == WRITE else f"{copy.name}_reindex")
    nest = _nest(made_name, buffer, copy, axes, indices, side)
    point = tuple(axis.var for axis in axes)
    box = tuple(Range.from_min_extent(var, const(1, var.dtype)) for var in point)
    moved = Redirection(buffer, copy, lambda *_: point, lambda *_: box)(node.stmt)
    # for its refusal, before anything is made
    outermost(program, node)
    made = program.replace(node.stmt, moved)
    # Looked up again: the replacement made new statements all the way up.
    moved_top = outermost(made, made.block_node(name))
    made = made.replace(moved_top, seq(moved_top, nest) if side == WRITE else seq(nest, moved_top))
    return made.allocated(block_at(scope).name_hint, copy), made_name


def _dom(axis: IterVar) -> Range:
    assert axis.dom is not None
    return axis.dom


def check_inside(node: Node, axes: Sequence[IterVar], indices: Sequence[PrimExpr], buffer: Buffer, primitive: str) -> None:
    """Refuse accesses that are inside the buffer only where a condition in the block holds: a copy has no such condition.

    Raises:
        PrimitiveError: with the index.
    """
    facts = Analyzer({**ranges_around(node), **{axis.var: _dom(axis) for axis in axes}})
    for index, extent in zip(indices, buffer.shape, strict=True):
        if not (facts.known_nonnegative(index) and facts.known_less(index, extent)):
            raise PrimitiveError(
                f"{primitive}: the index {index} may leave {buffer.name} (0 to {extent}), guarded by a condition in "
                f"{block_at(node).name_hint}; make the guarded part a block of its own",
                node.stmt,
            )
    for axis in axes:
        extent_from_zero(axis, node, primitive)


def check_each_once(node: Node, axes: Sequence[IterVar], indices: Sequence[PrimExpr], buffer: Buffer, primitive: str) -> None:
    """Refuse indices that the same element of the buffer has several of: which one is it?

    Raises:
        PrimitiveError: with the reason.
    """
    reason = why_not_one_to_one(axes, indices)
    if reason is not None:
        name = block_at(node).name_hint
        raise PrimitiveError(f"{primitive}: {name} may use one element of {buffer.name} at several of its instances: {reason}", node.stmt)


def why_not_one_to_one(axes: Sequence[IterVar], indices: Sequence[PrimExpr]) -> str | None:
    """Why different values of axes may give the same indices; None if they don't."""
    moving = [index for index in indices if variables(index)]
    # The usual case, without a proof: each index that moves is an axis of its own.
    if len(set(moving)) == len(moving) and all(isinstance(index, Var) for index in moving):
        return None
    found = detect_iter_map(indices, {axis.var: _dom(axis) for axis in axes})
    if found.indices:
        return None
    try:
        # One to one without being onto, as i*2: no iterator map, but still invertible.
        IndexMap(tuple(axis.var for axis in axes), tuple(indices)).non_surjective_inverse([_dom(axis).extent for axis in axes])
    except DeclarationError:
        return found.errors[0]
    return None


def _nest(name: str, buffer: Buffer, copy: Buffer, axes: Sequence[IterVar], indices: Sequence[PrimExpr], side: int) -> Stmt:
    own = [IterVar(axis.dom, Var(f"v{place}", axis.var.dtype)) for place, axis in enumerate(axes)]
    loops = [Var(f"ax{place}", axis.var.dtype) for place, axis in enumerate(axes)]
    point = tuple(axis.var for axis in own)
    values = dict(zip((axis.var for axis in axes), point, strict=True))
    far = tuple(substitute(index, values) for index in indices)
    block = copy_block(name, own, copy, point, buffer, far) if side == WRITE else copy_block(name, own, buffer, far, copy, point)
    return looped(loops, [_dom(axis).extent for axis in axes], BlockRealize(tuple(loops), TRUE, block))


def one_access(node: Node, buffer: Buffer, primitive: str) -> tuple[PrimExpr, ...]:
    """The indices at which a block uses a buffer: the same wherever it does.

    Raises:
        PrimitiveError: if they differ, depend on more than axes, or stand in an inner block.
    """
    block = block_at(node)
    found: dict[tuple[PrimExpr, ...], None] = {}
    for stmt in (block.init, block.body):
        for inner in () if stmt is None else walk(stmt):
            if isinstance(inner, BlockRealize):
                raise PrimitiveError(f"{primitive}: {block.name_hint} has blocks inside; give one of these", node.stmt)
            if isinstance(inner, (BufferLoad, BufferStore)) and inner.buffer is buffer:
                found[inner.indices] = None
    if len(found) != 1:
        shown = "; ".join(f"[{', '.join(map(str, indices))}]" for indices in found) or "none"
        raise PrimitiveError(
            f"{primitive}: {block.name_hint} must use {buffer.name} at the same indices wherever it does; it does at: {shown}", node.stmt
        )
    indices = next(iter(found))
    bound = {inner.loop_var for inner in walk(block.body) if isinstance(inner, For)} | {loop.loop_var for loop in loops_around(node)}
    foreign = {var for index in indices for var in variables(index)} & bound
    if foreign:
        raise PrimitiveError(
            f"{primitive}: where {block.name_hint} uses {buffer.name} depends on the loop over {next(iter(foreign)).name}, "
            "not on axes alone",
            node.stmt,
        )
    return indices


def outermost(program: BlockProgram, node: Node) -> Stmt:
    """The statement of the scope's sequence that a block is in, which must be a nest around it alone.

    Raises:
        PrimitiveError: if there are other statements in the loops around the block.
    """
    below = node
    for above in node.ancestors():
        if isinstance(above.stmt, Block):
            return below.stmt
        in_scope = above.parent is not None and isinstance(above.parent.stmt, Block)
        if isinstance(above.stmt, SeqStmt) and in_scope:
            return below.stmt
        if not isinstance(above.stmt, For):
            break
        below = above
    raise PrimitiveError(f"reindex: {block_at(node).name_hint} stands in loops with other blocks; do this before compute_at", node.stmt)


class ReIndex(Primitive):
    """The instruction."""

    kind, method, output, inputs, attrs = "ReIndex", "reindex", "block", ("block",), ("buffer_index", "buffer_index_type")

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], self.method)
        program, name = reindex(state.program_of(ref), ref.name, attrs[0], side_of(attrs[1], self.method))
        return Applied(state.updated(ref.func, program), (BlockRef(ref.func, name),))

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        return [("block", inputs[0]), ("buffer", Side(side_of(attrs[1], self.method), attrs[0]))]


def side_of(value: Any, primitive: str) -> int:
    """0 for reading, 1 for writing.

    Raises:
        ScheduleError: for anything else.
    """
    if value not in (READ, WRITE) or isinstance(value, bool):
        raise ScheduleError(f"{primitive}: a buffer is of the reads (0) or of the writes (1) of a block, not {value!r}")
    return int(value)
