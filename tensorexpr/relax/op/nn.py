"""Operators of neural networks as functions that make calls."""

from ..ops.activation import (
    celu,
    elu,
    hard_sigmoid,
    hard_swish,
    mish,
    prelu,
    relu6,
    selu,
    softplus,
    softsign,
    swish,
    thresholded_relu,
)
from ..ops.attention import attention
from ..ops.conv import conv1d, conv1d_transpose, conv2d, conv2d_transpose, conv3d, conv3d_transpose
from ..ops.elementwise import gelu, gelu_tanh, leakyrelu, relu, silu
from ..ops.linear import dense
from ..ops.loss import cross_entropy_with_logits, nll_loss
from ..ops.norm import batch_norm, dropout, group_norm, instance_norm, layer_norm, log_softmax, lrn, rms_norm, softmax
from ..ops.pad import pad
from ..ops.pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_pool_with_places,
)
from ..ops.recurrent import gru, gru_steps, lstm, lstm_steps, lstm_steps_of_bytes, rnn, rnn_steps
from ..ops.vision import deform_conv2d
from ..ops.winograd import conv2d_winograd

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "attention", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "celu", "conv1d", "conv1d_transpose",
    "conv2d", "conv2d_transpose", "conv2d_winograd", "conv3d", "conv3d_transpose", "cross_entropy_with_logits", "deform_conv2d", "dense",
    "dropout", "elu",
    "gelu", "gelu_tanh", "group_norm", "gru", "gru_steps", "hard_sigmoid", "hard_swish", "instance_norm", "layer_norm", "leakyrelu",
    "log_softmax", "lp_pool1d", "lp_pool2d", "lp_pool3d", "lrn", "lstm", "lstm_steps", "lstm_steps_of_bytes",
    "max_pool1d", "max_pool2d", "max_pool3d",
    "max_pool_with_places", "mish", "nll_loss", "pad", "prelu", "relu", "relu6", "rms_norm", "rnn", "rnn_steps", "selu", "silu",
    "softmax", "softplus", "softsign", "swish", "thresholded_relu",
]  # fmt: skip
