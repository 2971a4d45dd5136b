"""Operators on quantized tensors: an integer q stands for `scale * (q - zero_point)`.

Products and convolutions are those of integers, with int32 sums; how results get another scale is `requantize` (Jacob et al. 2018,
section 2.2): a multiplication by a number of 31 bits and a shift, rounded as `rounding` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ...relax import op as graph_op
from ...relax.expr import const as constant
from ...tir.dtype import parse_dtype
from .nn import R, by_channel
from .row import Expr, Exprs, Meaning, dtype, number, of_planes, operator, shape
from .transform import _axis, _fields, _list


def _along(value: Any, axis: int, ndim: int) -> Any:
    """A number, or numbers of channels, shaped to broadcast along an axis."""
    extents = shape(value)
    if not extents or extents == (1,):
        return graph_op.reshape(value, [])
    return graph_op.reshape(value, [extents[0], *([1] * (ndim - 1 - _axis(axis, ndim)))])


def _bounds(kind: str) -> tuple[int, int]:
    made = parse_dtype(kind)
    return (-(1 << (made.bits - 1)), (1 << (made.bits - 1)) - 1) if made.code == "int" else (0, (1 << made.bits) - 1)


def _clipped(value: Any, kind: str) -> Any:
    """Integers within those of a dtype, in it."""
    return graph_op.astype(graph_op.clip(value, *_bounds(kind)), kind)


@operator("qnn.quantize")
def quantize(data: Expr, output_scale: Expr, output_zero_point: Expr, axis: int = -1, out_dtype: str = "int8") -> Meaning:
    """`round(data / scale) + zero_point`, within the dtype."""
    # The operator of graphs, by which models of floats between quantized values become kernels of integers.
    return graph_op.quantize(data, output_scale, output_zero_point, axis, out_dtype)


@operator("qnn.dequantize")
def dequantize(data: Expr, input_scale: Expr, input_zero_point: Expr, axis: int = -1, out_dtype: str = "float32") -> Meaning:
    """`(data - zero_point) * scale`."""
    return graph_op.dequantize(data, input_scale, input_zero_point, axis, out_dtype)


def fixed_point(scale: float) -> tuple[int, int]:
    """A factor as a number of 31 bits and a shift: `scale = multiplier * 2**(shift - 31)`.

    Args:
        scale: above 0.
    """
    if scale == 0:
        return 0, 0
    fraction, exponent = math.frexp(scale)
    multiplier = math.floor(fraction * (1 << 31) + 0.5)
    # 0.99999999999 rounds up to 2**31, which is no number of 31 bits.
    return (multiplier // 2, exponent + 1) if multiplier == 1 << 31 else (multiplier, exponent)


def _rescaled(data: Any, factors: Sequence[float], axis: int, rounding: str) -> Any:
    """Integers times factors, rounded, in int64."""
    wide, ndim = graph_op.astype(data, "int64"), len(shape(data))
    # Below 2**-32 nothing of 32 bits is left of a product, whose shift to the right would be longer than 63.
    pairs = [fixed_point(one) if one >= 2.0**-32 else (0, 0) for one in factors]

    def shaped(values: Sequence[int]) -> Any:
        numbers = np.asarray(values, "int64")
        return constant(numbers[0] if len(values) == 1 else numbers.reshape(-1, *([1] * (ndim - 1 - _axis(axis, ndim)))))

    # Shifts to the left go first, so that no bits are lost; those to the right are one with the 31 of the multiplier.
    left, right = [max(shift, 0) for _, shift in pairs], [31 - min(shift, 0) for _, shift in pairs]
    product = graph_op.multiply(graph_op.left_shift(wide, shaped(left)) if any(left) else wide, shaped([m for m, _ in pairs]))
    half = shaped([1 << (shift - 1) for shift in right])
    if rounding == "TONEAREST":  # halves away from zero
        half = graph_op.where(graph_op.less(product, constant(0, "int64")), graph_op.subtract(half, constant(1, "int64")), half)
    elif rounding != "UPWARD":
        raise DeclarationError(f"rounding is UPWARD or TONEAREST, not {rounding!r}")
    return graph_op.right_shift(graph_op.add(product, half), shaped(right))


@operator("qnn.requantize")
def requantize(
    data: Expr, input_scale: Expr, input_zero_point: Expr, output_scale: Expr, output_zero_point: Expr, axis: int = -1,
    rounding: str = "None", compute_dtype: str = "None", out_dtype: str = "int8",
) -> Meaning:  # fmt: skip
    """Quantized numbers at another scale; scales are constants."""
    ndim, chosen = len(shape(data)), "UPWARD" if rounding in ("None", "", None) else rounding
    into, out = number(input_scale).reshape(-1).astype("float64"), float(number(output_scale))
    zero = graph_op.astype(_along(input_zero_point, axis, ndim), "int32")
    centred = graph_op.subtract(graph_op.astype(data, "int32"), zero)
    if compute_dtype in ("float32", "float64"):
        factor = constant((into / out).astype(compute_dtype) if into.size > 1 else (into / out).astype(compute_dtype)[0])
        scaled = graph_op.multiply(graph_op.astype(centred, compute_dtype), _along(factor, axis, ndim))
        half, zeros = constant(0.5, compute_dtype), constant(0.0, compute_dtype)
        rounded = graph_op.floor(graph_op.add(scaled, half))
        if chosen == "TONEAREST":  # halves away from zero, as of integers
            rounded = graph_op.where(graph_op.less(scaled, zeros), graph_op.ceil(graph_op.subtract(scaled, half)), rounded)
        elif chosen != "UPWARD":
            raise DeclarationError(f"rounding is UPWARD or TONEAREST, not {chosen!r}")
        moved = graph_op.astype(rounded, "int64")
    else:
        moved = graph_op.astype(centred, "int64") if np.all(into == out) else _rescaled(centred, list(into / out), axis, chosen)
    zero_out = graph_op.astype(_along(output_zero_point, axis, ndim), "int64")
    return _clipped(graph_op.add(moved, zero_out), out_dtype)


def _centred(data: Any, zero_point: Any, axis: int) -> Any:
    """Integers of four bytes around their zero point."""
    wide = graph_op.astype(data, "int32")
    if hasattr(zero_point, "data") and not np.any(number(zero_point)):
        return wide
    return graph_op.subtract(wide, _along(zero_point, axis, len(shape(data))))


@operator("qnn.conv2d", settled=of_planes(2))
def conv2d(
    data: Expr, kernel: Expr, input_zero_point: Expr, kernel_zero_point: Expr, input_scale: Expr, kernel_scale: Expr,
    kernel_size: Any = None, channels: int | None = None, strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1),
    groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "OIHW", out_layout: str = "", out_dtype: str = "int32",
) -> Meaning:  # fmt: skip
    """A convolution of quantized numbers, with int32 sums; in the padding stands the zero point."""
    weight = by_channel(data, _centred(kernel, kernel_zero_point, kernel_layout.index("O")), groups, data_layout, kernel_layout)
    return R.conv2d(
        _centred(data, input_zero_point, 1), weight, _list(strides), _list(padding),
        _list(dilation), groups, data_layout, kernel_layout, out_layout or None, out_dtype,
    )  # fmt: skip


@operator("qnn.conv2d_transpose", settled=of_planes(2))
def conv2d_transpose(
    data: Expr, weight: Expr, input_zero_point: Expr, kernel_zero_point: Expr, input_scale: Expr, kernel_scale: Expr, strides: Any = (1, 1),
    padding: Any = (0, 0), dilation: Any = (1, 1), groups: int = 1, channels: int | None = None, kernel_size: Any = None,
    data_layout: str = "NCHW", kernel_layout: str = "IOHW", out_layout: str = "", output_padding: Any = (0, 0), out_dtype: str = "int32",
) -> Meaning:  # fmt: skip
    """A transposed convolution of quantized numbers, with int32 sums."""
    return R.conv2d_transpose(
        _centred(data, input_zero_point, 1), _centred(weight, kernel_zero_point, kernel_layout.index("O")), _list(strides), _list(padding),
        _list(output_padding), _list(dilation), groups, data_layout, kernel_layout, out_layout or None, out_dtype,
    )  # fmt: skip


@operator("qnn.dense")
def dense(
    data: Expr, weight: Expr, input_zero_point: Expr, kernel_zero_point: Expr, input_scale: Expr, kernel_scale: Expr,
    units: int | None = None, out_dtype: str = "int32",
) -> Meaning:  # fmt: skip
    """Rows times the rows of weights, quantized, with int32 sums."""
    transposed = graph_op.permute_dims(_centred(weight, kernel_zero_point, 0), [1, 0])
    return graph_op.matmul(_centred(data, input_zero_point, -1), transposed, out_dtype)


@operator("qnn.batch_matmul")
def batch_matmul(
    x: Expr, y: Expr, x_zero_point: Expr, y_zero_point: Expr, x_scale: Expr, y_scale: Expr, out_dtype: str = "int32"
) -> Meaning:
    """Products of quantized matrices, the second one transposed, with int32 sums."""
    transposed = graph_op.permute_dims(_centred(y, y_zero_point, -1), [0, 2, 1])
    return graph_op.matmul(_centred(x, x_zero_point, -1), transposed, out_dtype)


def _requantized(value: Any, scale: Any, zero: Any, out_scale: Any, out_zero: Any, kind: str, axis: int = -1) -> Any:
    made = requantize_meaning(value, scale, zero, out_scale, out_zero, axis, "None", "None", kind)
    return made


requantize_meaning: Callable[..., Any] = requantize.__wrapped__


def _pairs(name: str, function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def meant(
        lhs: Expr, rhs: Expr, lhs_scale: Expr, lhs_zero_point: Expr, rhs_scale: Expr, rhs_zero_point: Expr, output_scale: Expr,
        output_zero_point: Expr, lhs_axis: int = -1, rhs_axis: int = -1,
    ) -> Meaning:  # fmt: skip
        kind = dtype(lhs)
        if name == "mul":
            product = graph_op.multiply(_centred(lhs, lhs_zero_point, lhs_axis), _centred(rhs, rhs_zero_point, rhs_axis))
            scale = constant(np.asarray(number(lhs_scale) * number(rhs_scale), "float32"))
            return _requantized(product, scale, constant(0, "int32"), output_scale, output_zero_point, kind)
        a = _requantized(lhs, lhs_scale, lhs_zero_point, output_scale, output_zero_point, "int32", lhs_axis)
        b = _requantized(rhs, rhs_scale, rhs_zero_point, output_scale, output_zero_point, "int32", rhs_axis)
        # Both have the zero point of the result: a sum has it twice, a difference not at all.
        zero = graph_op.astype(graph_op.reshape(output_zero_point, []), "int32")
        total = graph_op.subtract(graph_op.add(a, b), zero) if name == "add" else graph_op.add(graph_op.subtract(a, b), zero)
        return _clipped(total, kind)

    meant.__doc__ = f"`{name}` of quantized numbers at a scale of its own."
    return operator(f"qnn.{name}")(meant)  # type: ignore[no-any-return]


add, mul, subtract = _pairs("add", graph_op.add), _pairs("mul", graph_op.multiply), _pairs("subtract", graph_op.subtract)


def _by_floats(name: str, function: Callable[[Any], Any]) -> Callable[..., Any]:
    def meant(x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr) -> Meaning:
        value = dequantize.__wrapped__(x, scale, zero_point)
        return quantize.__wrapped__(function(value), output_scale, output_zero_point, -1, dtype(x))

    meant.__doc__ = f"`{name}` of quantized numbers, computed by floats."
    return operator(f"qnn.{name}")(meant)  # type: ignore[no-any-return]


abs, erf, exp, hardswish = (
    _by_floats(n, f) for n, f in (("abs", graph_op.abs), ("erf", graph_op.erf), ("exp", graph_op.exp), ("hardswish", R.hard_swish))
)
log, rsqrt, sigmoid, sqrt, tanh = (_by_floats(n, getattr(graph_op, n)) for n in ("log", "rsqrt", "sigmoid", "sqrt", "tanh"))


@operator("qnn.leaky_relu")
def leaky_relu(x: Expr, alpha: float, input_scale: Expr, input_zero_point: Expr, output_scale: Expr, output_zero_point: Expr) -> Meaning:
    """`nn.leaky_relu` of quantized numbers, computed by floats."""
    value = R.leakyrelu(dequantize.__wrapped__(x, input_scale, input_zero_point), alpha)
    return quantize.__wrapped__(value, output_scale, output_zero_point, -1, dtype(x))


@operator("qnn.softmax")
def softmax(x: Expr, scale: Expr, zero_point: Expr, output_scale: Expr, output_zero_point: Expr, axis: int = -1) -> Meaning:
    """`nn.softmax` of quantized numbers, computed by floats."""
    return quantize.__wrapped__(
        R.softmax(dequantize.__wrapped__(x, scale, zero_point), axis), output_scale, output_zero_point, -1, dtype(x)
    )


@operator("qnn.avg_pool2d")
def avg_pool2d(
    data: Expr, input_scale: Expr, input_zero_point: Expr, output_scale: Expr, output_zero_point: Expr, pool_size: Any = (1, 1),
    strides: Any = (1, 1), padding: Any = (0, 0), dilation: Any = (1, 1), ceil_mode: bool = False, count_include_pad: bool = False,
    layout: str = "NCHW", out_layout: str = "",
) -> Meaning:  # fmt: skip
    """The mean of windows of quantized numbers, computed by floats."""
    value = dequantize.__wrapped__(data, input_scale, input_zero_point)
    pooled = R.avg_pool2d(value, _list(pool_size), _list(strides), _list(padding), _list(dilation), ceil_mode, count_include_pad, layout)
    return quantize.__wrapped__(pooled, output_scale, output_zero_point, -1, dtype(data))


@operator("qnn.concatenate")
def _concatenate(
    data: Exprs, input_scales: Exprs, input_zero_points: Exprs, output_scale: Expr, output_zero_point: Expr, axis: int
) -> Meaning:
    parts = zip(_fields(data), _fields(input_scales), _fields(input_zero_points), strict=True)
    made = [_requantized(one, scale, zero, output_scale, output_zero_point, dtype(one)) for one, scale, zero in parts]
    return graph_op.concat(tuple(made), axis)


def concatenate(data: Any, input_scales: Any, input_zero_points: Any, output_scale: Any, output_zero_point: Any, axis: int) -> Any:
    """Quantized tensors one behind the other, all at the scale of the result."""
    return _concatenate(data, tuple(input_scales), tuple(input_zero_points), output_scale, output_zero_point, axis)
