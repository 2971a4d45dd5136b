"""The generator of DCGAN (Radford et al. 2015, figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import DeclarationError
from ..expr import Function, var
from ..op import nn, reshape, tanh, transpose
from .init import Workload, create_workload
from .layers import Layers, function_of


def get_net(
    batch_size: int, random_len: int = 100, oshape: Sequence[int] = (3, 64, 64), ngf: int = 128, code: Any = None, layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:  # fmt: skip
    """The network: random numbers to pictures of 64x64.

    Args:
        batch_size, dtype: of it.
        random_len: how many random numbers a picture is made of.
        oshape: of a picture, in the layout.
        ngf: channels of the last convolution but one.
        code: accepted.
        layout: of pictures: "NCHW" or "NHWC".

    Raises:
        DeclarationError: for pictures of other extents.
    """
    channels, high, wide = (oshape[layout.index(letter) - 1] for letter in "CHW")
    if (high, wide) != (64, 64):
        raise DeclarationError(f"dcgan makes pictures of 64x64, not {high}x{wide}")
    make = Layers(dtype=dtype)
    value = make.dense(var("data", shape=(batch_size, random_len), dtype=dtype), "dense", 4 * 4 * ngf * 8, bias=False)
    value = nn.relu(reshape(value, (batch_size, ngf * 8, 4, 4)))
    for name, count in (("g2", ngf * 4), ("g3", ngf * 2), ("g4", ngf), ("g5", channels)):
        weights = make.weight(f"{name}_deconv_weight", make.channels(value), count, 4, 4)
        value = nn.conv2d_transpose(value, weights, (2, 2), (1, 1), channels=count, kernel_size=(4, 4))
        value = tanh(value) if name == "g5" else nn.relu(make.norm(value, f"{name}_batch_norm"))
    return function_of(value if layout == "NCHW" else transpose(value, (0, 2, 3, 1)))


def get_workload(
    batch_size: int, oshape: Sequence[int] = (3, 64, 64), ngf: int = 128, random_len: int = 100, layout: str = "NCHW",
    dtype: str = "float32",
) -> Workload:  # fmt: skip
    """The network as a module, and weights."""
    return create_workload(get_net(batch_size, random_len, oshape, ngf, None, layout, dtype))
