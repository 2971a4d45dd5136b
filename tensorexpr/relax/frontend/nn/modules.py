"""Layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....later import later
from ... import op as relax_op
from . import op
from .core import Module, Parameter, Tensor, emitted

__getattr__, __dir__ = later(__name__, {".diffusion": "Attention TimestepEmbedding Timesteps", ".effect": "IOEffect KVCache"})


class Linear(Module):
    """`x @ weight.T + bias`; the weight is (out_features, in_features)."""

    def __init__(
        self, in_features: Any, out_features: Any, bias: bool = True, dtype: str | None = None, out_dtype: str | None = None
    ) -> None:
        self.in_features, self.out_features, self.out_dtype = in_features, out_features, out_dtype
        self.weight = Parameter((out_features, in_features), dtype)
        self.bias = Parameter((out_features,), dtype if out_dtype is None else out_dtype) if bias else None

    def forward(self, x: Tensor) -> Any:
        """The product, and the bias if there is one."""
        made = emitted(relax_op.matmul(x._expr, self.weight.permute_dims()._expr, self.out_dtype), "matmul")
        return made if self.bias is None else made + self.bias


class _Convolution(Module):
    """A convolution of so many axes."""

    axes = 0
    apply: Callable[..., Any]

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int | Sequence[int], stride: Any = 1, padding: Any = 0, dilation: Any = 1,
        groups: int = 1, bias: bool = True, dtype: str | None = None,
    ) -> None:  # fmt: skip
        sizes = [kernel_size] * self.axes if isinstance(kernel_size, int) else list(kernel_size)
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.weight = Parameter((out_channels, in_channels // groups, *sizes), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x: Tensor) -> Any:
        """The convolution, with the bias by channel."""
        return type(self).apply(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv1D(_Convolution):
    """A convolution of (batch, channels, width)."""

    axes, apply = 1, staticmethod(op.conv1d)


class Conv2D(_Convolution):
    """A convolution of (batch, channels, height, width)."""

    axes, apply = 2, staticmethod(op.conv2d)


class Conv3D(_Convolution):
    """A convolution of (batch, channels, depth, height, width)."""

    axes, apply = 3, staticmethod(op.conv3d)


class ConvTranspose1D(Module):
    """The transpose of a convolution of (batch, channels, width)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0, output_padding: int = 0,
        dilation: int = 1, groups: int = 1, bias: bool = True, dtype: str | None = None,
    ) -> None:  # fmt: skip
        self.options = stride, padding, output_padding, dilation, groups
        self.weight = Parameter((in_channels, out_channels // groups, kernel_size), dtype)
        self.bias = Parameter((out_channels,), dtype) if bias else None

    def forward(self, x: Tensor) -> Any:
        """The transpose, with the bias by channel."""
        return op.conv1d_transpose(x, self.weight, self.bias, *self.options)


class Embedding(Module):
    """Rows of a table by their number."""

    def __init__(self, num: Any, dim: Any, dtype: str | None = None) -> None:
        self.num, self.dim = num, dim
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x: Tensor) -> Any:
        """A row for each number."""
        return emitted(relax_op.take(self.weight._expr, x._expr, 0), "take")


class LayerNorm(Module):
    """Layer normalisation of the last axes."""

    def __init__(self, normalized_shape: int | Sequence[int], eps: float = 1e-5, elementwise_affine: bool = True, dtype: str | None = None):
        self.normalized_shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self.eps = eps
        self.weight = Parameter(self.normalized_shape, dtype) if elementwise_affine else None
        self.bias = Parameter(self.normalized_shape, dtype) if elementwise_affine else None

    def forward(self, x: Tensor) -> Any:
        """The tensor normalised, scaled and shifted."""
        return op.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """Normalisation by the root of the mean square."""

    def __init__(
        self, hidden_size: int, axes: int | Sequence[int] = -1, epsilon: float = 1e-5, bias: bool = True, dtype: str | None = None
    ) -> None:
        self.axes, self.epsilon = axes, epsilon
        self.weight = Parameter((hidden_size,), dtype)
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x: Tensor) -> Any:
        """The tensor normalised, scaled, and shifted if there is a bias."""
        made = emitted(relax_op.nn.rms_norm(x._expr, self.weight._expr, self.axes, self.epsilon), "rms_norm")
        return made if self.bias is None else made + self.bias


class GroupNorm(Module):
    """Group normalisation of channels."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, dtype: str | None = None) -> None:
        self.num_groups, self.eps = num_groups, eps
        self.weight = Parameter((num_channels,), dtype) if affine else None
        self.bias = Parameter((num_channels,), dtype) if affine else None

    def forward(self, x: Tensor, channel_axis: int = 1, axes: Sequence[int] | None = None) -> Any:
        """The tensor normalised, scaled and shifted."""
        return op.group_norm(x, self.num_groups, self.weight, self.bias, self.eps, channel_axis, axes)


class ReLU(Module):
    """`max(x, 0)`."""

    def forward(self, x: Tensor) -> Any:
        """Of each element."""
        return emitted(relax_op.nn.relu(x._expr), "relu")


class SiLU(Module):
    """`x * sigmoid(x)`."""

    def forward(self, x: Tensor) -> Any:
        """Of each element."""
        return emitted(relax_op.nn.silu(x._expr), "silu")


class GELU(Module):
    """The Gaussian error linear unit."""

    def forward(self, x: Tensor) -> Any:
        """Of each element."""
        return op.gelu(x)


class Identity(Module):
    """The tensor itself."""

    def forward(self, x: Any) -> Any:
        """The tensor."""
        return x
