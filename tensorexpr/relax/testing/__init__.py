"""Networks for tests and measurements: with random weights, and made of small modules."""

from . import nn
from .networks import bert_layer, resnet50
from .nn import (
    Linear,
    LogSoftmax,
    Module,
    Parameter,
    Placeholder,
    ReLU,
    Sequential,
    checkpoint,
    emit,
    emit_checkpoint,
    emit_checkpoint_sequential,
    emit_te,
    init_params,
)  # fmt: skip

__all__ = [
    "Linear", "LogSoftmax", "Module", "Parameter", "Placeholder", "ReLU", "Sequential", "bert_layer", "checkpoint", "emit",
    "emit_checkpoint", "emit_checkpoint_sequential", "emit_te", "init_params", "nn", "resnet50",
]  # fmt: skip
