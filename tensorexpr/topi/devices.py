"""Operators and schedules for further processors by the names that programs dispatch to.

Programs list the modules of all processors in their tables, whichever they run on. What an operator computes doesn't depend on one, and
schedules look at the computation and the target: so each name stands for the operator and the default schedule of its kind.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from . import nn, transform
from .named_schedules import define_schedules

# Each operator as name=function of topi.nn, or both in one; their schedules are called schedule_<name>.
_TABLES = {
    "arm_cpu": "bitserial_conv2d_nhwc bitserial_dense conv2d_NCHWc_int8 conv2d_nchw_spatial_pack=conv2d_nchw conv2d_nchw_winograd="
    "conv2d_winograd_nchw conv2d_nhwc_spatial_pack=conv2d_nhwc conv2d_transpose_nchw depthwise_conv2d_nchw "
    "depthwise_conv2d_nchw_spatial_pack=depthwise_conv2d_nchw depthwise_conv2d_nhwc group_conv2d_nchw concatenate "
    "compute_depthwise_conv2d_nhwc=depthwise_conv2d_nhwc",
    "bifrost": "conv2d_nchw_spatial_pack=conv2d_nchw conv2d_nchw_winograd=conv2d_winograd_nchw dense depthwise_conv2d_nchw",
    "gpu": "conv2d_nhwc dense_large_batch=dense dense_small_batch=dense",
    "hls": "adaptive_pool conv2d_nchw conv2d_nhwc conv2d_transpose_nchw dense depthwise_conv2d_nchw pool=pool2d softmax",
    "intel_graphics": "conv2d_NCHWc conv2d_nchw depthwise_conv2d_nchw",
    "mali": "conv2d_nchw_spatial_pack=conv2d_nchw conv2d_nchw_winograd=conv2d_winograd_nchw conv2d_nhwc_spatial_pack=conv2d_nhwc dense "
    "depthwise_conv2d_nchw depthwise_conv2d_nhwc",
}


def _module(device: str, table: str) -> ModuleType:
    name = f"{__name__.rpartition('.')[0]}.{device}"
    module = ModuleType(name, f"Operators and schedules for the processor {device}; see `topi.devices`.")
    operators: dict[str, Any] = {}
    for shown, _, function in (item.partition("=") for item in table.split()):
        operators[shown] = transform.concatenate if shown == "concatenate" else getattr(nn, function or shown)
    vars(module).update(operators)
    define_schedules(vars(module), operators)
    return module


DEVICES = {device: _module(device, table) for device, table in _TABLES.items()}
globals().update(DEVICES)
