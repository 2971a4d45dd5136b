"""The statement of an extern stage, on the buffers that its tensors live in.

A compact placeholder without an offset gives way to the tensor's buffer; one with strides or an offset of its own is
bound to the whole of that buffer (`BufferBind`), which gives its variables their values.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import LoweringError
from ...te.extern import ExternOp, addressed, is_plain
from ...te.tensor import Tensor
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import IntImm, PrimExpr, Range, Var
from ...tir.stmt import BufferBind, Stmt
from ..rebuild import Copier


def extern_body(op: ExternOp, buffer_of: Callable[[Tensor], Buffer]) -> Stmt:
    """The body with fresh variables, reading and writing the buffers that `buffer_of` gives for its tensors.

    Raises:
        LoweringError: if the body takes the address of a compact buffer, and the tensor's buffer has strides.
    """
    plain = {placeholder: buffer_of(tensor) for placeholder, tensor in op.pairs() if is_plain(placeholder)}
    pointers = addressed(op)
    for placeholder in plain:
        if placeholder.data in pointers and not is_plain(plain[placeholder]):
            raise LoweringError(
                f"extern {op.name} takes the address of {placeholder.name}, which it knows as compact, but {plain[placeholder].name} has "
                "strides or an offset; declare the extern with in_buffers or out_buffers that have strides as variables"
            )
    mapping: dict[Var, PrimExpr] = {placeholder.data: buffer.data for placeholder, buffer in plain.items()}
    body = op.statement
    for placeholder, tensor in reversed(op.pairs()):
        if placeholder not in plain:
            source = buffer_of(tensor)
            box = tuple(Range.from_min_extent(IntImm(extent.dtype, 0), extent) for extent in source.shape)
            body = BufferBind(placeholder, BufferRegion(source, box), body)
    return Copier(mapping, plain).stmt(body)
