"""Normalisations: batch, layer, group, instance and root-mean-square norms, and local response normalisation.

Variances are means of squared distances from the mean, in two passes, or those of layer norms in one pass of distances from a
number near the mean: a large mean costs no digits. float16 and bfloat16 are summed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import te
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import intrin
from ...tir.arithmetic import as_int, cast, const, maximum
from ...tir.expr import PrimExpr, Var
from .. import tag
from ..math import axis_names, identity
from ..reduction import full_index, reduce_axes
from ..utils import extent_value, need_equal, positive_axes, positive_axis
from .padding import pad

# A sum and a sum of squares.
_SUMS = te.comm_reducer(lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda first, second: (const(0, first), const(0, second)), name="sums")


def batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: Tensor,
    moving_var: Tensor,
    axis: int | None = None,
    epsilon: float | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    training: bool | None = None,
    momentum: float | None = None,
) -> list[Tensor]:
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta for each channel along `axis` (default 1).

    Args:
        epsilon: default 1e-5.
        center, scale: whether to add beta and to multiply by gamma; default yes.
        training: take mean and variance from the batch and move the moving ones towards them by `momentum` (default 0.1).

    Returns:
        The normalised data, and the moving mean and variance (new ones when training).
    """
    place = positive_axis("batch_norm", 1 if axis is None else axis, data.ndim)
    for vector in (gamma, beta, moving_mean, moving_var):
        need_equal("batch_norm", f"the channels of {data.name} and {vector.name}", data.shape[place], vector.shape[0])
    tiny = const(1e-5 if epsilon is None else epsilon, data.dtype)
    mean, variance = moving_mean, moving_var
    # Tensors of their own: whoever builds a function takes inputs and results as arguments, each once.
    results = [identity(vector) for vector in (moving_mean, moving_var)]
    if training:
        others = tuple(n for n in range(data.ndim) if n != place)
        mean, variance = mean_and_variance(data, others)
        share = const(0.1 if momentum is None else momentum, data.dtype)
        results = [
            compute(
                old.shape, lambda i, old=old, new=new: (const(1, data.dtype) - share) * old(i) + share * new(i), "T_moving", tag.BROADCAST
            )
            for old, new in ((moving_mean, mean), (moving_var, variance))
        ]

    def body(*i: Var) -> PrimExpr:
        channel = i[place]
        value = (data(*i) - mean(channel)) / intrin.sqrt(variance(channel) + tiny)
        if scale is not False:
            value = value * gamma(channel)
        return value if center is False else value + beta(channel)

    result: Tensor = compute(data.shape, body, "T_batch_norm", tag.BROADCAST, varargs_names=axis_names(data.ndim))
    return [result, *results]


def mean_and_variance(data: Tensor, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The mean and the variance (of the whole population) over some axes, in float32 or float64."""
    dtype = _sum_dtype(data.dtype)
    count = _count(data, axes, dtype)
    rest = [extent for n, extent in enumerate(data.shape) if n not in axes]
    over = reduce_axes(data, axes)

    def total(*i: Var) -> PrimExpr:
        return te.sum(cast(data(*full_index(data.ndim, axes, over, i)), dtype), axis=over)

    summed = compute(rest, total, "T_sum", tag.COMM_REDUCE)
    mean: Tensor = compute(rest, lambda *i: summed(*i) / count, "T_mean", tag.INJECTIVE)
    # Axes of its own: a reduction axis belongs to one operation.
    again = reduce_axes(data, axes)

    def squares(*i: Var) -> PrimExpr:
        apart = cast(data(*full_index(data.ndim, axes, again, i)), dtype) - mean(*i)
        return te.sum(apart * apart, axis=again)

    squared = compute(rest, squares, "T_square_sum", tag.COMM_REDUCE)
    variance: Tensor = compute(rest, lambda *i: squared(*i) / count, "T_variance", tag.INJECTIVE)
    return mean, variance


def shifted_moments(data: Tensor, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The mean and the variance over some axes of constant extents, from one pass of the data.

    With d the distance from a shift s, mean = s + E[d] and variance = E[d * d] - E[d] ** 2, whose relative error is that of the sums
    times 1 + E[d] ** 2 / variance (Chan, Golub and LeVeque 1983). The mean of m of n elements is at most sqrt((n - m) / m) standard
    deviations from the mean of all, whatever the data: as the shift it bounds that factor by n / m, here about the square root of
    n. One element as the shift would be as good on most data, but n times worse where it is the only one that differs.
    """
    dtype = _sum_dtype(data.dtype)
    count = _count(data, axes, dtype)
    rest = [extent for n, extent in enumerate(data.shape) if n not in axes]
    over = reduce_axes(data, axes)
    extents = [int(extent_value(data.shape[axis])) for axis in axes]
    # About the root of n, along the last axis: there they are neighbours.
    few = min(extents[-1], 1 << ((math.prod(extents) - 1).bit_length() + 1) // 2)
    first = te.reduce_axis((0, few), name="k")

    def start(*i: Var) -> PrimExpr:
        others = iter(i)
        index = [first.var if n == axes[-1] else 0 if n in axes else next(others) for n in range(data.ndim)]
        return te.sum(cast(data(*index), dtype), axis=first)

    near = compute(rest, start, "T_start", tag.COMM_REDUCE)
    shift = compute(rest, lambda *i: near(*i) * const(1 / few, dtype), "T_shift", tag.INJECTIVE)

    def powers(*i: Var) -> Any:
        apart = cast(data(*full_index(data.ndim, axes, over, i)), dtype) - shift(*i)
        return _SUMS((apart, apart * apart), axis=over)

    summed, squared = compute(rest, powers, "T_moments", tag.COMM_REDUCE)
    mean: Tensor = compute(rest, lambda *i: shift(*i) + summed(*i) / count, "T_mean", tag.INJECTIVE)

    def spread(*i: Var) -> PrimExpr:
        apart = summed(*i) / count
        # The roundings of a row of equal numbers are no negative variance.
        return maximum(const(0, dtype), squared(*i) / count - apart * apart)

    variance: Tensor = compute(rest, spread, "T_variance", tag.INJECTIVE)
    return mean, variance


def _sum_dtype(dtype: str) -> str:
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def _count(data: Tensor, axes: Sequence[int], dtype: str) -> PrimExpr:
    total: Any = 1
    for axis in axes:
        total = total * extent_value(data.shape[axis])
    return cast(total, dtype)


def layer_norm(data: Tensor, gamma: Tensor, beta: Tensor | None, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta, with mean and variance over `axis`.

    Args:
        gamma, beta: of the extents of `axis`; beta may be None.
    """
    axes = positive_axes("layer_norm", axis, data.ndim)
    for parameter in (gamma, beta):
        if parameter is not None:
            _check_parameter("layer_norm", data, parameter, axes)
    # How many elements the shift is the mean of follows from the extents, so these have to be numbers.
    constant = all(isinstance(extent_value(data.shape[n]), int) for n in axes)
    mean, variance = (shifted_moments if constant else mean_and_variance)(data, axes)
    dtype = mean.dtype
    tiny = const(epsilon, dtype)

    def body(*i: Var) -> PrimExpr:
        rest, own = [n for k, n in enumerate(i) if k not in axes], [i[k] for k in axes]
        value = (cast(data(*i), dtype) - mean(*rest)) * intrin.rsqrt(variance(*rest) + tiny)
        value = value * cast(gamma(*own), dtype)
        return cast(value if beta is None else value + cast(beta(*own), dtype), data.dtype)

    return compute(data.shape, body, "T_layer_norm", tag.INJECTIVE, varargs_names=axis_names(data.ndim))


def _check_parameter(where: str, data: Tensor, parameter: Tensor, axes: Sequence[int]) -> None:
    need_equal(where, f"the dimensions of {parameter.name} and the number of axes", parameter.ndim, len(axes))
    for place, axis in enumerate(axes):
        need_equal(where, f"extent {axis} of {data.name} and extent {place} of {parameter.name}", data.shape[axis], parameter.shape[place])


def rms_norm(data: Tensor, weight: Tensor, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """data / sqrt(mean of squares + epsilon) * weight, with the mean over `axis`.

    Args:
        data: [any shape], of a float dtype.
        weight: of the extents at `axis`.
        axis: one axis or several.
        epsilon: keeps the root from zero.

    Returns:
        A tensor like `data` (Zhang and Sennrich 2019).
    """
    axes = positive_axes("rms_norm", axis, data.ndim)
    _check_parameter("rms_norm", data, weight, axes)
    dtype = _sum_dtype(data.dtype)
    over = reduce_axes(data, axes)
    rest = [extent for n, extent in enumerate(data.shape) if n not in axes]

    def squares(*i: Var) -> PrimExpr:
        value = cast(data(*full_index(data.ndim, axes, over, i)), dtype)
        return te.sum(value * value, axis=over)

    summed = compute(rest, squares, "T_square_sum", tag.COMM_REDUCE)
    count, tiny = _count(data, axes, dtype), const(epsilon, dtype)

    def body(*i: Var) -> PrimExpr:
        others, own = [n for k, n in enumerate(i) if k not in axes], [i[k] for k in axes]
        scaled = cast(data(*i), dtype) * intrin.rsqrt(summed(*others) / count + tiny)
        return cast(scaled * cast(weight(*own), dtype), data.dtype)

    return compute(data.shape, body, "T_rms_norm", tag.INJECTIVE, varargs_names=axis_names(data.ndim))


def instance_norm(data: Tensor, gamma: Tensor, beta: Tensor, channel_axis: Any = None, axis: Any = None, epsilon: float = 1e-5) -> Tensor:
    """`layer_norm` over `axis` with gamma and beta along the channels, which `axis` doesn't hold.

    Programs of TVM up to 0.19 name no channels: `instance_norm(data, gamma, beta, axis, epsilon)`, with gamma and beta of the extents
    of `axis`.
    """
    if channel_axis is None:
        return layer_norm(data, gamma, beta, axis, epsilon)
    if isinstance(channel_axis, (list, tuple)):
        return layer_norm(data, gamma, beta, channel_axis, epsilon if axis is None else axis)
    return _channel_norm("instance_norm", data, gamma, beta, positive_axis("instance_norm", channel_axis, data.ndim), axis, epsilon)


def group_norm(data: Tensor, gamma: Tensor, beta: Tensor, num_groups: int, channel_axis: int, axes: Any, epsilon: float = 1e-5) -> Tensor:
    """The channels cut in `num_groups`; each group normalised over its channels and `axes`.

    Args:
        data: [any shape], of a float dtype.
        gamma, beta: vectors as long as the channels: scale and shift.
        num_groups: divides the channels.
        channel_axis: of the channels.
        axes: further axes that means are taken over.
        epsilon: keeps the root from zero.

    Returns:
        A tensor like `data` (Wu and He 2018).
    """
    place = positive_axis("group_norm", channel_axis, data.ndim)
    channels = as_int(data.shape[place])
    if channels is None:
        raise DeclarationError(f"group_norm: groups are cut of channels of a known number, not of {data.shape[place]}, axis {place}")
    if num_groups < 1 or channels % num_groups:
        raise DeclarationError(f"group_norm: {channels} channels can't be cut in {num_groups} groups")
    size = channels // num_groups
    shape = (*data.shape[:place], num_groups, size, *data.shape[place + 1 :])

    def cut(*i: Var) -> PrimExpr:
        return data(*i[:place], i[place] * size + i[place + 1], *i[place + 2 :])

    grouped = compute(shape, cut, "T_reshape", tag.INJECTIVE, varargs_names=axis_names(len(shape)))
    # The channels have become two axes, so those behind them stand one further.
    over = {place + 1, *(axis if axis < place else axis + 1 for axis in positive_axes("group_norm", axes, data.ndim))}
    mean, variance = mean_and_variance(grouped, sorted(over))
    dtype = mean.dtype

    def body(*i: Var) -> PrimExpr:
        full = (*i[:place], i[place] // size, i[place] % size, *i[place + 1 :])
        rest = [index for n, index in enumerate(full) if n not in over]
        value = (cast(data(*i), dtype) - mean(*rest)) * intrin.rsqrt(variance(*rest) + const(epsilon, dtype))
        return cast(value * cast(gamma(i[place]), dtype) + cast(beta(i[place]), dtype), data.dtype)

    return compute(data.shape, body, "T_group_norm", tag.INJECTIVE, varargs_names=axis_names(data.ndim))


def _channel_norm(where: str, data: Tensor, gamma: Tensor, beta: Tensor, channel: int, axis: Any, epsilon: float) -> Tensor:
    axes = positive_axes(where, axis, data.ndim)
    if channel in axes:
        raise DeclarationError(f"{where}: the channels, axis {channel}, can't be normalised over; axes are {axes}")
    mean, variance = mean_and_variance(data, axes)
    dtype = mean.dtype

    def body(*i: Var) -> PrimExpr:
        rest = [n for k, n in enumerate(i) if k not in axes]
        value = (cast(data(*i), dtype) - mean(*rest)) * intrin.rsqrt(variance(*rest) + const(epsilon, dtype))
        return cast(value * cast(gamma(i[channel]), dtype) + cast(beta(i[channel]), dtype), data.dtype)

    return compute(data.shape, body, f"T_{where}", tag.INJECTIVE, varargs_names=axis_names(data.ndim))


def lrn(data: Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2.0) -> Tensor:
    """data / (bias + alpha / size * sum of squares of `size` neighbours along `axis`) ** beta.

    Args:
        data: [any shape], of a float dtype.
        size: how many neighbours, this one included; of an even number one more is behind than in front.
        axis: of the channels.
        alpha, beta, bias: numbers.

    Returns:
        A tensor like `data` (Krizhevsky et al. 2012, section 3.3).
    """
    place = positive_axis("lrn", axis, data.ndim)
    before, after = [0] * data.ndim, [0] * data.ndim
    before[place], after[place] = (size - 1) // 2, size // 2
    padded = pad(data, before, after, name="pad_data")
    window = te.reduce_axis((0, size), name="rws")

    def squares(*i: Var) -> PrimExpr:
        value = padded(*i[:place], i[place] + window.var, *i[place + 1 :])
        return te.sum(value * value, axis=window)

    names = axis_names(data.ndim)
    summed = compute(data.shape, squares, "sqr_sum", varargs_names=names)

    def body(*i: Var) -> PrimExpr:
        return data(*i) / intrin.power(const(bias, data.dtype) + const(alpha / size, data.dtype) * summed(*i), const(beta, data.dtype))

    return compute(data.shape, body, "T_lrn", varargs_names=names)
