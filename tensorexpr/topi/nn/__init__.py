"""Operators of neural networks, as tensor expressions.

padding          pad, mirror_pad, dilate
conv             the convolution of any rank and layout; conv1d, conv2d, conv3d and conv_transpose by their usual names;
                 conv2d_low_precision for int8 and bfloat16 in blocks of channels; depthwise: each channel on its own
bitserial        products of numbers of few bits
deformable, correlation, lstm
                 convolutions with moved taps; patches compared; recurrent layers
simulated        quantisation in floats
dense            dense, matmul, batch_matmul, bias_add
pooling          pool1d, pool2d, pool3d, global and adaptive pooling; pooling_grad: the gradient
norm             batch, layer, group, instance and rms norm; lrn
softmax          softmax, log_softmax
elemwise         relu and the other activations
winograd         convolutions by minimal filtering
loss, fifo       nll_loss; buffers of streams
spatial          flatten, upsampling, depth_to_space, space_to_depth and their like
"""

from ..broadcast import add
from ..sparse import sparse_add, sparse_conv2d, sparse_dense, sparse_dense_sp_lhs, sparse_dense_sp_rhs, sparse_transpose
from ..transform import concatenate
from ..utils import equal_const_int, get_const_int, get_const_tuple, get_pad_tuple, get_pad_tuple1d, get_pad_tuple3d
from .bitserial import binarize_pack, binary_dense, bitpack, bitserial_conv2d_nchw, bitserial_conv2d_nhwc, bitserial_dense
from .conv import conv
from .conv1d import conv1d, conv1d_ncw, conv1d_nwc, conv1d_transpose_ncw, group_conv1d_ncw, group_conv1d_nwc, group_conv1d_transpose_ncw
from .conv2d import (
    conv2d,
    conv2d_hwcn,
    conv2d_nchw,
    conv2d_NCHWc,
    conv2d_nhwc,
    depthwise_conv2d_nchw,
    depthwise_conv2d_nhwc,
    group_conv2d_nchw,
    group_conv2d_nhwc,
)
from .conv2d_low_precision import conv2d_NCHWc_int8
from .conv3d import conv3d_ncdhw, conv3d_ndhwc, conv3d_transpose_ncdhw, group_conv3d_transpose_ncdhw
from .conv_transpose import (
    conv2d_transpose_nchw,
    conv2d_transpose_nchw_preprocess,
    conv3d_transpose_ncdhw_preprocess,
    declaration_conv2d_transpose_impl,
    declaration_conv3d_transpose_impl,
    group_conv2d_transpose_nchw,
)
from .correlation import correlation_nchw
from .deformable import deformable_conv2d_nchw, deformable_conv2d_nhwc
from .dense import batch_matmul, bias_add, dense, dense_pack, matmul
from .depthwise import depthwise_conv2d_backward_input_nhwc, depthwise_conv2d_backward_weight_nhwc, depthwise_conv2d_NCHWc
from .elemwise import gelu, leaky_relu, prelu, relu, scale_shift_nchw, scale_shift_nchwc, scale_shift_nhwc, silu
from .fifo import fifo_buffer
from .layout import Workload, layout_transform
from .loss import nll_loss
from .lstm import lstm
from .norm import batch_norm, group_norm, instance_norm, layer_norm, lrn, rms_norm
from .padding import dilate, index_pad, mirror_pad, pad
from .pooling import adaptive_pool, adaptive_pool1d, adaptive_pool3d, global_pool, pool1d, pool2d, pool3d
from .pooling_grad import POOL_TYPE_CODE, pool_grad
from .simulated import (
    SQNN_CODE_TO_DTYPE,
    SQNN_DISABLE,
    SQNN_DTYPE_TO_CODE,
    SQNN_INT8,
    SQNN_INT32,
    SQNN_UINT8,
    simulated_dequantize,
    simulated_quantize,
)
from .softmax import fast_softmax, log_softmax, softmax, softmax_common
from .spatial import (
    batch_to_space_nd,
    depth_to_space,
    flatten,
    space_to_batch_nd,
    space_to_depth,
    unpack_NCHWc_to_nchw,
    upsampling,
    upsampling3d,
)
from .winograd import (
    conv2d_winograd_nchw,
    conv2d_winograd_nchw_without_weight_transform,
    conv2d_winograd_nhwc,
    conv2d_winograd_nhwc_without_weight_transform,
    conv2d_winograd_weight_transform,
    winograd_transform_matrices,
)

__all__ = [
    "POOL_TYPE_CODE",
    "SQNN_CODE_TO_DTYPE",
    "SQNN_DISABLE",
    "SQNN_DTYPE_TO_CODE",
    "SQNN_INT8",
    "SQNN_INT32",
    "SQNN_UINT8",
    "Workload",
    "adaptive_pool",
    "adaptive_pool1d",
    "adaptive_pool3d",
    "add",
    "batch_matmul",
    "batch_norm",
    "batch_to_space_nd",
    "bias_add",
    "binarize_pack",
    "binary_dense",
    "bitpack",
    "bitserial_conv2d_nchw",
    "bitserial_conv2d_nhwc",
    "bitserial_dense",
    "concatenate",
    "conv",
    "conv1d",
    "conv1d_ncw",
    "conv1d_nwc",
    "conv1d_transpose_ncw",
    "conv2d",
    "conv2d_NCHWc",
    "conv2d_NCHWc_int8",
    "conv2d_hwcn",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_transpose_nchw",
    "conv2d_transpose_nchw_preprocess",
    "conv2d_winograd_nchw",
    "conv2d_winograd_nchw_without_weight_transform",
    "conv2d_winograd_nhwc",
    "conv2d_winograd_nhwc_without_weight_transform",
    "conv2d_winograd_weight_transform",
    "conv3d_ncdhw",
    "conv3d_ndhwc",
    "conv3d_transpose_ncdhw",
    "conv3d_transpose_ncdhw_preprocess",
    "correlation_nchw",
    "declaration_conv2d_transpose_impl",
    "declaration_conv3d_transpose_impl",
    "deformable_conv2d_nchw",
    "deformable_conv2d_nhwc",
    "dense",
    "dense_pack",
    "depth_to_space",
    "depthwise_conv2d_NCHWc",
    "depthwise_conv2d_backward_input_nhwc",
    "depthwise_conv2d_backward_weight_nhwc",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "dilate",
    "equal_const_int",
    "fast_softmax",
    "fifo_buffer",
    "flatten",
    "gelu",
    "get_const_int",
    "get_const_tuple",
    "get_pad_tuple",
    "get_pad_tuple1d",
    "get_pad_tuple3d",
    "global_pool",
    "group_conv1d_ncw",
    "group_conv1d_nwc",
    "group_conv1d_transpose_ncw",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "group_conv2d_transpose_nchw",
    "group_conv3d_transpose_ncdhw",
    "group_norm",
    "index_pad",
    "instance_norm",
    "layer_norm",
    "layout_transform",
    "leaky_relu",
    "log_softmax",
    "lrn",
    "lstm",
    "matmul",
    "mirror_pad",
    "nll_loss",
    "pad",
    "pool1d",
    "pool2d",
    "pool3d",
    "pool_grad",
    "prelu",
    "relu",
    "rms_norm",
    "scale_shift_nchw",
    "scale_shift_nchwc",
    "scale_shift_nhwc",
    "silu",
    "simulated_dequantize",
    "simulated_quantize",
    "softmax",
    "softmax_common",
    "space_to_batch_nd",
    "space_to_depth",
    "sparse_add",
    "sparse_conv2d",
    "sparse_dense",
    "sparse_dense_sp_lhs",
    "sparse_dense_sp_rhs",
    "sparse_transpose",
    "unpack_NCHWc_to_nchw",
    "upsampling",
    "upsampling3d",
    "winograd_transform_matrices",
]
