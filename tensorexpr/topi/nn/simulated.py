"""Quantisation in floats: numbers rounded and held as a quantised dtype would hold them, the dtype chosen when the program runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import arithmetic, intrin
from ...tir.arithmetic import cast, const, floormod
from ...tir.expr import PrimExpr, Var
from .. import tag
from ..math import axis_names
from ..utils import positive_axis

SQNN_DISABLE = 0
SQNN_INT8 = 1
SQNN_UINT8 = 2
SQNN_INT32 = 3
SQNN_DTYPE_TO_CODE = {"disable": SQNN_DISABLE, "int8": SQNN_INT8, "uint8": SQNN_UINT8, "int32": SQNN_INT32}
SQNN_CODE_TO_DTYPE = {code: dtype for dtype, code in SQNN_DTYPE_TO_CODE.items()}
_LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int32": (-(2**31), 2**31 - 1)}


def _parameter(value: Any, channel: PrimExpr, default: float, dtype: str) -> PrimExpr:
    """A scale or zero point of a channel: a number, a scalar tensor, or a vector whose elements come round again."""
    if not isinstance(value, Tensor):
        return const(default if value is None else value, dtype)
    return cast(value() if value.ndim == 0 else value(floormod(channel, value.shape[0])), dtype)


def _simulated(data: Tensor, code: Any, scale: Any, zero: Any, axis: int, name: str, convert: Callable[..., PrimExpr]) -> Tensor:
    place = positive_axis(name, axis, data.ndim)

    def body(*i: Var) -> PrimExpr:
        chosen = arithmetic.convert(code(*[0] * code.ndim) if isinstance(code, Tensor) else code)
        factor, offset = _parameter(scale, i[place], 1.0, data.dtype), _parameter(zero, i[place], 0.0, data.dtype)
        return convert(data(*i), chosen, factor, offset)

    return compute(data.shape, body, name, tag.ELEMWISE, varargs_names=axis_names(data.ndim))


def simulated_quantize(data: Tensor, out_dtype: Any, output_scale: Any = None, output_zero_point: Any = None, axis: int = -1) -> Tensor:
    """round(data / scale) + zero_point, held in the range of a dtype, as floats.

    Args:
        data: floats of any shape.
        out_dtype: int32, a scalar tensor or a number: a code of SQNN_DTYPE_TO_CODE; that of "disable" leaves the data as it is.
        output_scale: a number, a scalar tensor, or one for each channel (or for each of a few, which come round again).
        output_zero_point: likewise, integers.
        axis: of the channels.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        DeclarationError: for an axis that isn't there.
    """

    def convert(value: PrimExpr, code: PrimExpr, scale: PrimExpr, zero: PrimExpr) -> PrimExpr:
        rounded = intrin.round(value / scale) + zero
        found = value
        for dtype, (low, high) in _LIMITS.items():
            held = arithmetic.maximum(arithmetic.minimum(rounded, const(float(high), data.dtype)), const(float(low), data.dtype))
            found = intrin.if_then_else(arithmetic.convert(code == SQNN_DTYPE_TO_CODE[dtype]), held, found)
        return found

    return _simulated(data, out_dtype, output_scale, output_zero_point, axis, "simulated_quantize", convert)


def simulated_dequantize(data: Tensor, in_dtype: Any, input_scale: Any = None, input_zero_point: Any = None, axis: int = -1) -> Tensor:
    """(data - zero_point) * scale, or `data` as it is where its dtype's code says that it isn't quantised.

    Args:
        data: floats of any shape, as `simulated_quantize` gives them.
        in_dtype: int32, a scalar tensor or a number: a code of SQNN_DTYPE_TO_CODE.
        input_scale: a number, a scalar tensor, or one for each channel.
        input_zero_point: likewise, integers.
        axis: of the channels.

    Returns:
        A tensor of the shape and dtype of `data`.

    Raises:
        DeclarationError: for an axis that isn't there.
    """

    def convert(value: PrimExpr, code: PrimExpr, scale: PrimExpr, zero: PrimExpr) -> PrimExpr:
        quantised = arithmetic.any(*(arithmetic.convert(code == SQNN_DTYPE_TO_CODE[dtype]) for dtype in _LIMITS))
        return intrin.if_then_else(quantised, (value - zero) * scale, value)

    return _simulated(data, in_dtype, input_scale, input_zero_point, axis, "simulated_dequantize", convert)
