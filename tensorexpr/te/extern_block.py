"""The block of an extern: its statement on the buffers that its tensors live in.

    with T.block("C"):
        T.reads(A[0:128, 0:128], B[0:128, 0:128])
        T.writes(C[0:128, 0:128])
        T.call_packed("my.matmul", ...)

It reads and writes its tensors whole, and says so: schedules move other blocks by what blocks state.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..tir.attrs import FrozenMap
from ..tir.block import Block, BlockRealize, MatchBufferRegion
from ..tir.buffer import Buffer, BufferRegion
from ..tir.expr import PrimExpr, Var
from ..tir.rewriting import walk
from ..tir.stmt import BufferStore, Stmt
from ..tir.stmt_functor import Renaming
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
    # a statement may also hand out a pointer by itself, as calls of foreign functions do
    pointers: dict[Var, PrimExpr] = {placeholder.data: buffer.data for placeholder, buffer in plain.items()}
    body = Renaming(pointers, folding=False, buffers=plain).apply(op.statement)
    reads = tuple(dict.fromkeys(BufferRegion.full_region(buffers[tensor]) for tensor in op.input_tensors))
    stored = {node.buffer.data for node in walk(op.statement) if isinstance(node, BufferStore)}
    changed = [buffers[tensor] for placeholder, tensor in op.pairs() if placeholder.data in stored or tensor.op is op]
    writes = tuple(map(BufferRegion.full_region, changed))
    block = Block((), reads, writes, names.fresh(op.name), body, None, match_buffers=views, annotations=annotations)
    return BlockRealize((), TRUE, block)
