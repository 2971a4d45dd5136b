"""MobileNet (Howard et al. 2017, table 1)."""

from __future__ import annotations

from collections.abc import Sequence

from ..expr import Function
from .init import Workload, create_workload
from .layers import Layers, function_of

# Channels and stride of each separable convolution.
_BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))


def mobile_net(
    num_classes: int = 1000, data_shape: Sequence[int] = (1, 3, 224, 224), dtype: str = "float32", alpha: float = 1.0,
    is_shallow: bool = False, layout: str = "NCHW",
) -> Function:  # fmt: skip
    """The network.

    Args:
        num_classes, dtype: of it.
        data_shape: of pictures, in the layout.
        alpha: the factor of all channels.
        is_shallow: without the five blocks of 512 channels.
        layout: "NCHW" or "NHWC".
    """
    make = Layers(layout, dtype)
    value = make.unit(make.picture(data_shape[0], data_shape[1:]), "conv_block_1", int(32 * alpha), 3, 2, 1)
    for number, (channels, stride) in enumerate(_BLOCKS, 1):
        if is_shallow and (channels, stride) == (512, 1):
            continue
        name, inner = f"separable_conv_block_{number}", make.channels(value)
        value = make.unit(value, f"{name}_depthwise", inner, 3, stride, 1, inner)
        value = make.unit(value, f"{name}_pointwise", int(channels * alpha))
    return function_of(make.classes(make.pooled(value), "fc", num_classes))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, image_shape: Sequence[int] = (3, 224, 224), dtype: str = "float32", layout: str = "NCHW"
) -> Workload:
    """The network as a module, and weights."""
    return create_workload(mobile_net(num_classes, (batch_size, *image_shape), dtype, layout=layout))
