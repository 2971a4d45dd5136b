"""DenseNet (Huang et al. 2016, table 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import DeclarationError
from ..expr import Function
from ..op import nn
from .init import Workload, create_workload
from .layers import Layers, function_of

# The first channels, the channels that each layer adds, and the layers of each block.
_SIZES = {
    121: (64, 32, (6, 12, 24, 16)), 161: (96, 48, (6, 12, 36, 24)), 169: (64, 32, (6, 12, 32, 32)), 201: (64, 32, (6, 12, 48, 32)),
}  # fmt: skip


def _layer(make: Layers, x: Any, name: str, growth: int) -> Any:
    """What a layer adds, behind what came in."""
    inner = make.conv(nn.relu(make.norm(x, f"{name}_bn1")), f"{name}_conv1", 4 * growth)
    return make.joined(x, make.conv(nn.relu(make.norm(inner, f"{name}_bn2")), f"{name}_conv2", growth, 3, 1, 1))


def get_net(batch_size: int, classes: int, densenet_size: int, image_shape: Sequence[int], dtype: str) -> Function:
    """The network.

    Raises:
        DeclarationError: for another size than 121, 161, 169 and 201.
    """
    if densenet_size not in _SIZES:
        raise DeclarationError(f"densenet_size is one of {', '.join(map(str, _SIZES))}, not {densenet_size}")
    first, growth, blocks = _SIZES[densenet_size]
    make = Layers(dtype=dtype)
    value = nn.relu(make.norm(make.conv(make.picture(batch_size, image_shape), "conv1", first, 7, 2, 3), "batch1"))
    value = make.max_pool(value, pad=1)
    for block, layers in enumerate(blocks, 1):
        for number in range(1, layers + 1):
            value = _layer(make, value, f"block{block}_layer{number}", growth)
        value = nn.relu(make.norm(value, f"transition{block}_bn"))
        if block < len(blocks):
            value = make.mean_pool(make.conv(value, f"transition{block}", make.channels(value) // 2), 2, 2)
    return function_of(make.classes(make.pooled(value), "fc", classes))


def get_workload(
    densenet_size: int = 121, classes: int = 1000, batch_size: int = 4, image_shape: Sequence[int] = (3, 224, 224), dtype: str = "float32"
) -> Workload:
    """The network as a module, and weights."""
    return create_workload(get_net(batch_size, classes, densenet_size, image_shape, dtype))
