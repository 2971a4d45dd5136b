"""Products of integers of eight bits less the numbers that stand for zero, as calls of other operators, in int32.

    sum of (a - p)(b - q)  =  sum of a b  -  q sum of a  -  p sum of (b - q)

The last term is a constant where b is one, and the middle one is gone where b is symmetric (Jacob et al. 2018, 2.3). Instructions
for dot products multiply unsigned with signed bytes, so the left factor becomes unsigned and the right one signed: both the number
and its zero move by 128, which changes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...tir.arithmetic import as_int
from ..expr import Call, Constant, const
from .conv import conv1d, conv2d, conv3d
from .elementwise import add, astype, multiply, subtract
from .linear import matmul
from .manipulate import reshape
from .pad import pad
from .reduce import sum as total_of
from .window import paddings

_SUMS = "int32"
_CONVOLUTIONS = (conv1d, conv2d, conv3d)
Emit = Callable[[Any], Any]


def _itself(expr: Any) -> Any:
    return expr


def zero_or_none(zero: Any) -> Any:
    """A zero point in int32; None for one that is known to be 0 everywhere."""
    if not isinstance(zero, Constant):
        return zero if zero is None or zero.struct_info.dtype == _SUMS else astype(zero, _SUMS)
    values = zero.data.numpy().astype(np.int32)
    return const(values) if values.any() else None


def _moved(zero: Any, distance: int) -> Any:
    """A zero point that stands elsewhere; None at 0."""
    known = zero_or_none(zero)
    if known is None:
        return const(np.int32(distance))
    return (
        zero_or_none(const(known.data.numpy() + np.int32(distance))) if isinstance(known, Constant) else add(known, const(distance, _SUMS))
    )


def in_bytes_of(x: Any, zero: Any, dtype: str) -> tuple[Any, Any]:
    """Bytes and their zero as "uint8" or "int8", whichever they were; the zero is None or in int32."""
    if x.struct_info.dtype == dtype:
        return x, zero_or_none(zero)
    distance = 128 if dtype == "uint8" else -128
    return astype(add(astype(x, _SUMS), const(distance, _SUMS)), dtype), _moved(zero, distance)


def integer_matmul(x1: Any, x2: Any, zero1: Any = None, zero2: Any = None, emit: Emit = _itself) -> Any:
    """The product of matrices of bytes less their zeros, in int32.

    Args:
        x1, x2: of int8 or uint8, as of `matmul`.
        zero1: what stands for zero in x1: one number, one for each row, or a column for each matrix of a stack; None for 0.
        zero2: the same of x2, for each column.
        emit: makes variables of what is used more than once.
    """
    a, p = in_bytes_of(x1, zero1, "uint8")
    b, q = in_bytes_of(x2, zero2, "int8")
    a, b = emit(a), emit(b)
    found = matmul(a, b, _SUMS)
    rows, columns = a.struct_info.ndim > 1, b.struct_info.ndim > 1
    if p is not None:
        column = reshape(p, [-1, 1]) if p.struct_info.ndim == 1 and rows else p
        found = subtract(found, multiply(_column_sums(b, q, -2 if columns else -1, rows and columns), column))
    if q is not None:
        found = subtract(found, multiply(total_of(astype(a, _SUMS), [-1], keepdims=columns), q))
    return found


def _column_sums(b: Any, zero: Any, axis: int, keepdims: bool) -> Any:
    """The sums of b - zero along an axis: where its extent is known, those of b less so many zeros."""
    info = b.struct_info
    depth = None if info.extents is None else as_int(info.extents[axis])
    if zero is None or depth is None:
        return total_of(astype(b, _SUMS) if zero is None else subtract(astype(b, _SUMS), zero), [axis], keepdims=keepdims)
    # depth * q once for a column, in place of a difference for each element.
    zeros = const(zero.data.numpy() * np.int32(depth)) if isinstance(zero, Constant) else multiply(zero, const(depth, _SUMS))
    return subtract(total_of(astype(b, _SUMS), [axis], keepdims=keepdims), zeros)


def integer_conv(data: Any, weight: Any, attrs: Mapping[str, Any], zero1: Any = None, zero2: Any = None, emit: Emit = _itself) -> Call:
    """The convolution of bytes less their zeros, in int32, with channels in front of pixels in data and weights.

    Args:
        data, weight: of int8 or uint8.
        attrs: of the convolution, but for layouts and out_dtype.
        zero1: the number that stands for zero in the data; None for 0.
        zero2: that of the weights, or one for each result.
        emit: makes variables of what is used more than once.
    """
    rank = data.struct_info.ndim - 2
    x, p = in_bytes_of(data, zero1, "uint8")
    w, q = in_bytes_of(weight, zero2, "int8")
    front, back = paddings(attrs.get("padding", 0), rank)
    if p is not None:
        # What is added around data is zero, and so the number that stands for it: it is there before the sums.
        border = [0, 0, 0, 0, *[int(n) for pair in zip(front, back, strict=True) for n in pair]]
        if any(border):
            stands = astype(p, "uint8") if not isinstance(p, Constant) else const(p.data.numpy().astype("uint8"))
            x = pad(x, border, const(stands.data.numpy().reshape(())) if isinstance(stands, Constant) else reshape(stands, []))
            attrs = {**attrs, "padding": 0}
    if q is not None:
        # A weight less its zero takes nine bits.
        w, x = subtract(astype(w, "int16"), reshape(astype(q, "int16"), [-1, *[1] * (rank + 1)])), astype(x, "int16")
    x, w = emit(x), emit(w)
    found = _CONVOLUTIONS[rank - 1](x, w, **attrs, out_dtype=_SUMS)
    if p is not None:
        sums = multiply(total_of(astype(w, _SUMS), list(range(1, rank + 2))), reshape(p, []))
        found = subtract(found, reshape(sums, [1, -1, *[1] * rank]))
    return found
