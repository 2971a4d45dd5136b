"""What the networks are made of: layers whose weights are variables, named after the layer (`fc1_weight`, `bn0_gamma`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...dataclass import dataclass
from ...errors import DeclarationError
from ..expr import Function, var
from ..op import concatenate, nn
from ..visitor import free_vars

Pair = int | Sequence[int]


@dataclass(frozen=True)
class Layers:
    """Makes layers.

    Args:
        layout: of pictures: "NCHW" or "NHWC".
        dtype: of weights.
    """

    layout: str = "NCHW"
    dtype: str = "float32"

    def weight(self, name: str, *extents: int) -> Any:
        """A variable of weights."""
        return var(name, shape=extents, dtype=self.dtype)

    def channels(self, x: Any) -> int:
        """How many channels a tensor has: pictures by the layout, rows in their last axis."""
        extents: tuple[int, ...] = x.checked_type.concrete_shape
        return extents[self.layout.index("C")] if len(extents) == len(self.layout) else extents[-1]

    def conv(
        self, x: Any, name: str, channels: int, kernel: Pair = 1, stride: Pair = 1, pad: Pair = 0, groups: int = 1, bias: bool = False
    ) -> Any:
        """A convolution; `pad` pads both sides."""
        high, wide = (kernel, kernel) if isinstance(kernel, int) else kernel
        inner = self.channels(x) // groups
        order = {"O": channels, "I": inner, "H": high, "W": wide}
        kernel_layout = "OIHW" if self.layout == "NCHW" else "HWIO" if groups == 1 else "HWOI"
        weights = self.weight(f"{name}_weight", *(order[letter] for letter in kernel_layout))
        pads = (pad, pad) if isinstance(pad, int) else tuple(pad)
        steps = (stride, stride) if isinstance(stride, int) else tuple(stride)
        made = nn.conv2d(x, weights, steps, pads, (1, 1), groups, channels, (high, wide), self.layout, kernel_layout)
        return nn.bias_add(made, self.weight(f"{name}_bias", channels), self.layout.index("C")) if bias else made

    def norm(self, x: Any, name: str, epsilon: float = 1e-5, scale: bool = True) -> Any:
        """A batch norm of fixed statistics."""
        count = self.channels(x)
        weights = (self.weight(f"{name}_{one}", count) for one in ("gamma", "beta", "moving_mean", "moving_var"))
        return nn.batch_norm(x, *weights, self.layout.index("C"), epsilon, True, scale)[0]

    def unit(self, x: Any, name: str, channels: int, kernel: Pair = 1, stride: Pair = 1, pad: Pair = 0, groups: int = 1) -> Any:
        """A convolution, a norm and ReLU."""
        return nn.relu(self.norm(self.conv(x, f"{name}_conv", channels, kernel, stride, pad, groups), f"{name}_bn"))

    def dense(self, x: Any, name: str, units: int, bias: bool = True) -> Any:
        """A product with weights, and a bias."""
        made = nn.dense(x, self.weight(f"{name}_weight", units, self.channels(x)), units)
        return nn.bias_add(made, self.weight(f"{name}_bias", units), -1) if bias else made

    def max_pool(self, x: Any, size: int = 3, stride: int = 2, pad: int = 0, ceil: bool = False) -> Any:
        """The greatest of windows."""
        return nn.max_pool2d(x, (size, size), (stride, stride), (1, 1), (pad, pad), self.layout, ceil_mode=ceil)

    def mean_pool(self, x: Any, size: int = 3, stride: int = 1, pad: int = 0) -> Any:
        """The mean of windows, with what pads them."""
        return nn.avg_pool2d(x, (size, size), (stride, stride), (1, 1), (pad, pad), self.layout, count_include_pad=True)

    def pooled(self, x: Any) -> Any:
        """Rows of the means of planes."""
        return nn.batch_flatten(nn.global_avg_pool2d(x, self.layout))

    def classes(self, x: Any, name: str, count: int) -> Any:
        """Probabilities of classes, of rows."""
        return nn.softmax(self.dense(x, name, count))

    def joined(self, *parts: Any) -> Any:
        """Channels of several tensors behind each other."""
        return concatenate(parts, self.layout.index("C"))

    def picture(self, batch: int, shape: Sequence[int]) -> Any:
        """The variable "data", of pictures.

        Args:
            batch: how many.
            shape: extents of one, in the layout.
        """
        return var("data", shape=(batch, *shape), dtype=self.dtype)


def function_of(value: Any) -> Function:
    """The function of all variables of a value, "data" first."""
    free = free_vars(value)
    return Function(tuple(sorted(free, key=lambda one: one.name_hint != "data")), value)


def _weight(given: Any, name: str) -> Any:
    return var(name) if given is None else given


def batch_norm_infer(
    data: Any, gamma: Any = None, beta: Any = None, moving_mean: Any = None, moving_var: Any = None, name: str = "", **attrs: Any
) -> Any:
    """The result of a batch norm; weights that aren't given are variables `NAME_gamma`, `NAME_beta`, ...

    Args:
        data: the operand.
        gamma, beta, moving_mean, moving_var: weights.
        name: of the layer.
        attrs: of `relay.nn.batch_norm`.
    """
    given = (("gamma", gamma), ("beta", beta), ("moving_mean", moving_mean), ("moving_var", moving_var))
    return nn.batch_norm(data, *(_weight(value, f"{name}_{key}") for key, value in given), **attrs)[0]


def _convolution(operator: Any, data: Any, weight: Any = None, *, name: str = "", **attrs: Any) -> Any:
    """A convolution; a weight that isn't given is the variable `NAME_weight`."""
    return operator(data, _weight(weight, f"{name}_weight"), **attrs)


conv1d, conv2d, conv3d = (partial(_convolution, one) for one in (nn.conv1d, nn.conv2d, nn.conv3d))
conv2d_transpose = partial(_convolution, nn.conv2d_transpose)


def dense_add_bias(data: Any, weight: Any = None, bias: Any = None, units: int | None = None, name: str = "", **attrs: Any) -> Any:
    """A product and a bias; weights that aren't given are variables `NAME_weight`, `NAME_bias`.

    Args:
        data: rows.
        weight, bias: weights.
        units: how many results a row has.
        name: of the layer.
        attrs: of `relay.nn.dense`.
    """
    made = nn.dense(data, _weight(weight, f"{name}_weight"), units, **attrs)
    return nn.bias_add(made, _weight(bias, f"{name}_bias"), axis=-1)


def conv_kernel_layout(data_layout: str, is_depthwise: bool = False) -> str:
    """The layout of weights that goes with one of data.

    Raises:
        DeclarationError: for a layout of data that isn't known.
    """
    known = {"NCHW": "OIHW", "NCDHW": "OIDHW", "NHWC": "HWOI" if is_depthwise else "HWIO", "NDHWC": "DHWOI" if is_depthwise else "DHWIO"}
    if data_layout not in known:
        raise DeclarationError(f"layout {data_layout!r}: there are {', '.join(known)}")
    return known[data_layout]
