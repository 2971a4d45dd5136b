"""Quantized operators: `relay.qnn.op.conv2d`, also `relay.qnn.conv2d`."""

from . import op
from .op import (
    abs,
    add,
    avg_pool2d,
    batch_matmul,
    concatenate,
    conv2d,
    conv2d_transpose,
    dense,
    dequantize,
    erf,
    exp,
    hardswish,
    leaky_relu,
    log,
    mul,
    quantize,
    requantize,
    rsqrt,
    sigmoid,
    softmax,
    sqrt,
    subtract,
    tanh,
)  # fmt: skip

__all__ = [
    "abs", "add", "avg_pool2d", "batch_matmul", "concatenate", "conv2d", "conv2d_transpose", "dense", "dequantize", "erf", "exp",
    "hardswish", "leaky_relu", "log", "mul", "op", "quantize", "requantize", "rsqrt", "sigmoid", "softmax", "sqrt", "subtract", "tanh",
]  # fmt: skip
