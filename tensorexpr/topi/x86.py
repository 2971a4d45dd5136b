"""Schedules for x86 by the names that programs call: the default schedules, which are made for the target's vectors and caches."""

from __future__ import annotations

from .named_schedules import define_schedules, schedule_injective_from_existing

_NAMES = """
adaptive_pool batch_norm binarize_pack binary_dense broadcast concatenate concatenate_cpu conv1d_ncw conv1d_nwc
conv2d_nchw conv2d_nchw_int8 conv2d_nhwc conv2d_transpose_nchw conv3d_transpose_ncdhw dense_dynamic
depthwise_conv2d_nchw elemwise group_conv1d_ncw group_conv1d_nwc group_conv2d_nchw injective pool reduce softmax
sparse_dense
"""
OPERATORS = tuple(_NAMES.split())

__all__ = ["schedule_injective_from_existing", *(f"schedule_{operator}" for operator in OPERATORS)]

define_schedules(globals(), OPERATORS)
