"""ResNet with norms in front of convolutions (He et al. 2016, "Identity mappings in deep residual networks")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import DeclarationError
from ..expr import Function
from ..op import add, nn
from .init import Workload, create_workload
from .layers import Layers, function_of

# How many units each of the four stages has, by the number of layers; from 50 on, units are bottlenecks.
_UNITS = {
    18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3),
    269: (3, 30, 48, 8),
}  # fmt: skip
_EPSILON = 2e-5


def _unit(make: Layers, x: Any, name: str, channels: int, stride: int, same: bool, bottleneck: bool) -> Any:
    """Norms and convolutions, added to what came in; where channels or extents change, to a projection of it."""
    first = nn.relu(make.norm(x, f"{name}_bn1", _EPSILON))
    steps: tuple[tuple[int, int, int], ...]
    if bottleneck:
        steps = ((channels // 4, 1, 1), (channels // 4, 3, stride), (channels, 1, 1))
    else:
        steps = ((channels, 3, stride), (channels, 3, 1))
    value = first
    for number, (count, kernel, step) in enumerate(steps, 1):
        value = value if number == 1 else nn.relu(make.norm(value, f"{name}_bn{number}", _EPSILON))
        value = make.conv(value, f"{name}_conv{number}", count, kernel, step, kernel // 2)
    return add(value, x if same else make.conv(first, f"{name}_sc", channels, 1, stride))


def _stages(num_layers: int, height: int) -> tuple[Sequence[int], Sequence[int], bool]:
    """Units and channels of the stages, and whether units are bottlenecks.

    Raises:
        DeclarationError: for numbers of layers that the papers don't have.
    """
    if height <= 28:  # pictures of CIFAR: three stages of as many units
        if num_layers >= 164 and (num_layers - 2) % 9 == 0:
            return [(num_layers - 2) // 9] * 3, (16, 64, 128, 256), True
        if (num_layers - 2) % 6 == 0 and num_layers < 164:
            return [(num_layers - 2) // 6] * 3, (16, 16, 32, 64), False
        raise DeclarationError(f"num_layers of small pictures is 6 n + 2, or from 164 on 9 n + 2, not {num_layers}")
    if num_layers not in _UNITS:
        raise DeclarationError(f"num_layers is one of {', '.join(map(str, _UNITS))}, not {num_layers}")
    bottleneck = num_layers >= 50
    return _UNITS[num_layers], (64, 256, 512, 1024, 2048) if bottleneck else (64, 64, 128, 256, 512), bottleneck


def get_net(
    batch_size: int, num_classes: int, num_layers: int = 50, image_shape: Sequence[int] = (3, 224, 224), layout: str = "NCHW",
    dtype: str = "float32", **kwargs: Any,
) -> Function:  # fmt: skip
    """The network.

    Args:
        batch_size, num_classes, dtype: of it.
        num_layers: 18, 34, 50, 101, 152, 200 or 269; of pictures of up to 28 rows 6 n + 2 or 9 n + 2.
        image_shape: of a picture, in the layout.
        layout: "NCHW" or "NHWC".
        kwargs: accepted.
    """
    make = Layers(layout, dtype)
    height = image_shape[layout.index("H") - 1]
    units, channels, bottleneck = _stages(num_layers, height)
    value = make.norm(make.picture(batch_size, image_shape), "bn_data", _EPSILON, scale=False)
    if height <= 32:
        value = make.conv(value, "conv0", channels[0], 3, 1, 1)
    else:
        value = nn.relu(make.norm(make.conv(value, "conv0", channels[0], 7, 2, 3), "bn0", _EPSILON))
        value = make.max_pool(value, pad=1)
    for stage, (count, wide) in enumerate(zip(units, channels[1:], strict=True), 1):
        for number in range(1, count + 1):
            stride = 2 if number == 1 and stage > 1 else 1
            value = _unit(make, value, f"stage{stage}_unit{number}", wide, stride, number > 1, bottleneck)
    return function_of(make.classes(make.pooled(nn.relu(make.norm(value, "bn1", _EPSILON))), "fc1", num_classes))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, num_layers: int = 18, image_shape: Sequence[int] = (3, 224, 224), layout: str = "NCHW",
    dtype: str = "float32", **kwargs: Any,
) -> Workload:  # fmt: skip
    """The network as a module, and weights; see `get_net`."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype))
