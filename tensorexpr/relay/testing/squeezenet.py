"""SqueezeNet 1.0 and 1.1 (Iandola et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import DeclarationError
from ..expr import Function
from ..op import nn
from .init import Workload, create_workload
from .layers import Layers, function_of

# The first convolution (channels, kernel), then fire modules by their squeezed channels, and pools ("pool").
_VERSIONS: dict[str, tuple[tuple[int, int], Sequence[Any]]] = {
    "1.0": ((96, 7), ("pool", 16, 16, 32, "pool", 32, 48, 48, 64, "pool", 64)),
    "1.1": ((64, 3), ("pool", 16, 16, "pool", 32, 32, "pool", 48, 48, 64, 64)),
}


def _fire(make: Layers, x: Any, name: str, squeezed: int) -> Any:
    """Few channels, of which 1x1 and 3x3 convolutions make four times as many each."""
    inner = nn.relu(make.conv(x, f"{name}_squeeze", squeezed, bias=True))
    small = nn.relu(make.conv(inner, f"{name}_expand1x1", 4 * squeezed, bias=True))
    return make.joined(small, nn.relu(make.conv(inner, f"{name}_expand3x3", 4 * squeezed, 3, 1, 1, bias=True)))


def get_net(batch_size: int, image_shape: Sequence[int], num_classes: int, version: str, dtype: str) -> Function:
    """The network.

    Raises:
        DeclarationError: for versions other than "1.0" and "1.1".
    """
    if version not in _VERSIONS:
        raise DeclarationError(f"SqueezeNet has the versions {', '.join(_VERSIONS)}, not {version!r}")
    (channels, kernel), steps = _VERSIONS[version]
    make = Layers(dtype=dtype)
    value = nn.relu(make.conv(make.picture(batch_size, image_shape), "conv1", channels, kernel, 2, bias=True))
    for number, step in enumerate(steps):
        value = make.max_pool(value) if step == "pool" else _fire(make, value, f"fire{number}", step)
    value = nn.relu(make.conv(nn.dropout(value, 0.5), "conv_final", num_classes, bias=True))
    return function_of(nn.softmax(make.pooled(value)))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, version: str = "1.0", image_shape: Sequence[int] = (3, 224, 224), dtype: str = "float32"
) -> Workload:
    """The network as a module, and weights."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
