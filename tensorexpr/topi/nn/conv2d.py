"""Convolutions over two spatial dimensions, and the blocked layout NCHWc."""

from __future__ import annotations

from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir.arithmetic import cast, floordiv, floormod
from ...tir.expr import PrimExpr, Var
from ..utils import extent_value, get_const_int, need_equal, need_rank
from .conv import conv, depthwise
from .padding import blocked_windows
from .workload import Workload as Workload
from .workload import conv2d_workload as _get_workload  # noqa: F401  (programs import it by this name)


def conv2d(
    input: Tensor,
    filter: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> Tensor:
    """A convolution in any layout of N, C, H, W (see `conv.conv`); without `kernel_layout` OIHW, or HWIO for NHWC and HWCN.

    Args:
        input: data in `data_layout`.
        filter: weights in `kernel_layout`.
        strides, dilation: one number, or two.
        padding: see `topi.utils.pad_pairs`.
        data_layout, kernel_layout: such as "NCHW" and "OIHW".
        out_dtype: that products are summed in; that of `input` by default.

    Returns:
        `out_dtype`, in `data_layout`.
    """
    default = "HWIO" if data_layout in ("NHWC", "HWCN") else "OIHW"
    return conv(input, filter, strides, padding, dilation, 1, data_layout, kernel_layout or default, out_dtype)


def conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None) -> Tensor:
    """Input [N, C, H, W], Filter [O, C, KH, KW] -> [N, O, H', W']."""
    return conv(Input, Filter, stride, padding, dilation, 1, "NCHW", "OIHW", out_dtype)


def conv2d_nhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    out_dtype: str | None = "float32",
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: Any = None,
) -> Tensor:
    """Input [N, H, W, C], Filter [KH, KW, C, O] -> [N, H', W', O]. A tuner may choose the filter's layout.

    Args:
        Input: [N, H, W, C].
        Filter: [KH, KW, C, O].
        stride, dilation: one number, or two.
        padding: see `topi.utils.pad_pairs`.
        out_dtype: that products are summed in.
        auto_scheduler_rewritten_layout, meta_schedule_original_shape: what tuners know of a filter in another layout.

    Returns:
        `out_dtype` [N, H', W', O].
    """
    attrs = {"layout_free_placeholders": [Filter]}
    return conv(Input, Filter, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype, attrs=attrs)


def conv2d_hwcn(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None) -> Tensor:
    """Input [H, W, C, N], Filter [KH, KW, C, O] -> [H', W', O, N]."""
    return conv(Input, Filter, stride, padding, dilation, 1, "HWCN", "HWIO", out_dtype)


def group_conv2d_nchw(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int, out_dtype: str | None = None
) -> Tensor:
    """Input [N, C, H, W], Filter [O, C/groups, KH, KW] -> [N, O, H', W']."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCHW", "OIHW", out_dtype, name="group_conv2d_nchw")


def group_conv2d_nhwc(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int, out_dtype: str | None = None
) -> Tensor:
    """Input [N, H, W, C], Filter [KH, KW, C/groups, O] -> [N, H', W', O]."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NHWC", "HWIO", out_dtype, name="group_conv2d_nhwc")


def depthwise_conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None) -> Tensor:
    """Input [N, C, H, W], Filter [C, M, KH, KW] -> [N, C*M, H', W']."""
    return depthwise(Input, Filter, stride, padding, dilation, "NCHW", "CMHW", out_dtype, "depthwise_conv2d_nchw")


def depthwise_conv2d_nhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    kernel_layout: str = "HWOI",
    out_dtype: str | None = None,
) -> Tensor:
    """Input [N, H, W, C], Filter [KH, KW, C, M] -> [N, H', W', C*M].

    Args:
        Input: [N, H, W, C].
        Filter: [KH, KW, C, M].
        stride, dilation: one number, or two.
        padding: see `topi.utils.pad_pairs`.
        kernel_layout: "HWOI", or "HWIO" for filters [KH, KW, M, C]; a dtype is `out_dtype`, which stood here in older releases.
        out_dtype: that products are summed in; that of `Input` by default.

    Returns:
        `out_dtype` [N, H', W', C*M].
    """
    if kernel_layout.startswith(("float", "bfloat", "int", "uint")):
        kernel_layout, out_dtype = "HWOI", kernel_layout
    if kernel_layout not in ("HWOI", "HWIO"):
        raise DeclarationError(f'depthwise_conv2d_nhwc: kernel_layout is {kernel_layout!r}; it takes "HWOI" or "HWIO"')
    order = "HWCM" if kernel_layout == "HWOI" else "HWMC"
    return depthwise(Input, Filter, stride, padding, dilation, "NHWC", order, out_dtype, "depthwise_conv2d_nhwc")


def conv2d_NCHWc(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str = "NCHWc",
    out_layout: str = "NCHWc",
    out_dtype: str | None = "float32",
) -> Tensor:
    """data [N, C/c, H, W, c], kernel [O/o, C/g/c, KH, KW, c, o] -> [N, O/o, H', W', o]. The layouts' blocks are those of the shapes.

    A kernel of a g-th of the channels makes g groups, each of an O/g of the results.

    Raises:
        DeclarationError: for other ranks, or channels that aren't g times those of the kernel for a g that divides the results.
    """
    where = "conv2d_NCHWc"
    need_rank(where, "the data", data, 5)
    need_rank(where, "the kernel", kernel, 6)
    block = get_const_int(data.shape[4])
    channels, each, results = data.shape[1] * block, kernel.shape[1] * kernel.shape[4], kernel.shape[0] * kernel.shape[5]
    groups = _groups(where, channels, each, results)
    padded, strides, dilations, (height, width) = blocked_windows(where, data, kernel.shape[2:4], stride, padding, dilation)
    # One axis for all channels: data and kernel may have blocks of different sizes.
    channel = te.reduce_axis((0, each), name="ic")
    rows, columns = te.reduce_axis((0, kernel.shape[2]), name="kh"), te.reduce_axis((0, kernel.shape[3]), name="kw")
    dtype = out_dtype or data.dtype

    def body(n: Var, oc_chunk: Var, oh: Var, ow: Var, oc_block: Var) -> PrimExpr:
        c: PrimExpr = channel.var
        if groups > 1:
            c = c + floordiv(oc_chunk * kernel.shape[5] + oc_block, floordiv(results, groups)) * each
        left_side = padded(
            n,
            floordiv(c, block),
            oh * strides[0] + rows.var * dilations[0],
            ow * strides[1] + columns.var * dilations[1],
            floormod(c, block),
        )
        inner = kernel.shape[4]
        own = channel.var
        right_side = kernel(oc_chunk, floordiv(own, inner), rows.var, columns.var, floormod(own, inner), oc_block)
        return te.sum(cast(left_side, dtype) * cast(right_side, dtype), axis=[channel, rows, columns])

    shape = (data.shape[0], kernel.shape[0], height, width, kernel.shape[5])
    return compute(shape, body, where, where)


def _groups(where: str, channels: PrimExpr, each: PrimExpr, results: PrimExpr) -> int:
    """How many groups a kernel of `each` channels makes of data of `channels`."""
    extents = [extent_value(extent) for extent in (channels, each, results)]
    if not all(isinstance(extent, int) for extent in extents):
        need_equal(where, "the channels of data and kernel", channels, each)
        return 1
    have, own, made = extents
    groups = have // own if own else 0
    if not groups or have % own or made % groups:
        raise DeclarationError(
            f"{where}: {have} channels of the data and {own} of the kernel make no whole groups of the {made} results; "
            "the kernel has as many channels as the data, or as a group of them"
        )
    return int(groups)
