"""Transposed convolutions: the gradient of a convolution with respect to its data, as an operator of its own."""

from __future__ import annotations

from collections.abc import Callable
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
    dilation: Any = 1,
) -> Tensor:
    """A transposed convolution over the axes `spatial` ("W", "HW" or "DHW"), channels first.

    Args:
        output_padding: extra rows at the far end, fewer than the stride or the dilation: one number, or one for each axis.
        dilation: distance of neighbouring taps: one number, or one for each axis.

    Raises:
        DeclarationError: for shapes that don't fit.
    """
    dims = len(spatial)
    need_rank(name, "the data", data, dims + 2)
    need_rank(name, "the kernel", kernel, dims + 2)
    steps, extra = spread(name, "strides", strides, dims), spread(name, "output_padding", output_padding, dims)
    apart = spread(name, "dilation", dilation, dims)
    if any(more < 0 or more >= max(step, wide) for more, step, wide in zip(extra, steps, apart, strict=True)):
        raise DeclarationError(f"{name}: output_padding {extra} must be less than strides {steps} or dilation {apart}, and not negative")
    need_equal(name, "the channels of data and kernel", data.shape[1], kernel.shape[0])
    taps = kernel.shape[2:]
    reach = [extent_value((tap - 1) * wide) for tap, wide in zip(taps, apart, strict=True)]
    pairs = pad_pairs(name, padding, [extent_value(own + 1) for own in reach])
    before = [own - low for own, (low, _) in zip(reach, pairs, strict=True)]
    after = [own - high + more for own, (_, high), more in zip(reach, pairs, extra, strict=True)]
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
        left = padded(n, c, *(index + tap.var * wide for index, tap, wide in zip(at, over, apart, strict=True)))
        right = kernel(c, own, *(extent - 1 - tap.var for extent, tap in zip(taps, over, strict=True)))
        return te.sum(cast(left, dtype) * cast(right, dtype), axis=[channel, *over])

    sizes = [extent_value(extent - own) for extent, own in zip(padded.shape[2:], reach, strict=True)]
    names = ["b", "c", *(OUTPUT_NAMES[letter] for letter in spatial)]
    return compute((data.shape[0], extent_value(outputs * groups), *sizes), body, name, name, varargs_names=names[2:])


def transpose_operands(data: Tensor, kernel: Tensor, strides: Any, padding: Any, output_padding: Any, name: str) -> tuple[Tensor, Tensor]:
    """Data and kernel whose plain convolution, of stride 1 and without padding, is the transposed one.

    The data is dilated by the strides and padded; the kernel has inputs and outputs swapped, and its taps in reverse.
    """
    dims = data.ndim - 2
    need_rank(name, "the kernel", kernel, data.ndim)
    steps, extra = spread(name, "strides", strides, dims), spread(name, "output_padding", output_padding, dims)
    taps = kernel.shape[2:]
    pairs = pad_pairs(name, padding, [extent_value(tap) for tap in taps])
    before = [extent_value(tap - 1 - low) for tap, (low, _) in zip(taps, pairs, strict=True)]
    after = [extent_value(tap - 1 - high + more) for tap, (_, high), more in zip(taps, pairs, extra, strict=True)]
    padded = dilate_and_pad(data, (1, 1, *steps), (0, 0, *before), (0, 0, *after), 0.0, "data_pad")

    def turned(o: Var, i: Var, *at: Var) -> PrimExpr:
        return kernel(i, o, *(extent - 1 - index for extent, index in zip(taps, at, strict=True)))

    return padded, compute((kernel.shape[1], kernel.shape[0], *taps), turned, "kernel_transform")


def _preprocess(name: str, dims: int) -> Callable[..., tuple[Tensor, Tensor]]:
    def function(
        data: Tensor, kernel: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
    ) -> tuple[Tensor, Tensor]:
        need_rank(name, "the data", data, dims + 2)
        return transpose_operands(data, kernel, strides, padding, output_padding, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Data and kernel whose plain convolution is the transposed one; see `transpose_operands`. `out_dtype` has no effect."
    return function


def _implementation(name: str, spatial: str) -> Callable[..., Tensor]:
    def function(data: Tensor, kernel: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any) -> Tensor:
        return conv_transpose(data, kernel, strides, padding, out_dtype, output_padding, 1, spatial, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The transposed convolution over {', '.join(spatial)}, channels first; see `conv_transpose`."
    return function


conv2d_transpose_nchw_preprocess = _preprocess("conv2d_transpose_nchw_preprocess", 2)
conv3d_transpose_ncdhw_preprocess = _preprocess("conv3d_transpose_ncdhw_preprocess", 3)
declaration_conv2d_transpose_impl = _implementation("declaration_conv2d_transpose_impl", "HW")
declaration_conv3d_transpose_impl = _implementation("declaration_conv3d_transpose_impl", "DHW")
