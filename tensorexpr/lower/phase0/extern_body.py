"""The statement of an extern stage, on the buffers that its tensors live in.

A compact placeholder without an offset gives way to the tensor's buffer; one with strides or an offset of its own is
bound to the whole of that buffer (`BufferBind`), which gives its variables their values. Launches become loops over threads, as of
all stages. Blocks, of a function that became
a stage, are lowered before: the function around has none.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import LoweringError
from ...te.extern import ExternOp, addressed, extern_function, is_plain
from ...te.tensor import Tensor
from ...tir.buffer import Buffer, BufferRegion
from ...tir.expr import IntImm, PrimExpr, Range, Var
from ...tir.stmt import BufferBind, Stmt
from ..context import PassContext
from ..device.launch_threads import thread_loops
from ..device.launches import has_threads
from ..phase1.blocks import has_blocks
from ..phase1.compact_buffer_allocation import compact_buffer_allocation
from ..phase1.convert_blocks_to_opaque import convert_blocks_to_opaque
from ..phase1.lower_init_block import lower_init_block
from ..phase1.lower_match_buffer import lower_match_buffer
from ..phase1.lower_opaque_block import lower_opaque_block
from ..phase1.plan_and_update_buffer_allocation_location import plan_and_update_buffer_allocation_location
from ..rebuild import Copier

# As in the pipeline, but for software pipelines: the loops of an extern are the user's.
_BLOCK_PASSES = (
    lower_init_block,
    plan_and_update_buffer_allocation_location,
    convert_blocks_to_opaque,
    compact_buffer_allocation,
    lower_match_buffer,
    lower_opaque_block,
)


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
    body = _without_blocks(op)
    for placeholder, tensor in reversed(op.pairs()):
        if placeholder not in plain:
            source = buffer_of(tensor)
            box = tuple(Range.from_min_extent(IntImm(extent.dtype, 0), extent) for extent in source.shape)
            body = BufferBind(placeholder, BufferRegion(source, box), body)
    return Copier(mapping, plain).stmt(body)


def _without_blocks(op: ExternOp) -> Stmt:
    func = extern_function(op)
    if has_threads(func):
        func = thread_loops(func, PassContext.current())
    if has_blocks(func):
        for lowered in _BLOCK_PASSES:
            func = lowered(func, PassContext.current())
    return func.body
