"""The block of an extern: its statement on the buffers that its tensors live in.

    with T.block("C"):
        T.reads(A[0:128, 0:128], B[0:128, 0:128])
        T.writes(C[0:128, 0:128])
        T.call_packed("my.matmul", ...)

It reads and writes its tensors whole, and says so: schedules move other blocks by what blocks state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from ..tir.attrs import FrozenMap
from ..tir.block import Block, BlockRealize, MatchBufferRegion
from ..tir.buffer import Buffer, BufferRegion
from ..tir.expr import BufferLoad, PrimExpr, Var
from ..tir.rewriting import Node, post_order_rewrite, substitute
from ..tir.stmt import BufferStore, Stmt
from .compute_block import TRUE, BlockNames
from .extern import ExternOp, is_plain
from .tensor import Tensor


def extern_block(op: ExternOp, buffers: Mapping[Tensor, Buffer], names: BlockNames, annotations: FrozenMap) -> Stmt:
    """The block of `op`, whose tensors live in `buffers`.

    Placeholders with strides or offsets of their own are views within the block (`match_buffer`).
    """
    plain = {placeholder: buffers[tensor] for placeholder, tensor in op.pairs() if is_plain(placeholder)}
    views = tuple(
        MatchBufferRegion(placeholder, BufferRegion.full_region(buffers[tensor]))
        for placeholder, tensor in op.pairs()
        if placeholder not in plain
    )
    body = _moved(op.statement, plain)
    reads = tuple(dict.fromkeys(BufferRegion.full_region(buffers[tensor]) for tensor in op.input_tensors))
    writes = tuple(BufferRegion.full_region(buffers[op.output(number)]) for number in range(op.num_outputs))
    block = Block((), reads, writes, names.fresh(op.name), body, None, match_buffers=views, annotations=annotations)
    return BlockRealize((), TRUE, block)


def _moved(body: Stmt, buffers: Mapping[Buffer, Buffer]) -> Stmt:
    pointers: dict[Var, PrimExpr] = {placeholder.data: buffer.data for placeholder, buffer in buffers.items()}

    def rule(node: Node) -> Node | None:
        if isinstance(node, (BufferLoad, BufferStore)) and node.buffer in buffers:
            return cast(Node, replace(cast(Any, node), buffer=buffers[node.buffer]))
        return None

    return substitute(post_order_rewrite(body, rule), pointers)


__all__ = ["extern_block"]
