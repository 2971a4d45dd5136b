"""Operators that take axes together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import te, topi
from ...te.reducer import Reducer, greatest, least
from ...tir.expr import IntImm, PrimExpr
from ..expr import Call
from ..struct_info import StructInfo
from .row import Expr, Operand, Pattern, listed, operator, tensor


def reduced(operand: Operand, axis: Any, keepdims: bool, dtype: str | None = None) -> StructInfo:
    """A tensor without some axes, or with extents of 1 there."""
    axes = operand.axes(axis)
    if axes is None:
        return operand.like(None, dtype, 0 if axis is None and not keepdims else -1)
    if operand.extents is None:
        return operand.like(None, dtype, operand.ndim if keepdims or operand.ndim == -1 else operand.ndim - len(axes))
    kept = [IntImm("int64", 1) if n in axes else e for n, e in enumerate(operand.extents) if keepdims or n not in axes]
    return operand.like(kept, dtype)


def _along(axis: Any) -> Any:
    return None if axis is None else tuple(axis) if isinstance(axis, Sequence) else axis


def _reduction(name: str, te_form: Any, numpy: Callable[..., Any], dtype: str | None = None) -> Callable[..., Call]:
    def rule(x: Expr, axis: int | Sequence[int] | None = None, keepdims: bool = False) -> StructInfo:
        return reduced(tensor(x, "x"), axis, keepdims, dtype)

    def evaluated(x: Any, axis: Any, keepdims: bool) -> Any:
        # Means and variances of float16 are taken in float32 by NumPy itself, those of ml_dtypes' bfloat16 aren't.
        wide = x.astype(np.float32) if name in _MEANS and str(x.dtype) == "bfloat16" else x
        found = numpy(wide, axis=_along(axis), keepdims=keepdims)
        # NumPy sums small integers in int64; cut back, they wrap around as sums in their own dtype do.
        return np.asarray(found).astype(dtype or x.dtype)

    rule.__doc__ = f"`{name}` along axes, or of all elements."
    return operator(name, Pattern.REDUCTION, te=te_form, numpy=evaluated, settled=listed("axis"))(rule)


_HALVES = ("float16", "bfloat16")
_MEANS = ("mean", "std", "variance")


def _count(x: Any, axis: Any) -> PrimExpr | int:
    """How many elements are taken together."""
    axes = range(len(x.shape)) if axis is None else [axis] if isinstance(axis, int) else axis
    total: Any = 1
    for one in axes:
        total = total * x.shape[one]
    return total  # type: ignore[no-any-return]


def _mean(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    if x.dtype in _HALVES:  # which hold neither the sum of 65504 elements nor their number
        return topi.cast(_mean(topi.cast(x, "float32"), axis, keepdims), x.dtype)
    total = topi.sum(x, axis, keepdims)
    count = _count(x, axis)
    return topi.divide(total, te.const(count, x.dtype) if isinstance(count, int) else count.astype(x.dtype))


def _variance(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    # In two passes: the mean of squares less the squared mean would cancel where the mean is large.
    centred = topi.subtract(x, _mean(x, axis, True))
    return _mean(topi.multiply(centred, centred), axis, keepdims)


def _std(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return topi.sqrt(_variance(x, axis, keepdims))


def _extreme(reducer: Reducer, name: str) -> Callable[..., Any]:
    """The tensor computation of a greatest or least element: NaN where one is, and an infinity of rows of that."""
    return lambda x, axis=None, keepdims=False: topi.reduction._reduce(x, axis, keepdims, reducer, f"T_{name}")


def _np_extreme(function: Callable[..., Any], worst: float) -> Callable[..., Any]:
    """The same on NumPy's arrays; of no elements it is what is worst in the dtype."""

    def least(dtype: Any) -> Any:
        if dtype.kind == "b":
            return worst > 0
        return worst if dtype.kind not in "iu" else (np.iinfo(dtype).max if worst > 0 else np.iinfo(dtype).min)

    def evaluated(x: Any, axis: Any, keepdims: bool) -> Any:
        more = {} if x.size else {"initial": least(x.dtype)}
        return function(x, axis=axis, keepdims=keepdims, **more)

    return evaluated


max = _reduction("max", _extreme(greatest, "max"), _np_extreme(np.max, -math.inf))
mean = _reduction("mean", _mean, np.mean)
min = _reduction("min", _extreme(least, "min"), _np_extreme(np.min, math.inf))
prod = _reduction("prod", topi.prod, np.prod)
std = _reduction("std", _std, np.std)
sum = _reduction("sum", topi.sum, np.sum)
variance = _reduction("variance", _variance, np.var)


def _position(name: str, largest: bool, numpy: Callable[..., Any]) -> Callable[..., Call]:
    def rule(x: Expr, axis: int | None = None, keepdims: bool = False) -> StructInfo:
        return reduced(tensor(x, "x"), axis, keepdims, "int64")

    def computed(x: Any, axis: Any, keepdims: bool) -> Any:
        return topi.cast(topi.reduction.first_extreme(x, axis, keepdims, largest), "int64")

    def evaluated(x: Any, axis: Any, keepdims: bool) -> Any:
        return np.asarray(numpy(x, axis=axis, keepdims=keepdims)).astype(np.int64)

    rule.__doc__ = f"`{name}` along an axis, the first one of several, or of NaN where there are some; of all elements without one."
    return operator(name, Pattern.REDUCTION, te=computed, numpy=evaluated)(rule)


argmax = _position("argmax", True, np.argmax)
argmin = _position("argmin", False, np.argmin)
