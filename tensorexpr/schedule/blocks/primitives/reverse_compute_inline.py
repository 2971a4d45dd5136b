"""Reverse compute inline: what a block makes of a buffer's elements, done where they are written.

for i: B: B[vi] = A[vi] * 2.0             ->   for i: B: C[vi // 8, vi % 8] = A[vi] * 2.0 + 1.0
for i, j: C: C[vi, vj] = B[vi * 8 + vj] + 1.0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....arith.analyzer import Analyzer
from ....arith.block_access import get_block_read_write_region
from ....arith.padded_inverse import padded_inverse
from ....errors import DeclarationError
from ....tir.arithmetic import all as all_of
from ....tir.arithmetic import is_const_int
from ....tir.block import BlockRealize
from ....tir.buffer import Buffer
from ....tir.expr import BufferLoad, PrimExpr, Range, Var
from ....tir.rewriting import post_order_rewrite, substitute, walk
from ....tir.stmt import BufferStore, For, ForKind, IfThenElse, Stmt
from ..bindings import bound_values, is_true, simplified
from ..buffers import stated_pointers
from ..coverage import reads_inside, why_not_covered
from ..dataflow import check_movable, why_not_whole
from ..diagnostics import PrimitiveError
from ..instruction import BlockPrimitive
from ..program import ROOT, BlockProgram, realized
from ..scope import Scope, check_complete, read, written
from .compute_inline import check_no_output, single_store, without_buffer

NAME = "reverse_compute_inline"


def reverse_compute_inline(program: BlockProgram, name: str) -> BlockProgram:
    """The program with a block done in its only producer."""
    node = program.block_node(name)
    realize = realized(node)
    if node is program.root:
        raise PrimitiveError(f"{NAME} takes a block inside of the root block, not the root itself", realize)
    scope = Scope.around(program, node)
    check_complete(scope, realize, NAME)
    check_movable(program, node, NAME)
    store = single_store(realize, NAME)
    producer, buffer = _producer(program, scope, realize)
    made = _producing_store(producer, buffer)
    # The producer's points will do the block's work: also at points that the block's own loops would leave out.
    reason = why_not_whole(realize, program.loops_above(node))
    if reason is not None:
        raise PrimitiveError(f"{NAME}: {name} must run at each point of its axes: {reason}", realize)
    lacking = why_not_covered(program, program.node_of(producer), node)
    if lacking is not None:
        raise PrimitiveError(f"{NAME}: where {name} runs isn't told by what is written: {lacking}", realize)
    inverse, valid = _inverse(realize, store, buffer, made)
    value = substitute(store, inverse)
    fused = post_order_rewrite(value, lambda n: made.value if isinstance(n, BufferLoad) and n.buffer is buffer else None)
    assert isinstance(fused, BufferStore)
    changed = _with_store(program, producer, fused, valid)
    root = realized(scope.root).block.name_hint or ROOT
    return without_buffer(program.replaced({realize: None, producer: changed}), root, buffer, NAME)


def _producer(program: BlockProgram, scope: Scope, realize: BlockRealize) -> tuple[BlockRealize, Buffer]:
    """The only producer of what a block reads, which is read by nobody else, and the buffer."""
    name = realize.block.name_hint
    producers = scope.producers(realize.block)
    if len(producers) != 1:
        names = ", ".join(producer.block.name_hint for producer in producers) or "none"
        raise PrimitiveError(f"{NAME}: {name} must read what one block makes; its producers: {names}", realize)
    (producer,) = producers
    check_no_output(program, program.node_of(producer), NAME)
    reason = scope.why_not_complete(producer.block)
    if reason is not None:
        raise PrimitiveError(
            f"{NAME}: the producer {producer.block.name_hint} must be complete: {reason}; reverse_compute_at puts {name} after a reduction",
            realize,
        )
    others = [consumer.block.name_hint for consumer in scope.consumers(producer.block) if consumer is not realize]
    if others:
        raise PrimitiveError(f"{NAME}: what {producer.block.name_hint} writes is also read by {', '.join(others)}", realize)
    shared = [b for b in read(realize.block) if b in written(producer.block)]
    if len(shared) != 1:
        names = ", ".join(b.name for b in shared)
        raise PrimitiveError(f"{NAME}: {name} must read one buffer that {producer.block.name_hint} writes, not {names}", realize)
    return producer, shared[0]


def _producing_store(producer: BlockRealize, buffer: Buffer) -> BufferStore:
    """The producer's only store, which may stand in loops, as that of `write_at` does."""
    body = producer.block.body
    while isinstance(body, For) and body.kind is ForKind.SERIAL:
        body = body.body
    bare = producer if body is producer.block.body else replace(producer, block=replace(producer.block, body=body))
    store = single_store(bare, NAME)
    assert store.buffer is buffer
    return store


def _inverse(realize: BlockRealize, store: BufferStore, buffer: Buffer, made: BufferStore) -> tuple[dict[Var, PrimExpr], PrimExpr]:
    """A block's axes in terms of the producer's, and the condition under which there is such a point."""
    axes = realize.block.iter_vars
    loads = {node.indices for node in walk(store) if isinstance(node, BufferLoad) and node.buffer is buffer}
    # With two places a point of the producer belongs to two points of the block, and no one store does for both.
    if len(loads) != 1:
        raise PrimitiveError(f"{NAME}: {realize.block.name_hint} reads {buffer.name} at {len(loads)} different places", realize)
    (indices,) = loads
    if not all(reads_inside(realize.block, region) for region in realize.block.reads if region.buffer is buffer):
        raise PrimitiveError(f"{NAME}: {realize.block.name_hint} has points at which it reads nothing of {buffer.name}: padding", realize)
    extents = [axis.dom.extent for axis in axes if axis.dom is not None and is_const_int(axis.dom.min, 0)]
    if len(extents) != len(axes):
        raise PrimitiveError(f"{NAME}: {realize.block.name_hint} has an axis that doesn't start at 0", realize)
    places = [Var(f"place_{n}", index.dtype) for n, index in enumerate(made.indices)]
    try:
        back, valid = padded_inverse([axis.var for axis in axes], indices, extents, places, buffer.shape, _shown(axes, indices))
    except DeclarationError as error:
        raise PrimitiveError(
            f"{NAME}: {realize.block.name_hint} reads {buffer.name} where its axes can't be told from it: {error}", realize
        ) from error
    at = dict(zip(places, made.indices, strict=True))
    same = {
        index: place for index, place in zip(indices, places, strict=True) if isinstance(index, Var)
    }  # keep the names of axes of one value
    return {axis.var: substitute(same.get(axis.var, value), at) for axis, value in zip(axes, back, strict=True)}, substitute(valid, at)


def _shown(axes: Sequence[Any], indices: Sequence[PrimExpr]) -> str:
    return f"({', '.join(axis.name for axis in axes)}) -> ({', '.join(map(str, indices))})"


def _with_store(program: BlockProgram, producer: BlockRealize, store: BufferStore, valid: PrimExpr) -> BlockRealize:
    """The producer with another store, where there is something to store."""
    block = producer.block
    nest: list[For] = []
    inner = block.body
    while isinstance(inner, For):
        nest.append(inner)
        inner = inner.body
    ranges = {axis.var: axis.dom for axis in block.iter_vars if axis.dom is not None}
    inside = Analyzer({**ranges, **{loop.loop_var: Range.from_min_extent(loop.min, loop.extent) for loop in nest}})
    store = replace(store, indices=tuple(index if isinstance(index, Var) else inside.simplify(index) for index in store.indices))
    holds, predicate = inside.simplify(valid), producer.predicate
    body: Stmt = store if is_true(holds) or not nest else IfThenElse(holds, store)
    for loop in reversed(nest):
        body = replace(loop, body=body)
    bare = replace(block, body=body, reads=(), writes=())
    reads, writes = get_block_read_write_region(bare, stated_pointers(block))
    condition = substitute(holds, bound_values(producer))
    if not is_true(condition) and not nest:
        loops = program.loops_above(program.node_of(producer))
        predicate = simplified(condition if is_true(predicate) else all_of(predicate, condition), loops)
    return replace(producer, predicate=predicate, block=replace(bare, reads=tuple(reads), writes=tuple(writes)))


class ReverseComputeInline(BlockPrimitive):
    """The instruction."""

    kind, method = "ReverseComputeInline", NAME
    change = staticmethod(reverse_compute_inline)
