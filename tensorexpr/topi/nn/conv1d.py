"""Convolutions over one spatial dimension."""

from __future__ import annotations

from typing import Any

from ...errors import DeclarationError
from ...te.tensor import Tensor
from .conv import conv
from .conv_transpose import conv_transpose


def conv1d(
    data: Tensor,
    kernel: Tensor,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> Tensor:
    """A convolution of layout "NCW" or "NWC" (see `conv.conv`)."""
    if data_layout not in ("NCW", "NWC"):
        raise DeclarationError(f'conv1d: data_layout is {data_layout!r}; it takes "NCW" or "NWC"')
    name = f"conv1d_{data_layout.lower()}" if groups == 1 else f"group_conv1d_{data_layout.lower()}"
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype, name=name)


def conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, out_dtype: str | None = None
) -> Tensor:
    """data [N, C, W], kernel [O, C, KW] -> [N, O, W']."""
    return conv1d(data, kernel, strides, padding, dilation, 1, "NCW", "OIW", out_dtype)


def conv1d_nwc(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, out_dtype: str | None = None
) -> Tensor:
    """data [N, W, C], kernel [KW, C, O] -> [N, W', O]."""
    return conv1d(data, kernel, strides, padding, dilation, 1, "NWC", "WIO", out_dtype)


def group_conv1d_ncw(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, groups: int = 1, out_dtype: str | None = None
) -> Tensor:
    """data [N, C, W], kernel [O, C/groups, KW] -> [N, O, W']."""
    return conv1d(data, kernel, strides, padding, dilation, groups, "NCW", "OIW", out_dtype)


def group_conv1d_nwc(
    data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, groups: int = 1, out_dtype: str | None = None
) -> Tensor:
    """data [N, W, C], kernel [KW, C/groups, O] -> [N, W', O]."""
    return conv1d(data, kernel, strides, padding, dilation, groups, "NWC", "WIO", out_dtype)


def conv1d_transpose_ncw(data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: str | None, output_padding: Any) -> Tensor:
    """data [N, C, W], kernel [C, O, KW] -> [N, O, (W-1)*stride - paddings + KW + output_padding]."""
    return conv_transpose(data, kernel, stride, padding, out_dtype, output_padding, 1, "W", "conv1d_transpose_ncw")


def group_conv1d_transpose_ncw(
    data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: str | None, output_padding: Any, groups: int
) -> Tensor:
    """As conv1d_transpose_ncw with kernel [C, O/groups, KW]."""
    return conv_transpose(data, kernel, stride, padding, out_dtype, output_padding, groups, "W", "group_conv1d_transpose_ncw")
