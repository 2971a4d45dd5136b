"""Convolutions of small numbers in groups: channels in blocks of 4 bytes, which one dot-product instruction takes at once."""

from __future__ import annotations

from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir.arithmetic import cast, floordiv
from ...tir.expr import PrimExpr, Var
from ..utils import extent_value, get_const_int, need_equal, need_rank, pad_pairs, spread
from .padding import needs_padding, pad

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
) -> Tensor:
    """data [N, C/g, H, W, g], kernel [O/b, C/g, KH, KW, b, g] -> [N, O/b, H', W', b], summed in `out_dtype`.

    g is 4 for uint8 and int8, and 2 for bfloat16. With uint8 data, int8 kernels and b = 16 the default schedule uses
    AVX512-VNNI, with bfloat16 AVX512-BF16, where the target has them.

    Raises:
        DeclarationError: for shapes or blocks that don't fit.
    """
    where = "conv2d_NCHWc_int8"
    need_rank(where, "the data", data, 5)
    need_rank(where, "the kernel", kernel, 6)
    group = _GROUPS.get(data.dtype)
    if group is None or extent_value(data.shape[4]) != group or extent_value(kernel.shape[5]) != group:
        raise DeclarationError(
            f"{where}: the last axes of data ({data.dtype}, {data.shape[4]}) and kernel ({kernel.shape[5]}) are blocks of 4 bytes: "
            "4 channels of int8 or uint8, 2 of bfloat16"
        )
    need_equal(where, "the blocks of channels of data and kernel", data.shape[1], kernel.shape[1])
    strides, dilations = spread(where, "stride", stride, 2), spread(where, "dilation", dilation, 2)
    windows = [extent_value((tap - 1) * step + 1) for tap, step in zip(kernel.shape[2:4], dilations, strict=True)]
    (top, bottom), (left, right) = pad_pairs(where, padding, windows)
    before, after = (0, 0, top, left, 0), (0, 0, bottom, right, 0)
    padded = pad(data, before, after, name="data_pad") if needs_padding(before, after) else data
    height, width = (
        get_const_int(floordiv(extent - window, step) + 1) for extent, window, step in zip(padded.shape[2:4], windows, strides, strict=True)
    )
    channel, rows, columns, inner = (
        te.reduce_axis((0, extent), name=name)
        for extent, name in zip((data.shape[1], *kernel.shape[2:4], group), ("ic", "kh", "kw", "ib"), strict=True)
    )

    def body(n: Var, o: Var, y: Var, x: Var, i: Var) -> PrimExpr:
        pixel = padded(n, channel, y * strides[0] + rows * dilations[0], x * strides[1] + columns * dilations[1], inner)
        weight = kernel(o, channel, rows, columns, i, inner)
        total: PrimExpr = te.sum(cast(pixel, out_dtype) * cast(weight, out_dtype), axis=[channel, rows, columns, inner])
        return total

    shape = (data.shape[0], kernel.shape[0], height, width, kernel.shape[4])
    result: Tensor = compute(shape, body, where, where)
    return result
