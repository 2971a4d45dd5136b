"""Convolutions over three spatial dimensions."""

from __future__ import annotations

from typing import Any

from ...te.tensor import Tensor
from .conv import conv
from .conv_transpose import conv_transpose


def conv3d_ncdhw(
    Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int = 1, out_dtype: str | None = None
) -> Tensor:
    """Input [N, C, D, H, W], Filter [O, C/groups, KD, KH, KW] -> [N, O, D', H', W']."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCDHW", "OIDHW", out_dtype)


def conv3d_ndhwc(
    Input: Tensor,
    Filter: Tensor,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int = 1,
    out_dtype: str | None = "float32",
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_origin_shape: Any = None,
) -> Tensor:
    """Input [N, D, H, W, C], Filter [KD, KH, KW, C/groups, O] -> [N, D', H', W', O]. A tuner may choose the filter's layout."""
    attrs = {"layout_free_placeholders": [Filter]}
    return conv(Input, Filter, stride, padding, dilation, groups, "NDHWC", "DHWIO", out_dtype, attrs=attrs)


def conv3d_transpose_ncdhw(Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any) -> Tensor:
    """Input [N, C, D, H, W], Filter [C, O, KD, KH, KW] -> [N, O, D', H', W']."""
    return conv_transpose(Input, Filter, strides, padding, out_dtype, output_padding, 1, "DHW", "conv3d_transpose_ncdhw")


def group_conv3d_transpose_ncdhw(
    data: Tensor, kernel: Tensor, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any, groups: int
) -> Tensor:
    """As conv3d_transpose_ncdhw with kernel [C, O/groups, KD, KH, KW]."""
    return conv_transpose(data, kernel, strides, padding, out_dtype, output_padding, groups, "DHW", "group_conv3d_transpose_ncdhw")
