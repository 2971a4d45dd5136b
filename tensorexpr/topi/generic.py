"""Schedules of operators by the names that programs call. They hand over to the default schedules, which look at the computation."""

import sys

from .named_schedules import define_schedules, schedule_injective_from_existing

_NAMES = """
adaptive_pool argsort argwhere batch_matmul batch_norm binarize_pack binary_dense bitpack bitserial_conv2d_nchw
bitserial_conv2d_nhwc bitserial_dense broadcast conv1d_ncw conv1d_nwc conv1d_transpose_ncw conv2d_NCHWc
conv2d_NCHWc_int8 conv2d_gemm_weight_transform conv2d_hwcn conv2d_nchw conv2d_nhwc conv2d_nhwc_pack
conv2d_transpose_nchw conv2d_winograd_nnpack_weight_transform conv2d_winograd_weight_transform
conv2d_winograd_without_weight_transform conv3d_ncdhw conv3d_ndhwc conv3d_transpose_ncdhw
conv3d_winograd_weight_transform correlation_nchw deformable_conv2d_nchw deformable_conv2d_nhwc dense
depthwise_conv2d_NCHWc depthwise_conv2d_nchw depthwise_conv2d_nhwc dilation2d_nchw dilation2d_nhwc einsum elemwise
extern fast_softmax get_valid_counts group_conv1d_ncw group_conv1d_nwc group_conv1d_transpose_ncw group_conv2d_nchw
group_conv2d_nhwc group_conv2d_transpose_nchw group_conv3d_transpose_ncdhw injective lrn lstm matmul multibox_detection
multibox_prior multibox_transform_loc nms pool pool_grad proposal reduce reorg roi_align roi_pool softmax sort
sparse_conv2d sparse_dense sparse_fill_empty_rows sparse_transpose topk unique
"""
OPERATORS = tuple(_NAMES.split())

__all__ = ["conv2d", "schedule_injective_from_existing", *(f"schedule_{operator}" for operator in OPERATORS)]

define_schedules(globals(), OPERATORS)
conv2d = sys.modules[__name__]  # programs name the module of convolutions too
