"""Elements by statistics of those around them: softmax, normalisations of rows, channels, groups and neighbourhoods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import topi
from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ..relations import same_extents
from ..struct_info import StructInfo, TupleStructInfo
from . import reference
from .row import Expr, Operand, Pattern, floats, listed, operator, tensor


@operator("nn.softmax", Pattern.OUT_FUSABLE, te=topi.nn.softmax, numpy=reference.softmax)
def softmax(data: Expr, axis: int = -1) -> StructInfo:
    """Exponentials by their sum along an axis."""
    operand = floats(data)
    operand.axis(axis)
    return operand.info


@operator("nn.log_softmax", Pattern.OUT_FUSABLE, te=topi.nn.log_softmax, numpy=reference.log_softmax)
def log_softmax(data: Expr, axis: int = -1) -> StructInfo:
    """The logarithm of the softmax along an axis."""
    operand = floats(data)
    operand.axis(axis)
    return operand.info


def _listed(axes: int | Sequence[int]) -> list[int]:
    return [axes] if isinstance(axes, int) else list(axes)


def _checked(where: str, vectors: dict[str, Expr], data: Operand, places: Sequence[int] | None) -> None:
    """Scales and shifts have the extents of the axes that they belong to."""
    for name, vector in vectors.items():
        own = tensor(vector, name)
        if places is None or own.ndim == -1:
            continue
        pairs = zip(
            own.extents or (), (data.extents or ())[:0] if data.extents is None else [data.extents[n] for n in places], strict=False
        )
        if own.ndim != len(places) or any(same_extents(a, b) is False for a, b in pairs):
            raise DeclarationError(f"relax.op.{where}: {name} is {own.info}, where axes {list(places)} of {data.info} are scaled")


def _vectors(gamma: Any, beta: Any, center: bool, scale: bool) -> tuple[Any, Any]:
    """Scale and shift as tensor computations take them: ones and zeros for what isn't wanted."""
    return gamma if scale else topi.full(gamma.shape, gamma.dtype, 1), beta if center else topi.full(beta.shape, beta.dtype, 0)


def _scaled(found: Any, gamma: Any, beta: Any, places: Sequence[int], center: bool, scale: bool, dtype: Any) -> Any:
    """Scaled and shifted along axes."""
    shape = [found.shape[n] if n in places else 1 for n in range(found.ndim)]
    found = found * gamma.reshape(shape) if scale else found
    return (found + beta.reshape(shape) if center else found).astype(dtype)


def _te_layer_norm(data: Any, gamma: Any, beta: Any, axes: Any, epsilon: float, center: bool, scale: bool) -> Any:
    return topi.nn.layer_norm(data, *_vectors(gamma, beta, center, scale), _listed(axes), epsilon)


def _np_layer_norm(data: Any, gamma: Any, beta: Any, axes: Any, epsilon: float, center: bool, scale: bool) -> Any:
    along = [axis % data.ndim for axis in _listed(axes)]
    return _scaled(reference.normalized(data, along, epsilon), gamma, beta, along, center, scale, data.dtype)


@operator("nn.layer_norm", Pattern.OUT_FUSABLE, te=_te_layer_norm, numpy=_np_layer_norm, settled=listed("axes"))
def layer_norm(
    data: Expr, gamma: Expr, beta: Expr, axes: int | Sequence[int] = -1, epsilon: float = 1e-5, center: bool = True, scale: bool = True
) -> StructInfo:
    """Rows with a mean of 0 and a variance of 1, scaled and shifted (Ba et al. 2016)."""
    operand = floats(data)
    along = operand.axes(axes)
    # Sorted, as the kernel takes them: the scale's axes stand as those of the data do.
    _checked("nn.layer_norm", {"gamma": gamma, "beta": beta}, operand, None if along is None else sorted(along))
    return operand.info


def _np_rms_norm(data: Any, weight: Any, axes: Any, epsilon: float) -> Any:
    wide = data.astype(np.float64)
    mean = np.square(wide).mean(tuple(_listed(axes)), keepdims=True)
    places = [axis % data.ndim for axis in _listed(axes)]
    return _scaled(wide / np.sqrt(mean + epsilon), weight, None, places, False, True, data.dtype)


@operator(
    "nn.rms_norm",
    Pattern.OUT_FUSABLE,
    te=lambda data, weight, axes, epsilon: topi.nn.rms_norm(data, weight, _listed(axes), epsilon),
    numpy=_np_rms_norm,
    settled=listed("axes"),
)
def rms_norm(data: Expr, weight: Expr, axes: int | Sequence[int] = -1, epsilon: float = 1e-5) -> StructInfo:
    """Rows with a mean square of 1, scaled (Zhang and Sennrich 2019)."""
    operand = tensor(data, "data")
    along = operand.axes(axes)
    _checked("nn.rms_norm", {"weight": weight}, operand, None if along is None else sorted(along))
    return operand.info


def _te_group_norm(data: Any, gamma: Any, beta: Any, *, center: bool, scale: bool, **attrs: Any) -> Any:
    return topi.nn.group_norm(data, *_vectors(gamma, beta, center, scale), **{**attrs, "axes": _listed(attrs["axes"])})


def _np_group_norm(
    data: Any, gamma: Any, beta: Any, num_groups: int, channel_axis: int, axes: Any, epsilon: float, center: bool, scale: bool
) -> Any:
    place = channel_axis % data.ndim
    cut = data.reshape(*data.shape[:place], num_groups, data.shape[place] // num_groups, *data.shape[place + 1 :])
    # The channels have become two axes, so those behind them stand one further.
    over = {place + 1, *(axis + (axis >= place) for axis in (one % data.ndim for one in _listed(axes)))}
    found = reference.normalized(cut, sorted(over), epsilon).reshape(data.shape)
    return _scaled(found, gamma, beta, [place], center, scale, data.dtype)


@operator("nn.group_norm", Pattern.OUT_FUSABLE, te=_te_group_norm, numpy=_np_group_norm, settled=listed("axes"))
def group_norm(
    data: Expr, gamma: Expr, beta: Expr, num_groups: int, channel_axis: int, axes: int | Sequence[int], epsilon: float = 1e-5,
    center: bool = True, scale: bool = True,
) -> StructInfo:  # fmt: skip
    """Groups of channels with a mean of 0 and a variance of 1 over their channels and `axes`, scaled and shifted (Wu and He 2018)."""
    operand = tensor(data, "data")
    place = operand.axis(channel_axis)
    if place in (operand.axes(axes) or ()):
        raise DeclarationError(f"relax.op.nn.group_norm: axes {axes} hold the channels, axis {channel_axis}, which are cut in groups")
    channels = None if operand.extents is None else as_int(operand.extents[place])
    if num_groups < 1 or (channels is not None and channels % num_groups):
        raise DeclarationError(f"relax.op.nn.group_norm: {channels} channels can't be cut in {num_groups} groups")
    _checked("nn.group_norm", {"gamma": gamma, "beta": beta}, operand, None if operand.ndim == -1 else [place])
    return operand.info


def _te_instance_norm(data: Any, gamma: Any, beta: Any, channel_axis: int, axes: Any, epsilon: float, center: bool, scale: bool) -> Any:
    return topi.nn.instance_norm(data, *_vectors(gamma, beta, center, scale), channel_axis, _listed(axes), epsilon)


def _np_instance_norm(data: Any, gamma: Any, beta: Any, channel_axis: int, axes: Any, epsilon: float, center: bool, scale: bool) -> Any:
    found = reference.normalized(data, _listed(axes), epsilon)
    return _scaled(found, gamma, beta, [channel_axis % data.ndim], center, scale, data.dtype)


@operator("nn.instance_norm", Pattern.OUT_FUSABLE, te=_te_instance_norm, numpy=_np_instance_norm, settled=listed("axes"))
def instance_norm(
    data: Expr, gamma: Expr, beta: Expr, channel_axis: int, axes: int | Sequence[int], epsilon: float = 1e-5, center: bool = True,
    scale: bool = True,
) -> StructInfo:  # fmt: skip
    """Each channel with a mean of 0 and a variance of 1 over `axes`, scaled and shifted (Ulyanov et al. 2016)."""
    operand = tensor(data, "data")
    place = operand.axis(channel_axis)
    if place in (operand.axes(axes) or ()):
        raise DeclarationError(f"relax.op.nn.instance_norm: axes {axes} hold the channels, axis {channel_axis}")
    _checked("nn.instance_norm", {"gamma": gamma, "beta": beta}, operand, None if operand.ndim == -1 else [place])
    return operand.info


def _np_batch_norm(
    data: Any,
    gamma: Any,
    beta: Any,
    moving_mean: Any,
    moving_var: Any,
    axis: int,
    epsilon: float,
    center: bool,
    scale: bool,
    momentum: float,
) -> Any:
    shape = [-1 if n == axis % data.ndim else 1 for n in range(data.ndim)]
    found = (data - moving_mean.reshape(shape)) / np.sqrt(moving_var.reshape(shape) + epsilon)
    return _scaled(found, gamma, beta, [axis % data.ndim], center, scale, data.dtype), moving_mean, moving_var


@operator(
    "nn.batch_norm", Pattern.OUT_FUSABLE, te=lambda *tensors, momentum, **attrs: topi.nn.batch_norm(*tensors, **attrs), numpy=_np_batch_norm
)
def batch_norm(
    data: Expr, gamma: Expr, beta: Expr, moving_mean: Expr, moving_var: Expr, axis: int, epsilon: float = 1e-5,
    center: bool = True, scale: bool = True, momentum: float = 0.1,
) -> StructInfo:  # fmt: skip
    """Channels by their moving mean and variance, scaled and shifted (Ioffe and Szegedy 2015); with these two as they are."""
    operand = floats(data)
    place = operand.axis(axis)
    vectors = {"gamma": gamma, "beta": beta, "moving_mean": moving_mean, "moving_var": moving_var}
    _checked("nn.batch_norm", vectors, operand, None if operand.ndim == -1 else [place])
    return TupleStructInfo((operand.info, moving_mean.struct_info, moving_var.struct_info))


def _np_lrn(data: Any, size: int, axis: int, alpha: float, beta: float, bias: float) -> Any:
    wide, place = np.square(data.astype(np.float64)), axis % data.ndim
    pads = [((size - 1) // 2, size // 2) if n == place else (0, 0) for n in range(data.ndim)]
    total = np.lib.stride_tricks.sliding_window_view(np.pad(wide, pads), size, place).sum(-1)
    return (data / (bias + alpha / size * total) ** beta).astype(data.dtype)


@operator("nn.lrn", Pattern.OUT_FUSABLE, te=topi.nn.lrn, numpy=_np_lrn)
def lrn(data: Expr, size: int, axis: int = 1, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> StructInfo:
    """Elements by the squares of `size` neighbours along an axis (Krizhevsky et al. 2012, section 3.3)."""
    operand = tensor(data, "data")
    operand.axis(axis)
    if size < 1:
        raise DeclarationError(f"relax.op.nn.lrn: {size} neighbours; there is at least one")
    return operand.info


@operator(
    "nn.dropout",
    Pattern.OPAQUE,
    te=lambda data, rate: [topi.identity(data), topi.full(data.shape, data.dtype, 1)],
    numpy=lambda data, rate: (data, np.ones_like(data)),
)
def dropout(data: Expr, rate: float = 0.5) -> StructInfo:
    """The tensor as it is, and a mask of ones: nothing is dropped when a network runs."""
    info = tensor(data, "data").info
    return TupleStructInfo((info, info))
