"""Convolutions of small numbers in groups: channels in blocks of 4 bytes, which one dot-product instruction takes at once."""

from __future__ import annotations

from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir.arithmetic import cast
from ...tir.expr import PrimExpr, Var
from ..utils import extent_value, need_equal, need_rank
from .padding import blocked_windows

# Channels that make up 4 bytes.
_GROUPS = {"uint8": 4, "int8": 4, "bfloat16": 2}


def conv2d_NCHWc_int8(
    data: Tensor,
    kernel: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    layout: str = "NCHW4c",
    out_layout: str = "NCHW16c",
    out_dtype: str = "int32",
    n_elems: int = 4,
) -> Tensor:
    """A convolution of small numbers, in blocks of channels.

    Args:
        data: [N, C/c, H, W, c].
        kernel: [O/b, C/c, KH, KW, c/g, b, g], or where the blocks of the data are groups (c = g) [O/b, C/g, KH, KW, b, g].
        stride, dilation: one number, or two.
        padding: see `topi.utils.pad_pairs`.
        layout, out_layout: kept for programs that pass them; the blocks are those of the shapes.
        out_dtype: of the result and of the sums.
        n_elems: the group g of a kernel of seven dimensions.

    Returns:
        [N, O/b, H', W', b]. With uint8 data, int8 kernels, g = 4 and b = 16 the default schedule uses AVX512-VNNI, with bfloat16 and g = 2
        AVX512-BF16, where the target has them.

    Raises:
        DeclarationError: for shapes or blocks that don't fit.
    """
    where = "conv2d_NCHWc_int8"
    need_rank(where, "the data", data, 5)
    if kernel.ndim == 7:
        return _in_larger_blocks(data, kernel, stride, padding, dilation, out_dtype, n_elems)
    need_rank(where, "the kernel", kernel, 6)
    group = _GROUPS.get(data.dtype)
    if group is None or extent_value(data.shape[4]) != group or extent_value(kernel.shape[5]) != group:
        raise DeclarationError(
            f"{where}: the last axes of data ({data.dtype}, {data.shape[4]}) and kernel ({kernel.shape[5]}) are blocks of 4 bytes: "
            "4 channels of int8 or uint8, 2 of bfloat16"
        )
    need_equal(where, "the blocks of channels of data and kernel", data.shape[1], kernel.shape[1])
    padded, strides, dilations, (height, width) = blocked_windows(where, data, kernel.shape[2:4], stride, padding, dilation)
    channel, rows, columns, inner = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in zip((data.shape[1], *kernel.shape[2:4], group), ("ic", "kh", "kw", "ib"), strict=True)
    )

    def body(n: Var, o: Var, y: Var, x: Var, i: Var) -> PrimExpr:
        pixel = padded(n, channel, y * strides[0] + rows * dilations[0], x * strides[1] + columns * dilations[1], inner)
        weight = kernel(o, channel, rows, columns, i, inner)
        # The bytes of a block innermost: they are what one dot-product instruction sums.
        return te.sum(cast(pixel, out_dtype) * cast(weight, out_dtype), axis=[channel, rows, columns, inner])

    shape = (data.shape[0], kernel.shape[0], height, width, kernel.shape[4])
    return compute(shape, body, where, where)


def _in_larger_blocks(data: Tensor, kernel: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: str, n_elems: int) -> Tensor:
    where = "conv2d_NCHWc_int8"
    if extent_value(kernel.shape[6]) != n_elems:
        raise DeclarationError(f"{where}: the kernel's groups are of {kernel.shape[6]} channels, n_elems says {n_elems}")
    need_equal(where, "the blocks of channels of data and kernel", data.shape[1], kernel.shape[1])
    need_equal(where, "the channels of a block of data and kernel", data.shape[4], kernel.shape[4] * n_elems)
    padded, strides, dilations, (height, width) = blocked_windows(where, data, kernel.shape[2:4], stride, padding, dilation)
    channel, rows, columns, group, inner = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in zip(
            (data.shape[1], *kernel.shape[2:5], n_elems), ("ic_outer", "kh", "kw", "ic_f_inner", "ic_s_inner"), strict=True
        )
    )

    def body(n: Var, o: Var, y: Var, x: Var, i: Var) -> PrimExpr:
        at = (y * strides[0] + rows * dilations[0], x * strides[1] + columns * dilations[1])
        pixel = padded(n, channel, *at, group.var * n_elems + inner.var)
        weight = kernel(o, channel, rows, columns, group, i, inner)
        return te.sum(cast(pixel, out_dtype) * cast(weight, out_dtype), axis=[channel, rows, columns, group, inner])

    return compute((data.shape[0], kernel.shape[0], height, width, kernel.shape[5]), body, where, where)
