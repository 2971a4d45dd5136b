"""Set the data type of a buffer of the program: values are converted when they are stored and loaded, which may lose digits.

B: B[vi] = A[vi] * 2.0       ->   B: B[vi] = T.Cast("float16", A[vi] * 2.0)
C: C[vi] = B[vi] + 1.0            C: C[vi] = T.Cast("float32", B[vi]) + 1.0
"""

from __future__ import annotations

from dataclasses import replace

from ....errors import TypeMismatchError
from ....tir.arithmetic import cast
from ....tir.block import Block
from ....tir.buffer import Buffer, decl_buffer
from ....tir.dtype import parse_dtype
from ....tir.expr import BufferLoad
from ....tir.rewriting import Node, post_order_rewrite
from ....tir.stmt import BufferStore
from ..accesses import check_plain_use
from ..bindings import in_other_buffer
from ..buffers import own_buffer
from ..diagnostics import PrimitiveError
from ..instruction import BlockPrimitive
from ..program import BlockProgram


def unsafe_set_dtype(program: BlockProgram, name: str, index: int, dtype: str) -> BlockProgram:
    """The program with the buffer of a number among those that a block writes of another type."""
    realize = program.realize(name)
    buffer = own_buffer(program, realize, index, "unsafe_set_dtype")
    try:
        parse_dtype(dtype)
    except TypeMismatchError as error:
        raise PrimitiveError(f"unsafe_set_dtype: {error}", realize) from None
    if buffer.dtype == dtype:
        return program
    check_plain_use(program.func.body, buffer, "unsafe_set_dtype", realize)
    new = decl_buffer(buffer.shape, dtype, buffer.name, strides=buffer.strides or None, scope=buffer.scope())
    return BlockProgram(program.func.with_body(post_order_rewrite(program.func.body, lambda node: _converted(node, buffer, new))))


def _converted(node: Node, old: Buffer, new: Buffer) -> Node | None:
    if isinstance(node, BufferLoad) and node.buffer is old:
        return cast(BufferLoad(new, node.indices, node.predicate), old.dtype)
    if isinstance(node, BufferStore) and node.buffer is old:
        return replace(node, buffer=new, value=cast(node.value, new.dtype))
    return in_other_buffer(node, old, new) if isinstance(node, Block) else None


class UnsafeSetDType(BlockPrimitive):
    """The instruction."""

    kind, method, attrs = "UnsafeSetDType", "unsafe_set_dtype", ("buffer_index", "dtype")
    change = staticmethod(unsafe_set_dtype)
