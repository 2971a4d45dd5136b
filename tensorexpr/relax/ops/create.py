"""Operators that make tensors of a stated shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import topi
from ...tir.dtype import to_numpy
from ..expr import const
from ..struct_info import RelaxExpr, StructInfo, TensorStructInfo
from .row import Expr, Pattern, Shape, operator, tensor


def _np_full(shape: Any, fill_value: Any, dtype: str) -> Any:
    return np.full(shape, fill_value, to_numpy(dtype))


@operator(
    "full", Pattern.INJECTIVE, te=lambda shape, fill_value, dtype: topi.cast(topi.broadcast_to(fill_value, shape), dtype), numpy=_np_full
)
def _full(shape: Shape, fill_value: Expr, dtype: str) -> StructInfo:
    """A tensor of one value."""
    return TensorStructInfo(shape, dtype)


def full(shape: Any, fill_value: Any, dtype: str | None = None) -> Any:
    """A tensor of one value, a number or a tensor without axes; of its dtype if no other is stated."""
    value = fill_value if isinstance(fill_value, RelaxExpr) else const(fill_value, dtype)
    return _full(shape, value, dtype or tensor(value).dtype)


def _filled(name: str, value: int) -> Any:
    def rule(shape: Shape, dtype: str) -> StructInfo:
        return TensorStructInfo(shape, dtype)

    def made(shape: Any, dtype: str) -> Any:
        return topi.full(shape, dtype, value)

    rule.__doc__ = f"A tensor of {name}."
    return operator(name, Pattern.INJECTIVE, te=made, numpy=lambda shape, dtype: np.full(shape, value, to_numpy(dtype)))(rule)


def _filled_like(name: str, value: int) -> Any:
    def rule(x: Expr, dtype: str | None = None) -> StructInfo:
        info = tensor(x, "x").info
        return TensorStructInfo(info.shape, dtype or info.dtype, info.vdevice, info.ndim)

    def made(x: Any, dtype: str | None) -> Any:
        return topi.full(x.shape, dtype or x.dtype, value)

    def evaluated(x: Any, dtype: str | None) -> Any:
        return np.full(x.shape, value, x.dtype if dtype is None else to_numpy(dtype))

    rule.__doc__ = f"A tensor of {name.partition('_')[0]}, of the shape of another."
    return operator(name, Pattern.INJECTIVE, te=made, numpy=evaluated)(rule)


zeros, ones = _filled("zeros", 0), _filled("ones", 1)
zeros_like, ones_like = _filled_like("zeros_like", 0), _filled_like("ones_like", 1)
