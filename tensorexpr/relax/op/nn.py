"""Operators of neural networks as functions that make calls."""

from ..ops.elementwise import gelu, gelu_tanh, leakyrelu, relu, silu
from ..ops.linear import dense
from ..ops.nn import adaptive_avg_pool2d, avg_pool2d, batch_norm, conv2d, dropout, layer_norm, log_softmax, max_pool2d, rms_norm, softmax

__all__ = [
    "adaptive_avg_pool2d", "avg_pool2d", "batch_norm", "conv2d", "dense", "dropout", "gelu", "gelu_tanh", "layer_norm", "leakyrelu",
    "log_softmax", "max_pool2d", "relu", "rms_norm", "silu", "softmax",
]  # fmt: skip
