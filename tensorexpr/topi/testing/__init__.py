"""What operators compute, in plain NumPy: slow, direct definitions to compare with.

Results are float64 (or int64) unless a dtype is given; layouts are channels first.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...target import Target

Array = NDArray[Any]


def _index(*parts: Any) -> Any:
    return parts


def conv_python(
    data: Array, weight: Array, stride: Sequence[int], padding: Sequence[tuple[int, int]], dilation: Sequence[int], groups: int = 1
) -> Array:
    """data [N, C, spatial...], weight [O, C/groups, taps...] -> [N, O, ...]."""
    padded = np.pad(data.astype(np.float64), [(0, 0), (0, 0), *padding])
    taps = weight.shape[2:]
    sizes = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(padded.shape[2:], taps, stride, dilation, strict=True)]
    out = np.zeros((data.shape[0], weight.shape[0], *sizes))
    per_group = weight.shape[0] // groups
    for group in range(groups):
        channels = slice(group * weight.shape[1], (group + 1) * weight.shape[1])
        outputs = slice(group * per_group, (group + 1) * per_group)
        for tap in product(*map(range, taps)):
            window = tuple(slice(t * d, t * d + s * (n - 1) + 1, s) for t, d, s, n in zip(tap, dilation, stride, sizes, strict=True))
            part: Array = padded[_index(slice(None), channels, *window)]
            out[:, outputs] += np.einsum("nc...,oc->no...", part, weight[_index(outputs, slice(None), *tap)].astype(np.float64))
    return out


def conv_transpose_python(
    data: Array, weight: Array, stride: Sequence[int], padding: Sequence[tuple[int, int]], output_padding: Sequence[int], groups: int = 1
) -> Array:
    """data [N, C, spatial...], weight [C, O/groups, taps...] -> [N, O, ...], by scattering each input element."""
    taps = weight.shape[2:]
    full = [(n - 1) * s + k + extra for n, s, k, extra in zip(data.shape[2:], stride, taps, output_padding, strict=True)]
    out = np.zeros((data.shape[0], weight.shape[1] * groups, *full))
    inputs = data.shape[1] // groups
    for group in range(groups):
        channels = slice(group * inputs, (group + 1) * inputs)
        outputs = slice(group * weight.shape[1], (group + 1) * weight.shape[1])
        for tap in product(*map(range, taps)):
            window = tuple(slice(t, t + s * (n - 1) + 1, s) for t, s, n in zip(tap, stride, data.shape[2:], strict=True))
            kernel = weight[_index(channels, slice(None), *tap)].astype(np.float64)
            out[_index(slice(None), outputs, *window)] += np.einsum("nc...,co->no...", data[:, channels].astype(np.float64), kernel)
    crop = tuple(slice(low, n - high) for n, (low, high) in zip(full, padding, strict=True))
    return np.asarray(out[_index(slice(None), slice(None), *crop)])


def pool_python(
    data: Array,
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[tuple[int, int]],
    pool_type: str,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """data [N, C, spatial...] -> the maximum or the mean of each window; of one in the padding alone the least number or 0."""
    sizes = []
    for n, k, s, d, (low, high) in zip(data.shape[2:], kernel, stride, dilation, padding, strict=True):
        room = n + low + high - (k - 1) * d - 1
        sizes.append((-(-room // s) if ceil_mode else room // s) + 1)
    out = np.zeros((*data.shape[:2], *sizes))
    for at in product(*map(range, sizes)):
        inside: list[list[int]] = []
        counted = 1
        for i, n, k, s, d, (low, high) in zip(at, data.shape[2:], kernel, stride, dilation, padding, strict=True):
            places = [i * s + t * d - low for t in range(k)]
            inside.append([p for p in places if 0 <= p < n])
            counted *= len([p for p in places if -low <= p < n + high]) if count_include_pad else len(inside[-1])
        values = data[np.ix_(range(data.shape[0]), range(data.shape[1]), *inside)].reshape(*data.shape[:2], -1).astype(np.float64)
        least = np.finfo(data.dtype).min if data.dtype.kind == "f" else np.iinfo(data.dtype).min
        found = values.max(-1, initial=least) if pool_type == "max" else values.sum(-1) / max(1, counted)
        out[_index(slice(None), slice(None), *at)] = found
    return out


def adaptive_pool_python(data: Array, output_size: Sequence[int], pool_type: str) -> Array:
    """data [N, C, spatial...] -> the maximum or the mean of each cell."""
    out = np.zeros((*data.shape[:2], *output_size))
    for at in product(*map(range, output_size)):
        cell = tuple(slice(i * n // m, -(-(i + 1) * n // m)) for i, n, m in zip(at, data.shape[2:], output_size, strict=True))
        values = data[_index(slice(None), slice(None), *cell)].reshape(*data.shape[:2], -1).astype(np.float64)
        out[_index(slice(None), slice(None), *at)] = values.max(-1) if pool_type == "max" else values.mean(-1)
    return out


def softmax_python(data: Array, axis: int = 1) -> Array:
    """exp(x - max) / sum."""
    shifted = np.exp(data.astype(np.float64) - data.max(axis, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis, keepdims=True))


def log_softmax_python(data: Array, axis: int = 1) -> Array:
    """The logarithm of softmax."""
    return np.log(softmax_python(data, axis))


def norm_python(data: Array, axes: Sequence[int], epsilon: float) -> Array:
    """(x - mean) / sqrt(variance + epsilon) over some axes."""
    wide = data.astype(np.float64)
    mean = wide.mean(tuple(axes), keepdims=True)
    return np.asarray((wide - mean) / np.sqrt(wide.var(tuple(axes), keepdims=True) + epsilon))


def dispatch(target: Any, dispatch_map: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    """The entry of a table for a target: by its kind or one of its keys, the device first, such as "arm_cpu" and "cpu"; else "generic"."""
    chosen = Target(target)
    for key in (*chosen.keys, chosen.kind.name, "generic"):
        if key in dispatch_map:
            return dispatch_map[key]
    raise KeyError(f"no entry for {chosen} and none called 'generic'; entries: {', '.join(dispatch_map)}")


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module(f"{__name__}.named"), name)  # `from . import` would ask here for it
