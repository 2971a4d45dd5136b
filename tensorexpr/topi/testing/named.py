"""References by the names that TVM's programs call: the plain definitions in other layouts. Results have the dtype of the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..utils import pad_pairs, spread
from . import Array, conv_python, conv_transpose_python, norm_python, pool_python

Schedule = Callable[..., Any]


def _convolution(name: str, data: str, kernel: str) -> Callable[..., Array]:
    """A convolution of layouts such as "NHWC" and "HWIO"."""
    spatial = "".join(letter for letter in "DHW" if letter in data)
    to_first = [data.index(letter) for letter in "NC" + spatial]
    kernel_first = [kernel.index(letter) for letter in "OI" + spatial]

    def function(a_np: Array, w_np: Array, stride: Any, padding: Any, groups: int = 1, dilation: Any = 1) -> Array:
        x, w = a_np.transpose(to_first), w_np.transpose(kernel_first)
        steps, apart = spread(name, "stride", stride, len(spatial)), spread(name, "dilation", dilation, len(spatial))
        pairs = pad_pairs(name, padding, [(k - 1) * d + 1 for k, d in zip(w.shape[2:], apart, strict=True)])
        found: Array = conv_python(x, w, steps, pairs, apart, groups).transpose(np.argsort(to_first))
        return np.asarray(found.astype(a_np.dtype))

    return _named(function, name, f"A convolution of data {data} and weights {kernel}; padding as `topi.utils.pad_pairs` takes it.")


def _transposed(name: str, spatial: str) -> Callable[..., Array]:
    def function(a_np: Array, w_np: Array, stride: Any, padding: Any, output_padding: Any = 0, groups: int = 1) -> Array:
        steps, extra = (spread(name, "stride", value, len(spatial)) for value in (stride, output_padding))
        return conv_transpose_python(a_np, w_np, steps, pad_pairs(name, padding, w_np.shape[2:]), extra, groups).astype(a_np.dtype)

    return _named(function, name, f"A transposed convolution over {', '.join(spatial)}, channels first, weights [C, O/groups, taps...].")


def _named(function: Callable[..., Any], name: str, summary: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = summary
    return function


conv2d_nchw_python = _convolution("conv2d_nchw_python", "NCHW", "OIHW")
conv2d_nhwc_python = _convolution("conv2d_nhwc_python", "NHWC", "HWIO")
conv2d_hwcn_python = _convolution("conv2d_hwcn_python", "HWCN", "HWIO")
conv3d_ncdhw_python = _convolution("conv3d_ncdhw_python", "NCDHW", "OIDHW")
conv3d_ndhwc_python = _convolution("conv3d_ndhwc_python", "NDHWC", "DHWIO")
_conv1d = _convolution("conv1d_ncw_python", "NCW", "OIW")
conv1d_transpose_ncw_python = group_conv1d_transpose_ncw_python = _transposed("conv1d_transpose_ncw_python", "W")
conv2d_transpose_nchw_python = _transposed("conv2d_transpose_nchw_python", "HW")
conv3d_transpose_ncdhw_python = _transposed("conv3d_transpose_ncdhw_python", "DHW")


def conv1d_ncw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any) -> Array:
    """A convolution of data NCW and weights OIW."""
    return _conv1d(a_np, w_np, stride, padding, 1, dilation)


def group_conv1d_ncw_python(a_np: Array, w_np: Array, stride: Any, padding: Any, dilation: Any, groups: int) -> Array:
    """A convolution of data NCW and weights OIW, in groups of channels."""
    return _conv1d(a_np, w_np, stride, padding, groups, dilation)


def depthwise_conv2d_python_nchw(input_np: Array, filter_np: Array, stride: Any, padding: Any) -> Array:
    """A convolution of each channel: data NCHW, weights [C, M, KH, KW] -> [N, C*M, H', W']."""
    channels, multiplier, *taps = filter_np.shape
    return conv2d_nchw_python(input_np, filter_np.reshape(channels * multiplier, 1, *taps), stride, padding, channels)


def depthwise_conv2d_python_nhwc(input_np: Array, filter_np: Array, stride: Any, padding: Any) -> Array:
    """A convolution of each channel: data NHWC, weights [KH, KW, C, M] -> [N, H', W', C*M]."""
    made = depthwise_conv2d_python_nchw(input_np.transpose(0, 3, 1, 2), filter_np.transpose(2, 3, 0, 1), stride, padding)
    return np.asarray(made.transpose(0, 2, 3, 1))


def dilate_python(input_np: Array, strides: Sequence[int], dilation_value: float = 0.0, out_dtype: str | None = None) -> Array:
    """Data with strides[n] - 1 elements of `dilation_value` between neighbours along axis n."""
    shape = [(extent - 1) * step + 1 for extent, step in zip(input_np.shape, strides, strict=True)]
    out = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    out[tuple(slice(None, None, step) for step in strides)] = input_np
    return out


def batch_matmul(x: Array, y: Array, out_dtype: str | None = None, trans_x: bool = False, trans_y: bool = True) -> Array:
    """The products of two batches of matrices; a batch of 1 serves all."""
    left = x.swapaxes(1, 2) if trans_x else x
    right = y.swapaxes(1, 2) if trans_y else y
    dtype = out_dtype or x.dtype
    return np.asarray(np.matmul(left.astype(dtype), right.astype(dtype)))


def dense(x: Array, y: Array, bias: Array, use_bias: bool = False, use_relu: bool = False, out_dtype: str | None = None) -> Array:
    """x [M, K] times the transpose of y [N, K], plus the bias [N] and at least 0 if said so."""
    dtype = out_dtype or x.dtype
    out = x.astype(dtype) @ y.astype(dtype).T + (bias if use_bias else 0)
    return np.asarray(np.maximum(out, 0) if use_relu else out).astype(dtype)


def poolnd_python(
    np_data: Array,
    kernel: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding_before: Sequence[int],
    padding_after: Sequence[int],
    pool_type: str,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
    dtype: str = "float32",
    layout: str | None = None,
) -> Array:
    """The maximum or the mean of each window; data is channels first, or of a layout such as "NHWC".

    With `count_include_pad` a maximum counts the zeros of the padding, as TVM's does, which the operators don't: of what isn't negative,
    or behind a relu, both are the same.
    """
    pairs = list(zip(padding_before, padding_after, strict=True))
    first = "NC" + "DHW"[3 - len(pairs) :] if len(pairs) > 1 else "NCW"
    order = [(layout or first).index(letter) for letter in first]
    data = np_data.transpose(order)
    if pool_type == "max" and count_include_pad:
        data, pairs = np.pad(data, [(0, 0), (0, 0), *pairs]), [(0, 0)] * len(pairs)
    pooled = pool_python(data, kernel, strides, dilation, pairs, pool_type, ceil_mode, count_include_pad)
    return np.asarray(pooled.transpose(np.argsort(order)).astype(dtype))


def layer_norm_python(data: Array, gamma: Array, beta: Array | None, axis: Any, epsilon: float = 1e-5) -> Array:
    """Normalised over `axis`, times gamma plus beta, whose extents are those of these axes."""
    axes = [a % data.ndim for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    shape = [extent if n in axes else 1 for n, extent in enumerate(data.shape)]
    out = norm_python(data, axes, epsilon) * gamma.reshape(shape)
    return np.asarray(out if beta is None else out + beta.reshape(shape)).astype(data.dtype)


def strided_slice_python(data: Array, begin: Any, end: Any, strides: Any, slice_mode: str = "end", axes: Any = None) -> Array:
    """data[begin:end:stride] on each axis, or on `axes`; in the mode "size" `end` holds numbers of elements, -1 for all that are left."""
    # Of axes that one of the two doesn't name the first element, or the last one, is meant.
    places = list(range(max(len(begin), len(end)))) if axes is None else list(axes)
    begin, end = [*begin, *[0] * (len(places) - len(begin))], [*end, *data.shape[len(end) : len(places)]]
    steps = ([*strides] * len(places) if len(strides) == 1 else [*strides]) if strides is not None and len(strides) else [1] * len(places)
    whole = [slice(None)] * data.ndim
    for place, first, last, step in zip(places, begin, end, steps, strict=True):
        if slice_mode == "size":
            first = first % data.shape[place]
            whole[place] = slice(first, data.shape[place] if last < 0 else first + last)
        else:
            whole[place] = slice(first, last, step)
    return data[tuple(whole)]


def _schedule(name: str, function: str) -> Callable[[Any], Schedule]:
    def get(target: Any) -> Schedule:
        from .. import generic

        found: Schedule = getattr(generic, function)
        return found

    return _named(get, name, f"`topi.generic.{function}`, which serves every target.")


get_injective_schedule = _schedule("get_injective_schedule", "schedule_injective")
get_broadcast_schedule = _schedule("get_broadcast_schedule", "schedule_broadcast")
get_elemwise_schedule = _schedule("get_elemwise_schedule", "schedule_elemwise")
get_reduce_schedule = _schedule("get_reduce_schedule", "schedule_reduce")


def get_conv2d_nchw_implement(target: Any) -> tuple[Callable[..., Any], Schedule]:
    """The operator and the schedule of `conv2d_nchw`."""
    from .. import generic, nn

    return nn.conv2d_nchw, getattr(generic, "schedule_conv2d_nchw")  # noqa: B009
