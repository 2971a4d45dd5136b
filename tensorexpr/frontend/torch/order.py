"""Operators on elements in their order: running sums and extrema, sorting, searching in what is sorted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ... import relax, te
from ...errors import DeclarationError
from ...te.tensor import Tensor
from ...tir.expr import PrimExpr
from ...topi.scan import scanop
from .elementwise import promoted
from .manipulation import selected, sliced
from .table import CONVERTERS, Context, aten


@aten("cumsum")
def _cumsum(c: Context, input: Any, dim: int, dtype: Any = None) -> Any:
    return c.op("cumsum", input, axis=c.axis(input, dim), dtype=c.dtype)


@aten("cumprod")
def _cumprod(c: Context, input: Any, dim: int, dtype: Any = None) -> Any:
    return c.op("cumprod", c.cast(input, c.dtype), axis=c.axis(input, dim), dtype=c.dtype)


_Binary = Callable[[PrimExpr, PrimExpr], PrimExpr]


def _te_running(x: Tensor, binop: _Binary, least: Callable[[str], PrimExpr], axis: int) -> Tensor:
    """What an operation makes of all elements up to each one; `least` is what it doesn't notice."""
    return scanop(x, binop, least(x.dtype), "T_running", axis)


def _running(c: Context, input: Any, dim: int, binop: _Binary, least: Callable[[str], PrimExpr]) -> Any:
    if not c.rank(input):
        return input
    return c.builder.emit_te(partial(_te_running, binop=binop, least=least, axis=c.axis(input, dim)), input, primfunc_name_hint="running")


def _running_extreme(binop: _Binary, least: Callable[[str], PrimExpr]) -> Callable[..., Any]:
    def convert(c: Context, input: Any, dim: int) -> Any:
        values = _running(c, input, dim, binop, least)
        # The last element that is the extreme so far: a later one that equals it takes its place, and so does each NaN.
        if not c.rank(input):
            return [values, c.op("zeros", relax.ShapeExpr(()), "int64")]
        axis, shape = c.axis(input, dim), c.shape_of(input)
        place = c.reshape(c.op("arange", 0, shape[axis], 1, dtype="int64"), [extent if n == axis else 1 for n, extent in enumerate(shape)])
        found = (
            c.op("logical_or", c.op("equal", input, values), c.op("isnan", input)) if _is_float(c, input) else c.op("equal", input, values)
        )
        places = c.op("where", found, c.op("broadcast_to", place, relax.ShapeExpr(tuple(shape))), relax.const(0, "int64"))
        return [values, _running(c, places, dim, te.max, te.min_value)]

    return convert


def _is_float(c: Context, value: Any) -> bool:
    return "float" in c.dtype_of(value)


def _or_nan(chosen: Callable[..., PrimExpr]) -> _Binary:
    """The extreme of two, NaN if one of them is."""

    def extreme(a: PrimExpr, b: PrimExpr) -> PrimExpr:
        if not a.dtype.startswith("float"):
            return chosen(a, b)
        return te.if_then_else(te.isnan(a), a, te.if_then_else(te.isnan(b), b, chosen(a, b)))

    return extreme


CONVERTERS["cummax"] = _running_extreme(_or_nan(te.max), te.min_value)
CONVERTERS["cummin"] = _running_extreme(_or_nan(te.min), te.max_value)


def _log_of_sum(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """log(exp(a) + exp(b)), whose exponentials never overflow."""
    apart = te.max(a, b) + te.log(1 + te.exp(te.min(a, b) - te.max(a, b)))
    return te.if_then_else(a == b, a + math.log(2), apart)  # of equal infinities there is no difference


@aten("logcumsumexp")
def _log_of_sums(c: Context, input: Any, dim: int) -> Any:
    return _running(c, input, dim, _log_of_sum, te.min_value)


@aten("topk")
def _topk(c: Context, input: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    found = c.op("topk", input, k=k, axis=dim, ret_type="both", largest=largest, dtype="int64")
    return [c.builder.emit(relax.TupleGetItem(found, n)) for n in range(2)]


@aten("sort")
def _sort(c: Context, input: Any, dim: int = -1, descending: bool = False) -> Any:
    # Sorted once: values by their places agree with these also where elements are equal.
    order = c.op("argsort", input, axis=dim, descending=descending, dtype="int64")
    return [c.op("gather_elements", input, order, axis=c.axis(input, dim)), order]


@aten("sort.stable")
def _stable_sort(c: Context, input: Any, stable: bool | None, dim: int = -1, descending: bool = False) -> Any:
    return _sort(c, input, dim, descending)


@aten("mode")
def _mode(c: Context, input: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The least of the values that stand most often along an axis."""
    if 1 in c.picked:
        raise DeclarationError("which of several places of a mode PyTorch names isn't stated; take its values alone")
    axis = c.axis(input, dim)
    order = [*(n for n in range(c.rank(input)) if n != axis), axis]
    last = c.op("permute_dims", input, axes=order)
    same = c.op("equal", c.op("expand_dims", last, axis=-1), c.op("expand_dims", last, axis=-2))
    count = c.op("sum", c.cast(same, "int32"), axis=[-1])
    often = c.op("equal", count, c.op("max", count, axis=[-1], keepdims=True))
    values = c.op("min", c.op("where", often, last, c.op("max", last, axis=[-1], keepdims=True)), axis=[-1])
    return [c.op("expand_dims", values, axis=axis) if keepdim else values, None]


@aten("histc")
def _histogram(c: Context, input: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many elements lie in each of so many parts of a range; the last one has both ends."""
    x, dtype = c.op("flatten", input), c.dtype_of(input)
    is_stated = min != max
    low = relax.const(min, dtype) if is_stated else c.op("min", x)
    high = relax.const(max, dtype) if is_stated else c.op("max", x)
    part = c.op("multiply", c.op("divide", c.op("subtract", x, low), c.op("subtract", high, low)), relax.const(bins, dtype))
    place = c.op("minimum", c.op("floor", part), relax.const(bins - 1, dtype))
    inside = c.op("logical_and", c.op("greater_equal", x, low), c.op("less_equal", x, high))
    hits = c.op("equal", c.op("expand_dims", place, axis=-1), c.op("arange", 0, bins, 1, dtype=dtype))
    return c.op("sum", c.cast(c.op("logical_and", hits, c.op("expand_dims", inside, axis=-1)), dtype), axis=[0])


@aten("histogram.bin_ct")
def _weighed_histogram(
    c: Context, input: Any, bins: int, range: Sequence[float] | None = None, weight: Any = None, density: bool = False
) -> list[Any]:
    """What stands in each of so many parts of a range, and where these end."""
    x, dtype = c.op("flatten", input), c.dtype_of(input)
    low, high = (relax.const(one, dtype) for one in range) if range else (c.op("min", x), c.op("max", x))
    if not range:  # of equal elements the range is one around them
        half = c.op("where", c.op("equal", low, high), relax.const(0.5, dtype), relax.const(0, dtype))
        low, high = c.op("subtract", low, half), c.op("add", high, half)
    width = c.op("divide", c.op("subtract", high, low), relax.const(bins, dtype))
    ends = c.op("add", c.op("multiply", relax.const(np.arange(bins + 1), dtype), width), low)
    place = c.op("floor", c.op("divide", c.op("subtract", x, low), width))
    place = c.op("where", c.op("equal", x, high), relax.const(bins - 1, dtype), place)  # the last part has both ends
    hits = c.cast(c.op("equal", c.op("expand_dims", place, axis=-1), relax.const(np.arange(bins), dtype)), dtype)
    if weight is not None:
        hits = c.op("multiply", hits, c.op("expand_dims", c.op("flatten", weight), axis=-1))
    found = c.op("sum", hits, axis=[0])
    return [c.op("divide", found, c.op("multiply", c.op("sum", found), width)) if density else found, ends]


@aten("kthvalue")
def _kth(c: Context, input: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    values, order = _sort(c, input, dim)
    return [selected(c, one, dim, k - 1) if not keepdim else sliced(c, one, c.axis(input, dim), k - 1, k) for one in (values, order)]


@aten("median.dim")
def _median(c: Context, input: Any, dim: int, keepdim: bool = False) -> Any:
    # Of an even number the lower one.
    return _kth(c, input, (c.shape_of(input)[c.axis(input, dim)] + 1) // 2, dim, keepdim)


@aten("median.default")
def _median_of_all(c: Context, input: Any) -> Any:
    return _median(c, c.op("flatten", input), 0)[0]


@aten("nanmedian.dim")
def _nan_median(c: Context, input: Any, dim: int, keepdim: bool = False) -> Any:
    """The median of what isn't NaN: NaN stands last in a sorted row."""
    axis = c.axis(input, dim)
    values, order = _sort(c, input, axis)
    count = c.op("sum", c.cast(c.op("logical_not", c.op("isnan", input)), "int64"), axis=[axis], keepdims=True)
    place = c.op("maximum", c.op("subtract", count, relax.const(1, "int64")), relax.const(0, "int64"))
    place = c.op("floor_divide", place, relax.const(2, "int64"))
    found = [c.op("gather_elements", one, place, axis=axis) for one in (values, order)]
    return found if keepdim else [c.op("squeeze", one, axis=[axis]) for one in found]


@aten("nanmedian.default")
def _nan_median_of_all(c: Context, input: Any) -> Any:
    return _nan_median(c, c.op("flatten", input), 0)[0]


def _as_long_as(c: Context, value: Any, described: Any) -> Any:
    """A tensor whose extents only a run knows, with the export's symbols for them."""
    return c.builder.match_cast(value, relax.TensorStructInfo(c.sizes_of(described), c.dtype_of(value)))


@aten("bincount")
def _bincount(c: Context, input: Any, weights: Any = None, minlength: int = 0) -> Any:
    if weights is not None:
        weights = c.cast(weights, c.dtype)
    return _as_long_as(c, c.op("bincount", input, weights, minlength=minlength), c.result)


@aten("repeat_interleave.Tensor")
def _repeat_places(c: Context, repeats: Any, output_size: Any = None) -> Any:
    return c.cast(_as_long_as(c, c.op("repeat_places", repeats), c.result), c.dtype)


def _different(c: Context, input: Any, axis: int | None, inverse: bool, counts: bool) -> Any:
    """Values in their order, the number of the value of each element, and how often each occurs."""
    values, places, often = c.result
    found = c.op("unique", input, True, False, True, True, axis)
    parts = [c.builder.emit(relax.TupleGetItem(found, n)) for n in range(3)]
    first, last = _as_long_as(c, parts[0], values), _as_long_as(c, parts[2], often) if counts else None
    return [first, c.reshape(parts[1], c.sizes_of(places)) if inverse else None, last]


@aten("_unique2")
def _unique(c: Context, input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    return _different(c, input, None, return_inverse, return_counts)


@aten("unique_dim")
def _unique_along(c: Context, input: Any, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False) -> Any:
    return _different(c, input, c.axis(input, dim), return_inverse, return_counts)


@aten("unique_consecutive")
def _unique_runs(c: Context, input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """Of equal elements that follow each other the first one."""
    if dim is not None and c.rank(input) > 1:
        raise DeclarationError("runs of equal parts along an axis have no counterpart; take those of a tensor with one axis")
    values, places, often = c.result
    flat = c.op("flatten", input)
    length = c.shape_of(flat)[0]
    differs = c.op("not_equal", sliced(c, flat, 0, 1, length), sliced(c, flat, 0, 0, length - 1))
    begins = c.op("concat", [c.op("ones", [1], "bool"), differs], axis=0)
    first = c.op("squeeze", c.op("nonzero", begins), axis=[0])
    found = _as_long_as(c, c.op("take", flat, first, axis=0), values)
    number = c.op("subtract", c.op("cumsum", c.cast(begins, "int64"), axis=0), relax.const(1, "int64"))
    inverse = c.reshape(number, c.sizes_of(places)) if return_inverse else None
    return [found, inverse, _as_long_as(c, c.op("bincount", number), often) if return_counts else None]


@aten("searchsorted", "searchsorted.Tensor", "searchsorted.Scalar")
def _searchsorted(
    c: Context, sequence: Any, value: Any, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Any = None
) -> Any:
    """How many of the sorted elements lie before a value."""
    dtype = promoted(c, sequence, value)
    sequence, value = c.cast(sequence, dtype), c.cast(value, dtype)
    if sorter is not None:
        sequence = c.op("gather_elements", sequence, sorter, axis=c.rank(sequence) - 1)
    is_right = right or side == "right"
    below = c.op("less_equal" if is_right else "less", _before(c, sequence, value), c.op("expand_dims", value, axis=c.rank(value)))
    return c.op("sum", c.cast(below, c.dtype), axis=[-1])


def _before(c: Context, sequence: Any, value: Any) -> Any:
    """Sorted rows as they meet values along a last axis of their own: one row for all, or one for each row of values."""
    return sequence if c.rank(sequence) == 1 else c.op("expand_dims", sequence, axis=c.rank(value) - 1)


@aten("bucketize.Tensor", "bucketize.Scalar")
def _bucketize(c: Context, input: Any, boundaries: Any, out_int32: bool = False, right: bool = False) -> Any:
    return _searchsorted(c, boundaries, input, out_int32, right)
