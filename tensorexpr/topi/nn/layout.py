"""Layouts of tensors, and the extents of a convolution as one record."""

from __future__ import annotations

from collections import namedtuple

from ...te.tensor import Tensor
from ..transform import layout_transform as _layout_transform

Workload = namedtuple(
    "Workload",
    "in_dtype out_dtype height width in_filter out_filter kernel_h kernel_w padt padl padb padr dilation_h dilation_w stride_h stride_w",
)


def layout_transform(tensor: Tensor, current_layout: str, desired_layout: str) -> Tensor:
    """A tensor of layout such as "NCHW" in another one such as "NCHW16c"; see `topi.layout_transform`.

    Raises:
        DeclarationError: for layouts that don't fit the tensor, or each other.
    """
    return _layout_transform(tensor, current_layout, desired_layout)
