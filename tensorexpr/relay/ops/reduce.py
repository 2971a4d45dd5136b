"""Reductions, orders and scans."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import topi
from ...errors import DeclarationError
from ...relax import op as graph_op
from ...relax.expr import const as constant
from ...tir.arithmetic import as_int
from . import dynamic
from .row import Computed, Expr, Meaning, dtype, number, operator, shape
from .transform import _axis, _list


def _axes(data: Any, axis: Any, exclude: bool) -> list[int] | None:
    """The axes that are reduced; None for all."""
    if axis is None:
        if exclude:
            raise DeclarationError("exclude=True needs the axes that are left out")
        return None
    ndim = len(shape(data))
    named = [_axis(one, ndim) for one in _list(axis)]
    return [n for n in range(ndim) if n not in named] if exclude else named


def _reduction(name: str, meaning: Callable[[Any, Any, bool], Any]) -> Callable[..., Any]:
    def meant(data: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> Meaning:
        return meaning(data, _axes(data, axis, exclude), keepdims)

    meant.__doc__ = f"`{name}` over axes: those named, or with `exclude` all others; all without any."
    return operator(name)(meant)  # type: ignore[no-any-return]


def _of_bools(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    return lambda data, axis, keepdims: Computed(function, (data,), {"axis": axis, "keepdims": keepdims}, name)


all = _reduction("all", _of_bools(topi.all, "all"))
any = _reduction("any", _of_bools(topi.any, "any"))
max = _reduction("max", graph_op.max)
mean = _reduction("mean", graph_op.mean)
min = _reduction("min", graph_op.min)
prod = _reduction("prod", graph_op.prod)
sum = _reduction("sum", graph_op.sum)


def _position(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def meant(data: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False, select_last_index: bool = False) -> Meaning:
        given = {"axis": _axes(data, axis, exclude), "keepdims": keepdims, "select_last_index": select_last_index}
        return Computed(function, (data,), given, name)

    meant.__doc__ = f"`{name}`: the index of the first such element along axes, or of the last one."
    return operator(name)(meant)  # type: ignore[no-any-return]


argmax, argmin = _position("argmax", topi.argmax), _position("argmin", topi.argmin)


@operator("variance")
def _variance(data: Expr, mean: Expr, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> Meaning:
    axes = _axes(data, axis, exclude)
    centred = graph_op.subtract(data, mean)
    squares = graph_op.mean(graph_op.multiply(centred, centred), axes, keepdims)
    if not unbiased:
        return squares
    places = list(range(len(shape(data)))) if axes is None else axes
    extents = [as_int(shape(data)[n]) for n in places]
    known = [one for one in extents if one is not None]
    if len(known) < len(extents):
        whole = graph_op.take(graph_op.shape_to_tensor(graph_op.shape_of(data)), constant(places, "int64"), 0)
        many = graph_op.astype(graph_op.prod(whole), dtype(data))
        return graph_op.multiply(squares, graph_op.divide(many, graph_op.subtract(many, constant(1, dtype(data)))))
    count = math.prod(known)
    # A single element has no unbiased variance: 0 by 0 is NaN, as NumPy has it.
    return graph_op.multiply(squares, constant(count / (count - 1) if count != 1 else math.inf, dtype(data)))


def variance(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False, with_mean: Any = None
) -> Any:
    """The mean of squared differences from the mean; `unbiased` divides by one less."""
    middle = mean(data, axis, True, exclude) if with_mean is None else with_mean
    return _variance(data, middle, axis, keepdims, exclude, unbiased)


def std(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> Any:
    """The root of the variance."""
    from .elementwise import sqrt

    return sqrt(variance(data, axis, keepdims, exclude, unbiased))


def mean_variance(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> Any:
    """The mean and the variance, as a tuple."""
    from ..expr import Tuple, TupleWrapper
    from .transform import squeeze

    middle = mean(data, axis, True, exclude)
    spread = _variance(data, middle, axis, keepdims, exclude, unbiased)
    axes = _axes(data, axis, exclude)
    return TupleWrapper(Tuple((middle if keepdims else squeeze(middle, axes), spread)), 2)


def mean_std(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False) -> Any:
    """The mean and the standard deviation, as a tuple."""
    from ..expr import Tuple, TupleWrapper
    from .elementwise import sqrt

    found = mean_variance(data, axis, keepdims, exclude)
    middle, spread = found.tuple_value.fields
    return TupleWrapper(Tuple((middle, sqrt(spread))), 2)


@operator("logsumexp")
def logsumexp(data: Expr, axis: Any = None, keepdims: bool = False) -> Meaning:
    """The logarithm of the sum of exponentials, without overflow."""
    axes = None if axis is None else _list(axis)
    top = graph_op.max(data, axes, True)
    total = graph_op.log(graph_op.sum(graph_op.exp(graph_op.subtract(data, top)), axes, True))
    found = graph_op.add(total, top)
    return found if keepdims else graph_op.squeeze(found, axes)


def _scan(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def meant(data: Expr, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None) -> Meaning:
        return function(data, axis, dtype or None, bool(exclusive))

    meant.__doc__ = f"`{name}` along an axis, or of all elements; `exclusive` leaves out the element itself."
    return operator(name)(meant)  # type: ignore[no-any-return]


cumsum, cumprod = _scan("cumsum", graph_op.cumsum), _scan("cumprod", graph_op.cumprod)


@operator("sort")
def sort(data: Expr, axis: int = -1, is_ascend: bool = True) -> Meaning:
    """Elements in order along an axis."""
    return graph_op.sort(data, axis, not is_ascend)


@operator("argsort")
def argsort(data: Expr, axis: int = -1, is_ascend: bool = True, dtype: str = "int32") -> Meaning:
    """The places of elements in order along an axis."""
    return graph_op.argsort(data, axis, not is_ascend, dtype)


@operator("topk", results=dynamic.topk_results)
def _topk(data: Expr, k: int = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32") -> Meaning:
    """The first elements in order along an axis, their places, or both."""
    extent = as_int(shape(data)[axis])
    return graph_op.topk(data, extent if k < 1 and extent else k, axis, ret_type, not is_ascend, dtype)


def topk(data: Any, k: Any = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32") -> Any:
    """The first elements in order along an axis, their places, or both.

    Args:
        data: a tensor.
        k: how many, a number or a tensor of one; all below 1.
        axis: along which.
        ret_type: "both", "values" or "indices".
        is_ascend: the smallest first.
        dtype: of the places.
    """
    if dynamic.is_value(k):
        return dynamic.topk(data, k, axis, ret_type, is_ascend, dtype)
    return _topk(data, int(number(k).item() if hasattr(k, "struct_info") else k), axis, ret_type, is_ascend, dtype)


@operator("searchsorted")
def searchsorted(sorted_sequence: Expr, values: Expr, right: bool = False, dtype: str = "int32") -> Meaning:
    """Where values have their places in sorted rows."""
    return Computed(topi.searchsorted, (sorted_sequence, values), {"right": right, "out_dtype": dtype}, "searchsorted")


def _unique_results(return_counts: bool = False, **given: Any) -> int:
    return 5 if return_counts else 4


@operator("unique", results=_unique_results)
def unique(data: Expr, is_sorted: bool = True, return_counts: bool = False) -> Meaning:
    """Different elements, their first places, the place of each element among them, how many there are, and how often each is.

    In ascending order, or in that of their first occurrences.
    """
    return Computed(topi.unique, (data,), {"is_sorted": is_sorted, "return_counts": return_counts}, "unique")


@operator("argwhere")
def argwhere(condition: Expr) -> Meaning:
    """The places of elements that aren't 0, a row each."""
    return graph_op.permute_dims(graph_op.nonzero(condition), [1, 0])


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None) -> Any:
    """Sums of the rows of each segment.

    Args:
        data: as many rows as there are numbers, or more, which belong to no segment.
        segment_ids: the segment of each row.
        num_segments: how many there are; one more than the largest number without it.
    """
    from ..expr import const
    from .create import shape_of, zeros
    from .elementwise import add, cast
    from .transform import broadcast_to_like, concatenate, expand_dims, reshape, scatter_elements, slice_like, strided_slice

    rows, rest, kind = slice_like(data, segment_ids, [0]), shape(data)[1:], dtype(data)
    places = broadcast_to_like(expand_dims(segment_ids, 1, len(rest)), rows) if rest else segment_ids
    if num_segments is not None and None not in map(as_int, rest):
        return scatter_elements(zeros((num_segments, *rest), kind), places, rows, 0, "add")
    largest = cast(max(segment_ids), "int64")
    count = const([num_segments], "int64") if num_segments is not None else reshape(add(largest, const(1, "int64")), (1,))
    whole = strided_slice(shape_of(data, "int64"), [1], [len(rest) + 1])
    return scatter_elements(zeros(concatenate((count, whole), 0), kind), places, rows, 0, "add")


@operator("dft", results=lambda **given: 2)
def dft(re_data: Expr, im_data: Expr, inverse: bool = False) -> Meaning:
    """The discrete Fourier transform of rows, their real and imaginary parts."""
    return Computed(topi.dft, (re_data, im_data), {"inverse": inverse}, "dft")


@operator("stft")
def _stft(
    data: Expr, window: Expr, n_fft: int, hop_length: int, win_length: int, normalized: bool = False, onesided: bool = True
) -> Meaning:
    extents = shape(data)
    samples = extents[-1]
    frames = (samples - n_fft) // hop_length + 1
    bins = n_fft // 2 + 1 if onesided else n_fft
    out = [*extents[:-1], bins, frames, 2]
    args = (n_fft, hop_length, win_length)
    return Computed(lambda x, w: topi.stft(x, *args, w, normalized, onesided, out), (data, window), {}, "stft")


def stft(
    data: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None, normalized: bool = False,
    onesided: bool = True,
) -> Any:  # fmt: skip
    """Fourier transforms of windows of a signal.

    Args:
        data: signals as rows.
        n_fft: samples of a window.
        hop_length: samples from one to the next; a quarter of `n_fft`.
        win_length: samples of `window`, `n_fft`.
        window: weights of samples; ones.
        normalized: whether results are divided by the root of `n_fft`.
        onesided: half of the frequencies, as those of real signals mirror each other.
    """
    from .create import ones

    length = n_fft if win_length is None else win_length
    weights = ones((length,), "float32") if window is None else window
    return _stft(data, weights, n_fft, n_fft // 4 if hop_length is None else hop_length, length, normalized, onesided)
