"""Transposed convolutions: the gradient of a convolution with respect to its data, as an operator of its own."""

from __future__ import annotations

from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir.arithmetic import cast, floordiv, floormod
from ...tir.expr import PrimExpr, Var
from ..utils import extent_value, need_equal, need_rank, pad_pairs, spread
from .conv import OUTPUT_NAMES, REDUCTION_NAMES
from .padding import dilate_and_pad


def conv2d_transpose_nchw(Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any) -> Tensor:
    """Input [N, C, H, W], Filter [C, O, KH, KW] -> [N, O, (H-1)*stride - paddings + KH + output_padding, ...]."""
    return conv_transpose(Input, Filter, strides, padding, out_dtype, output_padding, 1, "HW", "conv2d_transpose_nchw")


def group_conv2d_transpose_nchw(
    data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: str | None, output_padding: Any, groups: int
) -> Tensor:
    """As conv2d_transpose_nchw with kernel [C, O/groups, KH, KW]."""
    return conv_transpose(data, kernel, stride, padding, out_dtype, output_padding, groups, "HW", "group_conv2d_transpose_nchw")


def conv_transpose(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    out_dtype: str | None,
    output_padding: Any,
    groups: int,
    spatial: str,
    name: str,
) -> Tensor:
    """A transposed convolution over the axes `spatial` ("W", "HW" or "DHW"), channels first.

    Args:
        output_padding: extra rows at the far end, fewer than the stride: one number, or one for each axis.

    Raises:
        DeclarationError: for shapes that don't fit.
    """
    dims = len(spatial)
    need_rank(name, "the data", data, dims + 2)
    need_rank(name, "the kernel", kernel, dims + 2)
    steps, extra = spread(name, "strides", strides, dims), spread(name, "output_padding", output_padding, dims)
    if any(more < 0 or more >= step for more, step in zip(extra, steps, strict=True)):
        raise DeclarationError(f"{name}: output_padding {extra} must be less than strides {steps}, and not negative")
    need_equal(name, "the channels of data and kernel", data.shape[1], kernel.shape[0])
    taps = kernel.shape[2:]
    pairs = pad_pairs(name, padding, [extent_value(tap) for tap in taps])
    before = [tap - 1 - low for tap, (low, _) in zip(taps, pairs, strict=True)]
    after = [tap - 1 - high + more for tap, (_, high), more in zip(taps, pairs, extra, strict=True)]
    border = [(extent_value(low), extent_value(high)) for low, high in zip(before, after, strict=True)]
    padded = dilate_and_pad(data, (1, 1, *steps), (0, 0, *(b for b, _ in border)), (0, 0, *(a for _, a in border)), 0.0, "data_pad")
    inputs, outputs = extent_value(floordiv(data.shape[1], groups)), kernel.shape[1]
    channel = te.reduce_axis((0, inputs), name="dc")
    over = [te.reduce_axis((0, tap), name=f"d{REDUCTION_NAMES[letter][1]}") for tap, letter in zip(taps, spatial, strict=True)]
    dtype = out_dtype or data.dtype

    def body(n: Var, o: Var, *at: Var) -> PrimExpr:
        group = floordiv(o, outputs) if groups > 1 else 0
        own = floormod(o, outputs) if groups > 1 else o
        c = group * inputs + channel.var if groups > 1 else channel.var
        left = padded(n, c, *(index + tap.var for index, tap in zip(at, over, strict=True)))
        right = kernel(c, own, *(extent - 1 - tap.var for extent, tap in zip(taps, over, strict=True)))
        total: PrimExpr = te.sum(cast(left, dtype) * cast(right, dtype), axis=[channel, *over])
        return total

    sizes = [extent_value(extent - tap + 1) for extent, tap in zip(padded.shape[2:], taps, strict=True)]
    names = ["b", "c", *(OUTPUT_NAMES[letter] for letter in spatial)]
    result: Tensor = compute((data.shape[0], extent_value(outputs * groups), *sizes), body, name, name, varargs_names=names[2:])
    return result
