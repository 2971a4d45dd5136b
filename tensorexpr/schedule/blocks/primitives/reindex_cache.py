"""Reindex cache read and write: a block uses a copy of a buffer in a layout of its own; what copies runs in loops like the block's.

for i, j, k in T.grid(8, 8, 8)            ->   for i, k in T.grid(8, 8)                # index_map: (i, j, k) -> (k, i)
    C: C[vi, vj] += A[vi, vk] * B[vk, vj]          A_local: A_local[vk, vi] = A[vi, vk]
                                               for i, j, k in T.grid(8, 8, 8)
                                                   C: C[vi, vj] += A_local[vk, vi] * B[vk, vj]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....arith import IndexMap
from ....arith.analyzer import Analyzer
from ....errors import DeclarationError
from ....tir.arithmetic import const
from ....tir.block import Block, BlockRealize
from ....tir.buffer import Buffer
from ....tir.expr import IterVar, PrimExpr, Range, Var
from ....tir.rewriting import substitute, variables
from ....tir.stmt import Stmt
from ..accesses import Redirection, check_plain_use
from ..bindings import conditions, conjunction
from ..buffers import region_at
from ..copying import Place, before_first, copy_block, scope_end, scope_start, scoped_copy
from ..diagnostics import PrimitiveError
from ..handles import BlockRef
from ..instruction import Applied, Primitive, State, block_of
from ..nests import nested, renewed_loops
from ..program import BlockProgram, Node, block_at, realized
from ..scope import read
from .cache_read import sole_writer
from .cache_write import check_behind, check_written_alone
from .reindex import check_each_once, check_inside, one_access, why_not_one_to_one


def reindex_cache_read(program: BlockProgram, name: str, index: int, storage_scope: str, index_map: IndexMap) -> tuple[BlockProgram, str]:
    """The program with a copy of what a block reads, in the layout of a map of the block's axes, and the copy's name."""
    primitive = "reindex_cache_read"
    node = program.block_node(name)
    buffer, scope = region_at(realized(node), "read", index, primitive).buffer, program.scope_of(node)
    siblings = program.child_blocks(scope)
    writer = sole_writer(siblings, buffer, primitive)
    if writer is not None:
        check_behind(siblings, writer, [node], buffer, primitive)
        if writer.stmt is node.stmt:
            raise PrimitiveError(
                f"{primitive}: {name} writes {buffer.name} too; a copy for reading alone would be of old values", node.stmt
            )
    # What nobody in the scope writes is there from its start.
    place = scope_start(scope) if writer is None else before_first(writer, [node])
    return _with_copy(program, node, place, (buffer, storage_scope, index_map), True)


def reindex_cache_write(program: BlockProgram, name: str, index: int, storage_scope: str, index_map: IndexMap) -> tuple[BlockProgram, str]:
    """The program with a copy that a block writes, in the layout of a map of the block's axes, and the name of what copies back."""
    primitive = "reindex_cache_write"
    node = program.block_node(name)
    region = region_at(realized(node), "write", index, primitive)
    buffer, scope = region.buffer, program.scope_of(node)
    siblings = program.child_blocks(scope)
    sole_writer(siblings, buffer, primitive)
    check_written_alone(program, node, region, primitive)
    readers = [sibling for sibling in siblings if buffer in read(block_at(sibling))]
    check_behind(siblings, node, readers, buffer, primitive)
    place = before_first(node, readers) if readers else scope_end(scope)
    return _with_copy(program, node, place, (buffer, storage_scope, index_map), False)


def _with_copy(
    program: BlockProgram, node: Node, place: Place, what: tuple[Buffer, str, IndexMap], is_read: bool
) -> tuple[BlockProgram, str]:
    (buffer, storage_scope, index_map), block = what, block_at(node)
    primitive = f"reindex_cache_{'read' if is_read else 'write'}"
    check_plain_use(node.stmt, buffer, primitive, node.stmt)
    indices = one_access(node, buffer, primitive)
    near, shape = _mapped(node, index_map, primitive)
    axes = [axis for axis in block.iter_vars if any(axis.var in variables(index) for index in indices)]
    _check_map(node, axes, indices, near, primitive)
    check_inside(node, axes, indices, buffer, primitive)
    if not is_read:
        check_each_once(node, axes, indices, buffer, primitive)
    copy = scoped_copy(buffer, shape, f"{buffer.name}_{storage_scope}", storage_scope)
    name = program.fresh_block_name(copy.name)
    # Spatial, also where the block reduces over the axis: a copy adds nothing up.
    own = [replace(axis, var=Var(axis.var.name, axis.var.dtype), iter_type=IterVar.DATA_PAR) for axis in axes]
    renamed: dict[Var, PrimExpr] = {old.var: new.var for old, new in zip(axes, own, strict=True)}
    far_at, near_at = ([substitute(index, renamed) for index in some] for some in (indices, near))
    made = copy_block(name, own, buffer, far_at, copy, near_at) if is_read else copy_block(name, own, copy, near_at, buffer, far_at)
    nest = _nest(program, node, place, made, [axis.var for axis in axes])
    box = tuple(Range.from_min_extent(index, const(1, index.dtype)) for index in near)
    moved = Redirection(buffer, copy, lambda *_: tuple(near), lambda *_: box)(node.stmt)
    result = place.put(program, nest).replace(node.stmt, moved)
    return result.allocated(block_at(program.scope_of(node)).name_hint, copy), name


def _mapped(node: Node, index_map: IndexMap, primitive: str) -> tuple[list[PrimExpr], tuple[PrimExpr, ...]]:
    """The map's indices in terms of the block's axes, and the shape that holds them."""
    block = block_at(node)
    try:
        near = index_map.map_indices([axis.var for axis in block.iter_vars])
        shape = index_map.map_shape([axis.dom.extent for axis in block.iter_vars if axis.dom is not None])
    except DeclarationError as error:
        raise PrimitiveError(f"{primitive} of {block.name_hint}: {error}", node.stmt) from error
    simplify = Analyzer().simplify  # n * 16 * 16 as a number; of axes nothing is known, so that those of one value stay
    return [simplify(index) for index in near], shape


def _check_map(node: Node, axes: Sequence[IterVar], far: Sequence[PrimExpr], near: Sequence[PrimExpr], primitive: str) -> None:
    """Elements of the copy stand for one element of the buffer each."""
    block = block_at(node)
    used = {axis.var for axis in axes}
    mapped = set().union(*map(variables, near))
    for one, other, what in ((used, mapped, "the index map"), (mapped, used, "the indices of the buffer")):
        missing = [axis.var.name for axis in block.iter_vars if axis.var in one - other]
        if missing:
            raise PrimitiveError(
                f"{primitive}: the axis {missing[0]} of {block.name_hint} doesn't occur in {what}, but in the other", node.stmt
            )
    # the copy's indices tell the buffer's, so no place stands for two elements
    if set(far) <= set(near):
        return
    reason = why_not_one_to_one(axes, near)
    if reason is not None:
        raise PrimitiveError(f"{primitive}: the index map may give one place to several elements: {reason}", node.stmt)


def _nest(program: BlockProgram, node: Node, place: Place, block: Block, axes: Sequence[Var]) -> Stmt:
    """The copy in loops like the block's own, as far as they are inside the place."""
    realize = realized(node)
    values = [v for axis, v in realize.bindings() if axis.var in axes]
    outer = {loop.loop_var for loop in place.loops(program)}
    used = set().union(*map(variables, values))
    loops = [loop for loop in program.loops_above(node) if loop.loop_var not in outer and loop.loop_var in used]
    own, fresh = renewed_loops(loops, plain=True)
    # A condition on a loop that the copy doesn't have can't stand there; without it more is copied than is used.
    holds = [c for c in conditions(realize.predicate) if variables(c) <= {loop.loop_var for loop in loops} | outer]
    return nested(own, BlockRealize(tuple(substitute(v, fresh) for v in values), substitute(conjunction(holds), fresh), block))


class ReindexCacheRead(Primitive):
    """The instruction."""

    kind, method, output = "ReindexCacheRead", "reindex_cache_read", "block"
    inputs, attrs = ("block", "index_map"), ("read_buffer_index", "storage_scope")
    _caching = staticmethod(reindex_cache_read)

    def apply(self, state: State, inputs: Sequence[Any], attrs: Sequence[Any], decision: Any) -> Applied:
        ref = block_of(state, inputs[0], self.method)
        program, name = self._caching(state.program_of(ref), ref.name, attrs[0], attrs[1], inputs[1])
        return Applied(state.updated(ref.func, program), (BlockRef(ref.func, name),))

    def arguments(self, inputs: Sequence[Any], attrs: Sequence[Any]) -> list[tuple[str, Any]]:
        return [("block", inputs[0]), *zip(self.attrs, attrs, strict=True), ("index_map", inputs[1])]


class ReindexCacheWrite(ReindexCacheRead):
    """The instruction."""

    kind, method = "ReindexCacheWrite", "reindex_cache_write"
    attrs = ("write_buffer_index", "storage_scope")
    _caching = staticmethod(reindex_cache_write)
