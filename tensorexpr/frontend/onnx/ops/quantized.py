"""Quantised operators: products and convolutions of integers of eight bits, whose zeros are taken out of the sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import relax
from ..attributes import Attributes
from ..context import Context, Inputs
from ..dtypes import dtype_of
from ..registry import onnx_op
from ..windows import Windows, letters, windows
from .conv import convolution, taps

R = relax.op


def _zero(ctx: Context, inputs: Inputs, index: int, dtype: str) -> Any:
    """The number that stands for zero; 0 if it is left out."""
    return inputs[index] if ctx.has(index) else relax.const(0, dtype)


def _is_zero(ctx: Context, index: int) -> bool:
    """Whether an operand is known to be 0 everywhere."""
    if not ctx.has(index):
        return True
    value = ctx.value(index)
    if value is not None and isinstance(value.expr, relax.Constant):
        return not np.any(value.expr.data.numpy())
    return ctx.is_constant(index) and not np.any(ctx.constant(index))


@onnx_op("QuantizeLinear")
def quantize_linear(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Floats as integers by scales: one, one for each element of an axis, or one for each block."""
    stated = attrs.int("output_dtype", 0)
    dtype = dtype_of(stated, ctx.where) if stated else ctx.dtype(2) if ctx.has(2) else "uint8"
    data = inputs[0] if ctx.dtype(0) == ctx.dtype(1) or "float" in ctx.dtype(0) else R.astype(inputs[0], ctx.dtype(1))
    return R.quantize(data, inputs[1], _zero(ctx, inputs, 2, dtype), attrs.int("axis", 1), dtype)


@onnx_op("DequantizeLinear")
def dequantize_linear(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Integers as floats by scales."""
    stated = attrs.int("output_dtype", 0)
    dtype = dtype_of(stated, ctx.where) if stated else ctx.dtype(1)
    return R.dequantize(inputs[0], inputs[1], _zero(ctx, inputs, 2, ctx.dtype(0)), attrs.int("axis", 1), dtype)


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """Floats as unsigned integers, by the range that they have, with 0 in it."""
    x, zero = inputs[0], relax.const(0.0, "float32")
    low = ctx.emit(R.minimum(R.min(x), zero))
    high = ctx.emit(R.maximum(R.max(x), zero))
    scale = ctx.emit(R.divide(R.subtract(high, low), relax.const(255.0, "float32")))
    safe = ctx.emit(R.where(R.equal(scale, zero), relax.const(1.0, "float32"), scale))
    rounded = R.clip(R.round(R.divide(R.negative(low), safe)), 0, 255)
    point = ctx.emit(R.astype(rounded, "uint8"))
    return [R.quantize(x, safe, point, -1, "uint8"), scale, point]


def _wide(value: Any) -> Any:
    return R.astype(value, "int32")


def _product(ctx: Context, a: Any, b: Any, a_zero: tuple[int, Any], b_zero: tuple[int, Any]) -> Any:
    """The product of integers less what stands for zero, in int32: the product of the numbers as they are, less products of sums."""
    depth = ctx.emit(a).struct_info.extents[-1]
    found = R.matmul(a, b, "int32")
    terms = []
    a_is_zero, b_is_zero = _is_zero(ctx, a_zero[0]), _is_zero(ctx, b_zero[0])
    of_rows = None if a_is_zero else _across(_wide(a_zero[1]), a_zero[1].struct_info.ndim, a.struct_info.ndim, rows=True)
    of_columns = None if b_is_zero else _across(_wide(b_zero[1]), b_zero[1].struct_info.ndim, b.struct_info.ndim, rows=False)
    if of_rows is not None:
        terms.append(R.multiply(R.sum(_wide(b), [-2], keepdims=True), of_rows))
    if of_columns is not None:
        terms.append(R.multiply(R.sum(_wide(a), [-1], keepdims=True), of_columns))
    for term in terms:
        found = R.subtract(found, term)
    if of_rows is not None and of_columns is not None:
        found = R.add(found, R.multiply(R.multiply(of_rows, of_columns), relax.const(int(depth), "int32")))
    return found


def _across(zero: Any, own: int, ndim: int, rows: bool) -> Any:
    """A zero of each row as a column, or of each column as a row; those of a stack, and one for all, are as they should be."""
    if own == 1 and rows and ndim > 1:
        return R.reshape(zero, [-1, 1])
    return zero


@onnx_op("MatMulInteger")
def matmul_integer(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A product of integers less what stands for zero, in int32."""
    return _product(ctx, inputs[0], inputs[1], (2, inputs[2]), (3, inputs[3]))


def _requantized(ctx: Context, total: Any, scales: tuple[Any, Any], scale: Any, zero: Any, axis: int, dtype: str) -> Any:
    """Sums of int32 as integers by another scale."""
    kind = "float32"
    both = ctx.emit(R.multiply(R.astype(scales[0], kind), R.astype(scales[1], kind)))
    rank = ctx.emit(total).struct_info.ndim
    if both.struct_info.ndim == 1 and axis % rank != rank - 1 and str(both.struct_info.extents[0]) != "1":
        both = R.reshape(both, [-1, *[1] * (rank - 1 - axis % rank)])
    return R.quantize(R.multiply(R.astype(total, kind), both), R.astype(scale, kind), zero, axis, dtype)


@onnx_op("QLinearMatMul")
def qlinear_matmul(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A product of quantised matrices."""
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = inputs[:8]
    total = ctx.emit(_product(ctx, a, b, (2, a_zero), (5, b_zero)))
    if ctx.rank(1) == 1 and str(ctx.extents(1)[0]) != "1":
        a_scale = ctx.emit(R.reshape(a_scale, [-1, 1]))
    return _requantized(ctx, total, (a_scale, b_scale), scale, zero, -1, ctx.dtype(7))


def _integer_conv(ctx: Context, attrs: Attributes, data: Any, weight: Any, x_zero: tuple[int, Any], w_zero: tuple[int, Any]) -> Any:
    """A convolution of integers less what stands for zero, in int32."""
    index = 3 if ctx.node.op_type == "QLinearConv" else 1
    own = windows(ctx, attrs, taps(ctx, index))
    rank, groups = own.rank, attrs.int("group", 1)
    letters(ctx, rank)
    if not _is_zero(ctx, x_zero[0]):
        # Padding is zero, and so the number that stands for it: it is there before the sums.
        width = [0, 0, 0, 0, *[n for low, high in zip(own.pads[:rank], own.pads[rank:], strict=True) for n in (low, high)]]
        if any(width):
            data = ctx.emit(R.nn.pad(data, width, R.reshape(x_zero[1], [])))
            own = Windows(own.size, own.strides, own.dilations, [0] * 2 * rank)
    shape = [-1, *[1] * (rank + 1)]
    if not _is_zero(ctx, w_zero[0]):
        weight = ctx.emit(R.subtract(_wide(weight), R.reshape(_wide(w_zero[1]), shape)))
        data = ctx.emit(_wide(data))
    found = convolution(data, weight, own, groups, "int32")
    if not _is_zero(ctx, x_zero[0]):
        sums = R.sum(_wide(weight), list(range(1, rank + 2)))
        found = R.subtract(found, R.reshape(R.multiply(sums, R.reshape(_wide(x_zero[1]), [])), [1, *shape[:-1]]))
    return found


@onnx_op("ConvInteger")
def conv_integer(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A convolution of integers less what stands for zero, in int32."""
    return _integer_conv(ctx, attrs, inputs[0], inputs[1], (2, inputs[2]), (3, inputs[3]))


@onnx_op("QLinearConv")
def qlinear_conv(ctx: Context, inputs: Inputs, attrs: Attributes) -> Any:
    """A convolution of quantised images and weights, with a bias in int32."""
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero = inputs[:8]
    total = _integer_conv(ctx, attrs, x, w, (2, x_zero), (5, w_zero))
    rank = ctx.rank(0)
    if ctx.has(8):
        total = R.add(total, R.reshape(inputs[8], [1, -1, *[1] * (rank - 2)]))
    return _requantized(ctx, ctx.emit(total), (x_scale, w_scale), scale, zero, 1, ctx.dtype(7))
