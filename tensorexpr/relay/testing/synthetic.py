"""A network of no use, for tests: small, with a product, a convolution, a norm, and values that two others read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..expr import Function, var
from ..op import add, nn, reshape, reshape_like
from .init import Constant, Workload, create_workload
from .layers import Layers, function_of


def get_net(input_shape: Sequence[int] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None) -> Function:
    """The network.

    Args:
        input_shape: batch, channels, height and width.
        dtype: of the input.
        wtype: of the weights; that of the input without.
    """
    make = Layers(dtype=wtype or dtype)
    _, channels, _, wide = input_shape

    def stage(value: Any, suffix: str) -> Any:
        """A product of rows and a convolution of planes, added."""
        rows = nn.dense(reshape(value, (-1, wide)), make.weight(f"dense{suffix}_weight", wide, wide))
        return add(reshape_like(nn.relu(rows), value), nn.softmax(make.conv(value, f"conv{suffix}", channels, 3, 1, 1)))

    value = stage(var("data", shape=tuple(input_shape), dtype=dtype), "")
    value = make.norm(nn.bias_add(value, make.weight("bias", channels)), "batch_norm")
    return function_of(stage(value, "2"))


def get_workload(input_shape: Sequence[int] = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None) -> Workload:
    """The network as a module, and weights that are all 1; see `get_net`."""
    return create_workload(get_net(input_shape, dtype, wtype), Constant(1.0))
