"""Quantised operators: products and convolutions of integers of eight bits, whose zeros are taken out of the sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .... import relax
from ....relax.ops.integer_products import integer_conv, integer_matmul
from ....relax.ops.narrow import NARROW
from ..attributes import Attributes
from ..context import Context, Inputs
from ..dtypes import computed_as, dtype_of
from ..registry import onnx_op
from ..values import Value
from ..windows import letters, windows
from .conv import taps

R = relax.op


def _read(ctx: Context, index: int, dtype: str) -> Any:
    """An operand of a dtype in one that kernels read; 0 if it is left out."""
    wide, value = computed_as(dtype), ctx.value(index)
    if value is None:
        return relax.const(0, wide)
    given = ctx.expression(value)
    return given if wide == dtype else R.narrow_cast(given, wide)


@onnx_op("QuantizeLinear")
def quantize_linear(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Floats as integers by scales, or as floats of fewer bits: one scale, one for each element of an axis, or one for each block."""
    stated = attrs.int("output_dtype", 0)
    dtype = dtype_of(stated, ctx.where) if stated else ctx.dtype(2) if ctx.has(2) else "uint8"
    data = inputs[0] if ctx.dtype(0) == ctx.dtype(1) or "float" in ctx.dtype(0) else R.astype(inputs[0], ctx.dtype(1))
    made = R.quantize(data, inputs[1], _read(ctx, 2, dtype), attrs.int("axis", 1), computed_as(dtype))
    if dtype not in NARROW:
        return made
    if not dtype.startswith("float"):
        bits, signed = int(dtype[-1]), not dtype.startswith("u")
        # Eight bits hold 100, of which int4 would keep the lowest four.
        made = R.clip(made, -(1 << bits - 1) if signed else 0, (1 << bits - signed) - 1)
    value = ctx.values[0]
    return Value(
        ctx.emit(R.narrow_cast(made, dtype, attrs.bool("saturate", True))), None, frozenset() if value is None else value.roots, dtype
    )


@onnx_op("DequantizeLinear")
def dequantize_linear(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Integers, or floats of few bits, as floats by scales."""
    stated, source = attrs.int("output_dtype", 0), ctx.dtype(0)
    dtype = dtype_of(stated, ctx.where) if stated else ctx.dtype(1)
    return R.dequantize(_read(ctx, 0, source), inputs[1], _read(ctx, 2, source), attrs.int("axis", 1), dtype)


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Floats as unsigned integers, by the range that they have, with 0 in it."""
    return dynamic_quantized(ctx, inputs[0])


def dynamic_quantized(ctx: Context, x: Any) -> list[Any]:
    """A tensor as unsigned bytes, with their scale and what stands for zero."""
    zero = relax.const(0.0, "float32")
    low = ctx.emit(R.minimum(R.min(x), zero))
    high = ctx.emit(R.maximum(R.max(x), zero))
    scale = ctx.emit(R.divide(R.subtract(high, low), relax.const(255.0, "float32")))
    # A tensor of zeros has no range; 0 / 1 is the right number, 0 / 0 none.
    safe = ctx.emit(R.where(R.equal(scale, zero), relax.const(1.0, "float32"), scale))
    rounded = R.clip(R.round(R.divide(R.negative(low), safe)), 0, 255)
    point = ctx.emit(R.astype(rounded, "uint8"))
    return [R.quantize(x, safe, point, -1, "uint8"), scale, point]


def _zeros(ctx: Context, inputs: Inputs, index: int) -> Any:
    """The number that stands for zero, as a constant if it is known; None if it is left out."""
    value = ctx.value(index)
    if value is None or isinstance(value.expr, relax.Constant):
        return None if value is None else value.expr
    return relax.const(ctx.constant(index)) if ctx.is_constant(index) else inputs[index]


@onnx_op("MatMulInteger")
def matmul_integer(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A product of integers less what stands for zero, in int32."""
    return integer_matmul(inputs[0], inputs[1], _zeros(ctx, inputs, 2), _zeros(ctx, inputs, 3), ctx.emit)


def _requantized(ctx: Context, total: Any, scales: Sequence[Any], zero: Any, axis: int, dtype: str) -> Any:
    """Sums of int32 as integers by another scale; the scales are those of both factors and of the result."""
    left, right, own = (R.astype(scale, "float32") for scale in scales)
    factor = ctx.emit(R.divide(R.multiply(left, right), own))
    # Scales of rows, [M, 1], lie along no axis that requantize knows: these are multiplied out.
    if factor.struct_info.ndim < 2:
        return R.requantize(total, factor, zero, axis, dtype)
    return R.quantize(R.multiply(R.astype(total, "float32"), factor), relax.const(1.0), zero, axis, dtype)


@onnx_op("QLinearMatMul")
def qlinear_matmul(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A product of quantised matrices."""
    a, a_scale, _, b, b_scale, _, scale, zero = inputs[:8]
    total = ctx.emit(integer_matmul(a, b, _zeros(ctx, inputs, 2), _zeros(ctx, inputs, 5), ctx.emit))
    if ctx.rank(1) == 1 and str(ctx.extents(1)[0]) != "1":
        # One scale for each row of the left factor: a column.
        a_scale = ctx.emit(R.reshape(a_scale, [-1, 1]))
    return _requantized(ctx, total, (a_scale, b_scale, scale), zero, -1, ctx.dtype(7))


def _integer_conv(ctx: Context, inputs: Inputs, attrs: Attributes, data: int, weight: int) -> Any:
    """A convolution of integers less what stands for zero, in int32; the operands by number."""
    own = windows(ctx, attrs, taps(ctx, weight))
    letters(ctx, own.rank)
    given = {"strides": own.strides, "padding": own.pads, "dilation": own.dilations, "groups": attrs.int("group", 1)}
    # What stands for zero follows the weights, and behind those of QLinearConv their scales.
    first, second = (2, 5) if weight == 3 else (2, 3)
    return integer_conv(inputs[data], inputs[weight], given, _zeros(ctx, inputs, first), _zeros(ctx, inputs, second), ctx.emit)


@onnx_op("ConvInteger")
def conv_integer(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A convolution of integers less what stands for zero, in int32."""
    return _integer_conv(ctx, inputs, attrs, 0, 1)


@onnx_op("QLinearConv")
def qlinear_conv(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A convolution of quantised images and weights, with a bias in int32."""
    _, x_scale, _, _, w_scale, _, scale, zero = inputs[:8]
    total = _integer_conv(ctx, inputs, attrs, 0, 3)
    rank = ctx.rank(0)
    if ctx.has(8):
        total = R.add(total, R.reshape(inputs[8], [1, -1, *[1] * (rank - 2)]))
    return _requantized(ctx, total, (x_scale, w_scale, scale), zero, 1, ctx.dtype(7))
