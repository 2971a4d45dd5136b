"""Compute inline: a block's value written where its buffer is read, in place of the buffer.

for i: B: B[vi] = A[vi] * 2.0      ->   for i: C: C[vi] = A[vi] * 2.0 + 1.0
for i: C: C[vi] = B[vi] + 1.0
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ....arith.block_access import get_block_read_write_region
from ....arith.padded_inverse import padded_inverse
from ....errors import DeclarationError
from ....tir.arithmetic import is_const_int
from ....tir.block import Block, BlockRealize
from ....tir.buffer import Buffer
from ....tir.expr import BufferLoad, Call, IntImm, PrimExpr, Var
from ....tir.rewriting import Node as IRNode
from ....tir.rewriting import post_order_rewrite, substitute, walk
from ....tir.stmt import BufferStore, Stmt
from ..buffers import stated_pointers
from ..dataflow import check_movable
from ..diagnostics import PrimitiveError
from ..instruction import BlockPrimitive
from ..program import ROOT, BlockProgram, Node, realized
from ..scope import Scope, check_complete, written


def compute_inline(program: BlockProgram, name: str) -> BlockProgram:
    """The program with a block's value in place of the loads of its buffer."""
    node = program.block_node(name)
    realize = realized(node)
    check_no_output(program, node, "compute_inline")
    check_complete(Scope.around(program, node), realize, "compute_inline")
    check_movable(program, node, "compute_inline")
    store = single_store(realize, "compute_inline")
    places = [Var(f"place_{n}", index.dtype) for n, index in enumerate(store.indices)]
    value = substitute(store.value, _axes_at(realize, store, places))

    def expanded(load: BufferLoad) -> PrimExpr:
        return substitute(value, dict(zip(places, load.indices, strict=True)))

    consumers = Scope.around(program, node).consumers(realize.block)
    changes: dict[Stmt, Stmt | None] = {consumer: with_loads(consumer, store.buffer, expanded, "compute_inline") for consumer in consumers}
    scope = _name_of(program.scope_of(node))
    return without_buffer(program.replaced({realize: None, **changes}), scope, store.buffer, "compute_inline")


def check_no_output(program: BlockProgram, node: Node, primitive: str) -> None:
    """Refuse a block that writes what outlives its scope.

    Raises:
        PrimitiveError: with the buffer.
    """
    realize = realized(node)
    if node is program.root:
        raise PrimitiveError(f"{primitive} takes a block inside of the root block, not the root itself", realize)
    own = realized(program.scope_of(node)).block.alloc_buffers
    lasting = next((buffer for buffer in written(realize.block) if buffer not in own), None)
    if lasting is not None:
        raise PrimitiveError(
            f"{primitive}: {realize.block.name_hint} is an output block, which writes {lasting.name}, a result; "
            "only what is computed on the way can go",
            realize,
        )


def single_store(realize: BlockRealize, primitive: str) -> BufferStore:
    """The store that a block consists of.

    Raises:
        PrimitiveError: if it is something else.
    """
    block = realize.block
    store = block.body
    name = block.name_hint
    if block.init is not None:
        raise PrimitiveError(f"{primitive}: {name} is a reduction; it has no single value to inline", realize)
    if not isinstance(store, BufferStore) or store.predicate is not None or block.match_buffers or block.alloc_buffers:
        raise PrimitiveError(f"{primitive}: {name} is more than one store of a value", realize)
    if [region.buffer for region in block.writes] != [store.buffer]:
        raise PrimitiveError(f"{primitive}: {name} must write {store.buffer.name} alone, as it says in T.writes", realize)
    return store


def _axes_at(realize: BlockRealize, store: BufferStore, places: Sequence[Var]) -> dict[Var, PrimExpr]:
    """A block's axes in terms of the indices at which it writes."""
    axes, indices = realize.block.iter_vars, store.indices
    # an axis of one value needs no index that tells it
    found: dict[Var, PrimExpr] = {axis.var: axis.dom.min for axis in axes if axis.dom is not None and is_const_int(axis.dom.extent, 1)}
    found |= {index: place for index, place in zip(indices, places, strict=True) if isinstance(index, Var)}
    if len(found) == len(axes) and all(isinstance(index, (Var, IntImm)) for index in indices) and len(set(indices)) == len(indices):
        return found
    extents = [axis.dom.extent for axis in axes if axis.dom is not None and is_const_int(axis.dom.min, 0)]
    shown = f"[{', '.join(map(str, indices))}]"
    if len(extents) == len(axes):
        try:
            back, _ = padded_inverse([axis.var for axis in axes], indices, extents, places, store.buffer.shape, shown)
        except DeclarationError:
            pass
        else:
            return {axis.var: value for axis, value in zip(axes, back, strict=True)}
    raise PrimitiveError(
        f"compute_inline: {realize.block.name_hint} must write {store.buffer.name} at indices that tell its axes, not at {shown}", realize
    )


def with_loads(realize: BlockRealize, buffer: Buffer, value: Callable[[BufferLoad], PrimExpr], primitive: str) -> BlockRealize:
    """A realization with the loads of a buffer replaced, and what its blocks say they read.

    Raises:
        PrimitiveError: if the buffer is used otherwise than by loads of elements.
    """

    def rule(node: IRNode) -> IRNode | None:
        if isinstance(node, BufferLoad) and node.buffer is buffer:
            if node.predicate is not None or any(index.dtype not in ("int32", "int64") for index in node.indices):
                raise PrimitiveError(f"{primitive}: {realize.block.name_hint} reads {buffer.name} as vectors", realize)
            return value(node)
        # Inner blocks state their accesses too; those that don't name the buffer keep what they say.
        if isinstance(node, Block) and any(region.buffer is buffer for region in (*node.reads, *node.writes)):
            reads, writes = get_block_read_write_region(node, stated_pointers(node))
            return replace(node, reads=tuple(reads), writes=tuple(writes))
        return None

    _check_plain_use(realize, buffer, primitive)
    found = post_order_rewrite(realize, rule)
    assert isinstance(found, BlockRealize)
    return found


def _check_plain_use(realize: BlockRealize, buffer: Buffer, primitive: str) -> None:
    for node in walk(realize):
        views = node.match_buffers if isinstance(node, Block) else ()
        by_address = (
            isinstance(node, Call) and node.op == "tir.address_of" and any(getattr(arg, "buffer", None) is buffer for arg in node.args)
        )
        if node is buffer.data or by_address or any(view.source.buffer is buffer for view in views):
            raise PrimitiveError(f"{primitive}: {realize.block.name_hint} uses {buffer.name} by its address or through a view", realize)


def without_buffer(program: BlockProgram, scope: str, buffer: Buffer, primitive: str) -> BlockProgram:
    """The program without a buffer of a scope that nobody uses any more."""
    left = next((node for nodes in program.blocks.values() for node in nodes if _mentions(realized(node).block, buffer)), None)
    if left is not None:
        raise PrimitiveError(f"{primitive}: {realized(left).block.name_hint} also uses {buffer.name}", left.stmt)
    return program.map_block(scope, lambda block: replace(block, alloc_buffers=tuple(b for b in block.alloc_buffers if b is not buffer)))


def _mentions(block: Block, buffer: Buffer) -> bool:
    return any(region.buffer is buffer for region in block.regions())


def _name_of(node: Node) -> str:
    return realized(node).block.name_hint or ROOT


class ComputeInline(BlockPrimitive):
    """The instruction."""

    kind, method = "ComputeInline", "compute_inline"
    change = staticmethod(compute_inline)
