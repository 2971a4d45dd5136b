"""A perceptron of two hidden layers, as for digits."""

from __future__ import annotations

from collections.abc import Sequence

from ..expr import Function
from ..op import nn
from .init import Workload, create_workload
from .layers import Layers, function_of


def get_net(batch_size: int, num_classes: int = 10, image_shape: Sequence[int] = (1, 28, 28), dtype: str = "float32") -> Function:
    """The network."""
    make = Layers(dtype=dtype)
    value = nn.batch_flatten(make.picture(batch_size, image_shape))
    for name, units in (("fc1", 128), ("fc2", 64)):
        value = nn.relu(make.dense(value, name, units))
    return function_of(make.classes(value, "fc3", num_classes))


def get_workload(batch_size: int, num_classes: int = 10, image_shape: Sequence[int] = (1, 28, 28), dtype: str = "float32") -> Workload:
    """The network as a module, and weights."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
