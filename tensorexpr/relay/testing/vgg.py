"""VGG (Simonyan and Zisserman 2014, table 1)."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import DeclarationError
from ..expr import Function
from ..op import nn
from .init import Workload, create_workload
from .layers import Layers, function_of

# Convolutions of each of the five stages.
_STAGES = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
_CHANNELS = (64, 128, 256, 512, 512)


def get_net(
    batch_size: int, image_shape: Sequence[int], num_classes: int, dtype: str, num_layers: int = 11, batch_norm: bool = False
) -> Function:
    """The network.

    Raises:
        DeclarationError: for another number of layers than 11, 13, 16 and 19.
    """
    if num_layers not in _STAGES:
        raise DeclarationError(f"num_layers is one of {', '.join(map(str, _STAGES))}, not {num_layers}")
    make = Layers(dtype=dtype)
    value = make.picture(batch_size, image_shape)
    for stage, (count, channels) in enumerate(zip(_STAGES[num_layers], _CHANNELS, strict=True), 1):
        for number in range(1, count + 1):
            value = make.conv(value, f"conv{stage}_{number}", channels, 3, 1, 1, bias=True)
            value = nn.relu(make.norm(value, f"bn{stage}_{number}") if batch_norm else value)
        value = make.max_pool(value, 2, 2)
    value = nn.batch_flatten(value)
    for name in ("fc6", "fc7"):
        value = nn.dropout(nn.relu(make.dense(value, name, 4096)), 0.5)
    return function_of(make.classes(value, "fc8", num_classes))


def get_workload(
    batch_size: int, num_classes: int = 1000, image_shape: Sequence[int] = (3, 224, 224), dtype: str = "float32", num_layers: int = 11,
    batch_norm: bool = False,
) -> Workload:  # fmt: skip
    """The network as a module, and weights."""
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm))
