"""Operators that read and write elements by tensors of indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ... import relax
from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ...tir.expr import PrimExpr
from ...tir.expr import Var as Symbol
from ...tir.intrin import max_value, min_value
from .table import Context, aten

_MASKS = ("bool", "uint8")


def counted(c: Context, index: Any, extent: Any) -> Any:
    """Indices with those that count from the end counted from the front."""
    if isinstance(extent, PrimExpr):
        return index
    zero, whole = relax.const(0, c.dtype_of(index)), relax.const(extent, c.dtype_of(index))
    return c.op("where", c.op("less", index, zero), c.op("add", index, whole), index)


@aten("index_select")
def _index_select(c: Context, input: Any, dim: int, index: Any) -> Any:
    return c.op("take", input, counted(c, index, c.shape_of(input)[c.axis(input, dim)]), axis=c.axis(input, dim))


def _joint_shape(shapes: Sequence[Sequence[Any]]) -> list[Any]:
    """What shapes are repeated to; an extent that isn't 1 counts."""
    rank = max(map(len, shapes))
    padded = [[1] * (rank - len(shape)) + list(shape) for shape in shapes]
    return [next((one for one in extents if not (isinstance(one, int) and one == 1)), 1) for extents in zip(*padded, strict=True)]


def _spread(c: Context, value: Any, shape: Sequence[Any]) -> Any:
    own = c.shape_of(value)
    same = len(own) == len(shape) and all(a is b or (isinstance(a, int) and a == b) for a, b in zip(own, shape, strict=True))
    return value if same else c.op("broadcast_to", value, relax.ShapeExpr(tuple(shape)))


class _Places:
    """Where `x[i, :, j]` lies: tuples of indices, and the orders of axes in which those that are indexed come first."""

    def __init__(self, c: Context, input: Any, indices: Sequence[Any]) -> None:
        used = [n for n, one in enumerate(indices) if one is not None]
        extents = c.shape_of(input)
        given = [counted(c, indices[n], extents[n]) for n in used]
        self.shape = _joint_shape([c.shape_of(one) for one in given])
        spread = [c.op("expand_dims", _spread(c, c.cast(one, "int64"), self.shape), axis=0) for one in given]
        joined = c.op("concat", spread, axis=0) if len(spread) > 1 else spread[0]
        rank, count = len(extents), len(self.shape)
        # Tuples of indices stand along the last axis there.
        self.tuples = c.op("permute_dims", joined, axes=[*range(1, count + 1), 0])
        others = [n for n in range(rank) if n not in used]
        self.first = [*used, *others]
        # The axes of the indices come where the first one is, if no other axis lies between: that is PyTorch's rule, as NumPy's.
        before = used[0] if used == list(range(used[0], used[-1] + 1)) else 0
        self.result = [*range(count, count + before), *range(count), *range(count + before, count + len(others))]
        self.parts = [*self.shape, *(extents[n] for n in others)]


def _ordered(c: Context, value: Any, axes: Sequence[int]) -> Any:
    return value if list(axes) == list(range(len(axes))) else c.op("permute_dims", value, axes=list(axes))


def _inverse(axes: Sequence[int]) -> list[int]:
    return [axes.index(n) for n in range(len(axes))]


@aten("nonzero")
def _nonzero(c: Context, input: Any) -> Any:
    # Only a run knows how many there are: the export has a symbol for that.
    found = c.op("permute_dims", c.op("nonzero", input), axes=[1, 0])
    return c.builder.match_cast(found, relax.TensorStructInfo([c.sizes[0], c.rank(input)], "int64"))


@aten("masked_select")
def _masked_select(c: Context, input: Any, mask: Any) -> Any:
    shape = _joint_shape([c.shape_of(input), c.shape_of(mask)])
    where = c.op("permute_dims", c.op("nonzero", _spread(c, mask, shape)), axes=[1, 0])
    where = c.builder.match_cast(where, relax.TensorStructInfo([c.sizes[0], len(shape)], "int64"))
    return c.op("gather_nd", _spread(c, input, shape), where)


@aten("where.default")
def _places_of_truth(c: Context, condition: Any) -> list[Any]:
    return _numbers(c, condition, c.sizes_of(c.result[0])[0])


def _numbers(c: Context, mask: Any, count: Any) -> list[Any]:
    """The places of what is true by their numbers along each axis; there are `count` of them."""
    rank = c.rank(mask)
    found = c.builder.match_cast(c.op("nonzero", mask), relax.TensorStructInfo([rank, count], "int64"))
    return [c.op("take", found, relax.const(n, "int64"), axis=0) for n in range(rank)]


def _is_mask(c: Context, index: Any) -> bool:
    return index is not None and c.dtype_of(index) in _MASKS


def _without_masks(c: Context, indices: Sequence[Any], shape: Sequence[Any]) -> list[Any]:
    """Indices with the numbers of what is true instead of masks; of as many axes as a mask has.

    Args:
        shape: of the parts that are indexed, which says how many of them there are.
    """
    used = [n for n, one in enumerate(indices) if one is not None]
    others = [c.rank(indices[n]) for n in used if not _is_mask(c, indices[n])]
    first = used[0] if used == list(range(used[0], used[-1] + 1)) else 0
    place = first + max([1, *others]) - 1  # what is true stands along the last axis of the indices
    count = shape[place] if place < len(shape) and not (isinstance(shape[place], int) and shape[place] == 1) else Symbol("count", "int64")
    found: list[Any] = []
    for one in indices:
        found += _numbers(c, c.cast(one, "bool"), count) if _is_mask(c, one) else [one]
    return found


@aten("index", "index.Tensor", "_unsafe_index")
def _index(c: Context, input: Any, indices: Sequence[Any]) -> Any:
    used = [n for n, one in enumerate(indices) if one is not None]
    if used == [0] and _is_mask(c, indices[0]):
        return c.op("gather_nd", input, _nonzero(c, indices[0]))
    if any(_is_mask(c, one) for one in indices):
        indices = _without_masks(c, indices, c.sizes)
        used = [n for n, one in enumerate(indices) if one is not None]
    if len(used) == 1:
        return _index_select(c, input, used[0], indices[used[0]])
    places = _Places(c, input, indices)
    return _ordered(c, c.op("gather_nd", _ordered(c, input, places.first), places.tuples), places.result)


@aten("index_put", "_unsafe_index_put")
def _index_put(c: Context, input: Any, indices: Sequence[Any], values: Any, accumulate: bool = False, *rest: Any) -> Any:
    if any(_is_mask(c, one) for one in indices):
        if (made := _put_by_mask(c, input, indices, values, accumulate)) is not None:
            return made
        indices = _without_masks(c, indices, c.shape_of(values))
    places = _Places(c, input, indices)
    wanted = [places.parts[n] for n in places.result]
    new = _ordered(c, _spread(c, values, wanted), _inverse(places.result))
    made = c.op("scatter_nd", _ordered(c, input, places.first), places.tuples, new, reduction="add" if accumulate else "update")
    return _ordered(c, made, _inverse(places.first))


def put_along(c: Context, input: Any, axis: int, places: Any, new: Any) -> Any:
    """`input` with parts of `new` at places along an axis."""
    return _index_put(c, input, [None] * axis + [places], new)


def _put_by_mask(c: Context, input: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> Any:
    """One value or part written wherever a mask of the first axes says; None for others, whose number only a run knows."""
    mask, rank = indices[0], c.rank(input)
    if not _is_mask(c, mask) or len([one for one in indices if one is not None]) > 1:
        return None
    masked = c.rank(mask)
    if c.rank(values) > rank - masked and c.shape_of(values)[0] != 1:
        return None
    whole = c.reshape(c.cast(mask, "bool"), [*c.shape_of(mask), *[1] * (rank - masked)])
    if c.rank(values) > rank - masked:
        values = c.op("squeeze", values, axis=[0])
    return c.op("where", whole, c.op("add", input, values) if accumulate else values, input)


@aten("gather")
def _gather(c: Context, input: Any, dim: int, index: Any, *rest: Any) -> Any:
    return c.op("gather_elements", input, index, axis=c.axis(input, dim))


_REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min", "mean": "add"}
_NEUTRAL = {"add": 0, "mul": 1, "max": -math.inf, "min": math.inf}


@aten("scatter.src", "scatter.value", "scatter", "scatter.reduce", "scatter.value_reduce", "scatter_reduce.two")
def _scatter(c: Context, input: Any, dim: int, index: Any, src: Any, reduce: str | None = None, include_self: bool = True) -> Any:
    shape, axis = relax.ShapeExpr(tuple(c.shape_of(index))), c.axis(input, dim)
    if not isinstance(src, relax.Expr):
        src = c.op("full", shape, relax.const(src, c.dtype), dtype=c.dtype)
    for n, (used, extent) in enumerate(zip(c.shape_of(index), c.shape_of(src), strict=True)):
        if used is not extent and used != extent:  # there the indices say how many of the updates are used
            src = c.op("strided_slice", src, [n], [0], [used])
    if reduce is None:
        return c.op("scatter_elements", input, index, src, axis=axis, reduction="update")
    how, dtype = _REDUCTIONS[reduce], c.dtype_of(input)

    def put(data: Any, number: Any, reduction: str) -> Any:
        given = c.op("full", shape, relax.const(number, dtype), dtype=dtype)
        return c.op("scatter_elements", data, index, given, axis=axis, reduction=reduction)

    given = input if include_self else put(input, _neutral(how, dtype), "update")
    found = c.op("scatter_elements", given, index, src, axis=axis, reduction=how)
    if reduce != "mean":
        return found
    ones = c.op("ones", relax.ShapeExpr(tuple(c.shape_of(input))), dtype)
    # Places that no index has keep what is there, which is one element.
    count = c.op("maximum", put(ones if include_self else put(ones, 0, "update"), 1, "add"), relax.const(1, dtype))
    return c.op("divide" if "float" in dtype else "floor_divide", found, count)


def _neutral(how: str, dtype: str) -> Any:
    """What changes nothing by a reduction."""
    if "float" in dtype or not math.isinf(_NEUTRAL[how]):
        return _NEUTRAL[how]
    return as_int(min_value(dtype) if how == "max" else max_value(dtype))


@aten("index_reduce")
def _index_reduce(c: Context, input: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True) -> Any:
    axis, shape = c.axis(input, dim), c.shape_of(source)
    rows = c.reshape(index, [c.shape_of(index)[0] if n == axis else 1 for n in range(len(shape))])
    return _scatter(c, input, dim, c.op("broadcast_to", rows, relax.ShapeExpr(tuple(shape))), source, reduce, include_self)


@aten("scatter_add")
def _scatter_add(c: Context, input: Any, dim: int, index: Any, src: Any) -> Any:
    return _scatter(c, input, dim, index, src, "add")


_SUM, _MEAN, _MAX = range(3)


@aten("embedding_bag", "_embedding_bag", "_embedding_bag_forward_only")
def _embedding_bag(
    c: Context, weight: Any, indices: Any, offsets: Any, by_frequency: bool = False, mode: int = _SUM, is_sparse: bool = False,
    factors: Any = None, has_end: bool = False, padding: int | None = None,
) -> Any:  # fmt: skip
    """Sums, means or maxima of the rows that bags have the numbers of; a bag begins at each offset."""
    bags, width = c.sizes_of(c.result[0])
    dtype, indices, offsets = c.dtype_of(weight), c.cast(indices, "int64"), c.cast(offsets, "int64")
    rows = c.op("take", weight, indices, axis=0)
    if factors is not None:
        rows = c.op("multiply", rows, c.op("expand_dims", factors, axis=1))
    empty = relax.const(-math.inf if mode == _MAX else 0, dtype)
    ones = c.op("ones", relax.ShapeExpr(tuple(c.shape_of(indices))), dtype)
    if padding is not None and padding >= 0:
        is_kept = c.op("not_equal", indices, relax.const(padding, "int64"))
        rows, ones = c.op("where", c.op("expand_dims", is_kept, axis=1), rows, empty), c.cast(is_kept, dtype)
    # The bag of an element is the last one that begins there or before; those before the last of several with one offset are empty.
    place = c.op("arange", 0, c.shape_of(indices)[0], 1, dtype="int64")
    begun = c.op("less_equal", c.op("expand_dims", offsets, axis=0), c.op("expand_dims", place, axis=1))
    bag = c.op("subtract", c.op("sum", c.cast(begun, "int64"), axis=[1], keepdims=True), relax.const(1, "int64"))
    how = "max" if mode == _MAX else "add"
    found = c.op("scatter_nd", c.op("full", relax.ShapeExpr((bags, width)), empty, dtype=dtype), bag, rows, reduction=how)
    if mode == _SUM:
        return [found, None, None, None]
    count = c.op("scatter_nd", c.op("zeros", relax.ShapeExpr((bags,)), dtype), bag, ones, reduction="add")
    count = c.op("expand_dims", count, axis=1)
    if mode == _MEAN:
        found = c.op("divide", found, c.op("maximum", count, relax.const(1, dtype)))
    else:
        found = c.op("where", c.op("greater", count, relax.const(0, dtype)), found, relax.const(0, dtype))
    return [found, None, None, None]


@aten("segment_reduce")
def _segment_reduce(
    c: Context, data: Any, reduce: str, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0, unsafe: bool = False,
    initial: Any = None,
) -> Any:  # fmt: skip
    """Sums, means, products or extrema of rows that follow each other; a segment has a number of rows, or ends at an offset."""
    if axis or indices is not None or c.rank(lengths if lengths is not None else offsets) != 1:
        raise DeclarationError(
            "segments are of rows, along the first axis, by one vector of lengths or offsets; use scatter_reduce for others"
        )
    dtype, (segments, *rest) = c.dtype_of(data), c.sizes
    if lengths is None:
        whole = c.shape_of(offsets)[0]
        lengths = c.op("subtract", *(c.op("strided_slice", offsets, [0], [begin], [end]) for begin, end in ((1, whole), (0, whole - 1))))
    ends = c.op("cumsum", c.cast(lengths, "int64"), axis=0)
    place = c.op("arange", 0, c.shape_of(data)[0], 1, dtype="int64")
    over = c.op("less_equal", c.op("expand_dims", ends, axis=0), c.op("expand_dims", place, axis=1))
    segment = c.op("sum", c.cast(over, "int64"), axis=[1], keepdims=True)
    how = {"sum": "add", "mean": "add", "max": "max", "min": "min", "prod": "mul"}[reduce]
    first = relax.const(_NEUTRAL[how] if initial is None else initial, dtype)
    found = c.op("scatter_nd", c.op("full", relax.ShapeExpr((segments, *rest)), first, dtype=dtype), segment, data, reduction=how)
    return c.op("divide", found, c.reshape(c.cast(lengths, dtype), [segments, *[1] * len(rest)])) if reduce == "mean" else found


@aten("put")
def _put(c: Context, input: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    """Elements by their number in order."""
    made = _index_put(c, c.op("flatten", input), [c.op("flatten", index)], c.op("flatten", source), accumulate)
    return c.reshape(made, c.shape_of(input))


@aten("diagonal_scatter")
def _diagonal_scatter(c: Context, input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    axes = c.axis(input, dim1), c.axis(input, dim2)
    order = [*(n for n in range(c.rank(input)) if n not in axes), *axes]
    length = c.shape_of(src)[-1]
    rows, columns = (c.op("arange", begin, length + begin, 1, dtype="int64") for begin in (max(0, -offset), max(0, offset)))
    made = _index_put(c, _ordered(c, input, order), [None] * (len(order) - 2) + [rows, columns], src)
    return _ordered(c, made, _inverse(order))
