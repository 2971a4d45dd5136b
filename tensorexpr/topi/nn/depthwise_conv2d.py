"""Convolutions of each channel, by the module's name that programs import."""

from .conv2d import depthwise_conv2d_nchw, depthwise_conv2d_nhwc
from .depthwise import depthwise_conv2d_backward_input_nhwc, depthwise_conv2d_backward_weight_nhwc, depthwise_conv2d_NCHWc
from .workload import DepthwiseWorkload as Workload
from .workload import depthwise_workload as _get_workload

__all__ = [
    "Workload",
    "_get_workload",
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_backward_input_nhwc",
    "depthwise_conv2d_backward_weight_nhwc",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
]
