"""Shapes as tensors, and tensors as shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ..struct_info import ShapeStructInfo, StructInfo, TensorStructInfo
from .row import Expr, Pattern, Shape, operator, tensor


@operator("shape_to_tensor", Pattern.OPAQUE, numpy=lambda shape: np.asarray(shape, dtype=np.int64))
def shape_to_tensor(shape: Shape) -> StructInfo:
    """The extents of a shape as a tensor of int64 with one axis."""
    info: Any = shape.struct_info
    if not isinstance(info, ShapeStructInfo):
        raise DeclarationError(f"relax.op.shape_to_tensor: expected a shape, not {info}")
    return TensorStructInfo(None if info.ndim < 0 else (info.ndim,), "int64", ndim=1)


@operator("tensor_to_shape", Pattern.OPAQUE, numpy=lambda data: tuple(int(one) for one in data))
def tensor_to_shape(data: Expr) -> StructInfo:
    """A tensor of integers with one axis as a shape; `match_cast` gives its extents names."""
    operand = tensor(data, "data")
    if operand.ndim not in (1, -1) or operand.dtype not in ("int64", ""):
        raise DeclarationError(f"relax.op.tensor_to_shape: a tensor of int64 with one axis is a shape, not {operand.info}")
    count = None if operand.extents is None else as_int(operand.extents[0])
    return ShapeStructInfo(None, -1 if count is None else count)
