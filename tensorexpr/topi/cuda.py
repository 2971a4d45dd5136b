"""Operators and schedules for GPUs by the names that programs call.

A table of operators, as those of `topi` itself compute the same for every target, and the default schedules, which look at the
computation and the target. Programs name both in the tables from which they dispatch by the target, on machines without a GPU too.
"""

from __future__ import annotations

from ..later import later
from .generic import OPERATORS as _GENERIC
from .named_schedules import define_schedules

_NAMES = """
scan conv1d_transpose_ncw dense_int8 dense_tensorcore batch_matmul_int8 batch_matmul_tensorcore conv2d_cudnn conv2d_nchw_int8
conv2d_nchw_winograd conv2d_nhwc_winograd_direct conv2d_nhwc_tensorcore conv3d_ncdhw_winograd conv3d_ndhwc_tensorcore
group_conv2d_NCHWc_int8 sparse_dense_padded
"""
_SCHEDULES = (*_GENERIC, *_NAMES.split())
OPERATORS = tuple(dict.fromkeys(_SCHEDULES))

define_schedules(globals(), OPERATORS)

__getattr__, __dir__ = later(
    __name__,
    {
        ".sort": "argsort sort topk searchsorted",
        ".scan": "cumprod cumsum",
        ".scatter": "scatter_nd",
        ".signal": "dft",
        ".unique": "argwhere unique",
        ".vision": "get_valid_counts non_max_suppression",
        ".detection": "all_class_non_max_suppression multibox_detection multibox_prior multibox_transform_loc proposal",
        # Arithmetic and libraries that only schedules know: the operator is the plain one.
        ".nn": "batch_matmul batch_matmul_int8=batch_matmul batch_matmul_tensorcore=batch_matmul dense_int8=dense dense_tensorcore=dense "
        "conv2d_cudnn=conv2d conv2d_nchw_int8=conv2d_nchw conv2d_nchw_winograd=conv2d_winograd_nchw conv2d_NCHWc_int8 "
        "conv2d_nhwc_winograd_direct=conv2d_winograd_nhwc conv2d_nhwc_tensorcore=conv2d_nhwc conv3d_ncdhw_winograd=conv3d_ncdhw "
        "conv3d_ndhwc_tensorcore=conv3d_ndhwc group_conv1d_ncw group_conv1d_nwc conv1d_ncw conv1d_nwc "
        "conv1d_transpose_ncw conv2d_hwcn conv2d_nchw conv2d_transpose_nchw conv3d_ncdhw "
        "conv3d_ndhwc conv3d_transpose_ncdhw correlation_nchw deformable_conv2d_nchw depthwise_conv2d_nchw group_conv2d_nchw sparse_dense",
    },
)
