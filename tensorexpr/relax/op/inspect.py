"""What tensors say of themselves: `relax.op.inspect.tensor_shape_i`."""

from ..ops.inspection import (
    tensor_byte_offset,
    tensor_dtype_bits,
    tensor_dtype_code,
    tensor_dtype_lanes,
    tensor_elem_offset,
    tensor_ndim,
    tensor_shape_i,
    tensor_stride_i,
)

__all__ = [
    "tensor_byte_offset", "tensor_dtype_bits", "tensor_dtype_code", "tensor_dtype_lanes", "tensor_elem_offset", "tensor_ndim",
    "tensor_shape_i", "tensor_stride_i",
]  # fmt: skip
