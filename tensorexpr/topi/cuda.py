"""Operators and schedules for GPUs by the names that programs call.

A table of operators, as those of `topi` itself compute the same for every target, and the default schedules, which look at the
computation and the target: the current one, else "cuda". Programs name both in the tables from which they dispatch by the target, on
machines without a GPU too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..later import later
from . import nn as _nn
from .generic import OPERATORS as _GENERIC
from .named_operators import renamed
from .named_schedules import define_schedules
from .named_schedules import schedule_injective_from_existing as schedule_injective_from_existing

_NAMES = """
scan conv1d_transpose_ncw dense_int8 dense_tensorcore batch_matmul_int8 batch_matmul_tensorcore conv2d_cudnn conv2d_nchw_int8
conv2d_nchw_winograd conv2d_nhwc_winograd_direct conv2d_nhwc_tensorcore conv3d_ncdhw_winograd conv3d_ndhwc_tensorcore
group_conv2d_NCHWc_int8 group_conv2d_nchw_int8 sparse_dense_padded transpose conv2d_hwnc_tensorcore
depthwise_conv2d_backward_input_nhwc depthwise_conv2d_backward_weight_nhwc
"""
_CONV = "data kernel strides padding dilation"
# Operators whose arguments have other names here.
_COMPUTES: dict[str, tuple[Callable[..., Any], str]] = {
    "batch_matmul": (_nn.batch_matmul, "x y out_shape out_dtype transpose_a transpose_b"),
    "batch_matmul_int8": (_nn.batch_matmul, "x y out_shape out_dtype transpose_a transpose_b"),
    "batch_matmul_tensorcore": (_nn.batch_matmul, "x y out_shape out_dtype transpose_a transpose_b"),
    "conv2d_hwcn": (_nn.conv2d_hwcn, f"{_CONV} out_dtype"),
    "conv2d_nchw": (_nn.conv2d_nchw, f"{_CONV} out_dtype"),
    "conv2d_nchw_int8": (_nn.conv2d_nchw, f"{_CONV} out_dtype"),
    "conv2d_nhwc_tensorcore": (_nn.conv2d_nhwc, f"{_CONV} out_dtype"),
    "conv2d_transpose_nchw": (_nn.conv2d_transpose_nchw, "data kernel stride padding out_dtype output_padding"),
    "conv3d_ncdhw": (_nn.conv3d_ncdhw, f"{_CONV} groups out_dtype"),
    "conv3d_ncdhw_winograd": (_nn.conv3d_ncdhw, f"{_CONV} groups out_dtype"),
    "conv3d_ndhwc": (_nn.conv3d_ndhwc, f"{_CONV} groups out_dtype"),
    "conv3d_ndhwc_tensorcore": (_nn.conv3d_ndhwc, f"{_CONV} groups out_dtype"),
    "conv3d_transpose_ncdhw": (_nn.conv3d_transpose_ncdhw, "data kernel stride padding out_dtype output_padding"),
    "depthwise_conv2d_nchw": (_nn.depthwise_conv2d_nchw, f"{_CONV} out_dtype"),
    "group_conv2d_nchw": (_nn.group_conv2d_nchw, "data kernel stride padding dilation groups out_dtype"),
    "group_conv2d_nchw_int8": (_nn.group_conv2d_nchw, f"{_CONV} groups out_dtype"),
}
_SCHEDULES = (*_GENERIC, *_NAMES.split())
OPERATORS = tuple(dict.fromkeys(_SCHEDULES))

define_schedules(globals(), OPERATORS, "cuda")


def _operator(name: str, function: Callable[..., Any], names: str) -> Callable[..., Any]:
    return renamed(__name__, "CUDA", name, function, names, lambda args: function(*args))


globals().update({name: _operator(name, function, names) for name, (function, names) in _COMPUTES.items()})

__getattr__, __dir__ = later(
    __name__,
    {
        ".sort": "argsort sort topk searchsorted",
        ".scan": "cumprod cumsum",
        ".scatter": "scatter_nd",
        ".signal": "dft",
        ".unique": "argwhere unique",
        ".vision": "get_valid_counts non_max_suppression",
        ".detection": "all_class_non_max_suppression multibox_detection multibox_prior multibox_transform_loc",
        ".proposals": "proposal",
        # Arithmetic and libraries that only schedules know: the operator is the plain one.
        ".nn": "dense_int8=dense dense_tensorcore=dense conv2d_cudnn=conv2d conv2d_nchw_winograd=conv2d_winograd_nchw conv2d_NCHWc_int8 "
        "conv2d_nhwc_winograd_direct=conv2d_winograd_nhwc group_conv1d_ncw group_conv1d_nwc conv1d_ncw conv1d_nwc "
        "conv1d_transpose_ncw correlation_nchw deformable_conv2d_nchw sparse_dense",
    },
)
