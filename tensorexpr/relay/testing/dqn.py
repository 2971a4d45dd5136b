"""The network that learned to play games from their pictures (Mnih et al. 2015)."""

from __future__ import annotations

from collections.abc import Sequence

from ..expr import Function
from ..op import nn
from .init import Workload, create_workload
from .layers import Layers, function_of


def get_net(
    batch_size: int, num_actions: int = 18, image_shape: Sequence[int] = (4, 84, 84), dtype: str = "float32", layout: str = "NCHW"
) -> Function:
    """The network: a value for each action, of several pictures as channels."""
    make = Layers(layout, dtype)
    value = make.picture(batch_size, image_shape)
    for number, (channels, kernel, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 1):
        value = nn.relu(make.conv(value, f"conv{number}", channels, kernel, stride, bias=True))
    value = nn.relu(make.dense(nn.batch_flatten(value), "dense1", 512))
    return function_of(make.dense(value, "dense2", num_actions))


def get_workload(
    batch_size: int, num_actions: int = 18, image_shape: Sequence[int] = (4, 84, 84), dtype: str = "float32", layout: str = "NCHW"
) -> Workload:
    """The network as a module, and weights; see `get_net`."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))
