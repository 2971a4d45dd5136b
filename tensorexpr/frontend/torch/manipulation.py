"""Operators that move elements: shapes, orders of axes, parts, joins, gathers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np

from ... import relax
from ...errors import DeclarationError
from ...te.declare import compute
from ...te.tensor import Tensor
from ...tir import arithmetic
from ...tir.expr import PrimExpr
from .indexing import put_along
from .table import CONVERTERS, Context, aten

# The end of a slice that goes to the end of its axis.
_TO_THE_END = sys.maxsize


@aten("view", "reshape", "_unsafe_view", "view_copy", "_reshape_alias")
def _view(c: Context, input: Any, size: Any, *rest: Any) -> Any:
    if isinstance(size, str):  # view.dtype: the bits as those of another
        return c.op("memory.view", input, relax.ShapeExpr(tuple(c.sizes)), size)
    return c.reshape(input, c.sizes)


@aten("flatten", "flatten.using_ints")
def _flatten(c: Context, input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    return c.reshape(input, c.sizes)


@aten("permute")
def _permute(c: Context, input: Any, dims: Sequence[int]) -> Any:
    return c.op("permute_dims", input, axes=[one % c.rank(input) for one in dims])


@aten("transpose", "swapaxes", "transpose.int")
def _transpose(c: Context, input: Any, dim0: int, dim1: int) -> Any:
    order = list(range(c.rank(input)))
    a, b = c.axis(input, dim0), c.axis(input, dim1)
    order[a], order[b] = order[b], order[a]
    return c.op("permute_dims", input, axes=order)


@aten("t", "numpy_T", "adjoint")
def _turned(c: Context, input: Any) -> Any:
    return input if c.rank(input) < 2 else _transpose(c, input, -2, -1)


@aten("unsqueeze")
def _unsqueeze(c: Context, input: Any, dim: int) -> Any:
    return c.op("expand_dims", input, axis=dim % (c.rank(input) + 1))


@aten("squeeze")
def _squeeze(c: Context, input: Any, dim: Any = None) -> Any:
    extents = c.shape_of(input)
    asked = range(len(extents)) if dim is None else [c.axis(input, one) for one in ([dim] if isinstance(dim, int) else dim)]
    # Axes of other extents may be named: PyTorch leaves them as they are.
    axes = [one for one in asked if extents[one] == 1] if extents else []
    return c.op("squeeze", input, axis=axes) if axes else input


@aten("expand", "expand_copy")
def _expand(c: Context, input: Any, size: Sequence[Any], *rest: Any) -> Any:
    extents = c.shape_of(input)
    front = len(size) - len(extents)
    shape = [extents[n - front] if isinstance(one, int) and one == -1 else one for n, one in enumerate(size)]
    return c.op("broadcast_to", input, relax.ShapeExpr(tuple(shape)))


@aten("expand_as", "broadcast_to")
def _expand_as(c: Context, input: Any, other: Any) -> Any:
    return _expand(c, input, other if isinstance(other, list) else c.shape_of(other))


@aten("copy")
def _copy(c: Context, input: Any, src: Any, *rest: Any) -> Any:
    given = c.cast(src, c.dtype)
    return given if c.shape_of(given) == c.sizes else c.op("broadcast_to", given, relax.ShapeExpr(tuple(c.sizes)))


@aten("repeat")
def _repeat(c: Context, input: Any, repeats: Sequence[Any]) -> Any:
    if not any(isinstance(one, PrimExpr) for one in repeats):
        return c.op("tile", input, repeats=list(repeats))
    shape = [1] * (len(repeats) - c.rank(input)) + c.shape_of(input)
    apart = c.reshape(input, [part for extent in shape for part in (1, extent)])
    whole = relax.ShapeExpr(tuple(part for pair in zip(repeats, shape, strict=True) for part in pair))
    return c.reshape(c.op("broadcast_to", apart, whole), c.sizes)


@aten("flip")
def _flip(c: Context, input: Any, dims: Sequence[int]) -> Any:
    for one in dims:
        input = c.op("flip", input, axis=c.axis(input, one))
    return input


@aten("roll")
def _roll(c: Context, input: Any, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    if not dims:
        flat = c.reshape(input, [_product(c.shape_of(input))])
        return c.reshape(_roll(c, flat, shifts, [0]), c.shape_of(input))
    for shift, dim in zip(shifts, dims, strict=True):
        input = _rolled(c, input, shift, c.axis(input, dim))
    return input


def _rolled(c: Context, input: Any, shift: Any, axis: int) -> Any:
    extent = c.shape_of(input)[axis]
    if not isinstance(extent, int) or not isinstance(shift, int):
        # Where an axis is cut depends on its size, shift % n, so that the parts have no extents: each element says where it comes from.
        return c.builder.emit_te(partial(_te_roll, shift=shift, axis=axis), input, primfunc_name_hint="roll")
    # What is behind `split` comes to the front: 5 elements moved by -1 are cut at 1. Of none there is nothing to move.
    split = extent - shift % extent if extent else 0
    parts = [sliced(c, input, axis, split, extent), sliced(c, input, axis, 0, split)]
    return c.op("concat", parts, axis=axis) if 0 < split < extent else input


def _te_roll(x: Tensor, shift: Any, axis: int) -> Tensor:
    """`x` moved by `shift` places along an axis, what leaves it at the end comes in at the front."""

    def body(*i: Any) -> Any:
        return x(*i[:axis], arithmetic.floormod(i[axis] - shift, x.shape[axis]), *i[axis + 1 :])

    made: Tensor = compute(x.shape, body, "T_roll", "injective")
    return made


def _product(extents: Sequence[Any]) -> Any:
    total: Any = 1
    for one in extents:
        total = total * one
    return total


@aten("cat", "concat", "concatenate")
def _cat(c: Context, tensors: Sequence[Any], dim: int = 0) -> Any:
    kept = [one for one in tensors if c.shape_of(one) != [0]]  # an empty tensor without other axes joins anything, as there
    return c.op("concat", [c.cast(one, c.dtype) for one in kept], axis=c.axis(kept[0], dim))


@aten("stack")
def _stack(c: Context, tensors: Sequence[Any], dim: int = 0) -> Any:
    axis = dim % (c.rank(tensors[0]) + 1)
    return c.op("concat", [c.op("expand_dims", c.cast(one, c.dtype), axis=axis) for one in tensors], axis=axis)


def sliced(c: Context, input: Any, axis: int, begin: Any, end: Any, step: int = 1) -> Any:
    """A part of a tensor along an axis, whose extent is known in symbols where its ends are."""
    found = c.op("strided_slice", input, [axis], [begin], [end], [step])
    if found.struct_info.extents is not None:
        return found
    # Where the ends are sizes that only a run knows, so is what lies between them.
    shape = c.shape_of(input)
    shape[axis] = -(-(end - begin) // step)
    return c.builder.match_cast(found, relax.TensorStructInfo(shape, c.dtype_of(input)))


@aten("slice", "slice.Tensor", "slice_copy")
def _slice(c: Context, input: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    axis = c.axis(input, dim)
    extent = c.shape_of(input)[axis]
    begin, stop = 0 if start is None else start, extent if end is None or (isinstance(end, int) and end >= _TO_THE_END) else end
    begin, stop = (_inside(one, extent) for one in (begin, stop))
    if isinstance(begin, int) and begin == 0 and step == 1 and (stop is extent or stop == extent):
        return input
    return sliced(c, input, axis, begin, stop, step)


def _inside(place: Any, extent: Any) -> Any:
    """A place in an axis, counted from the front and not beyond its end."""
    if isinstance(place, int) and place < 0:
        place = extent + place
    if isinstance(place, int) and isinstance(extent, int):
        return max(0, min(place, extent))
    return place


@aten("narrow")
def _narrow(c: Context, input: Any, dim: int, start: Any, length: Any) -> Any:
    return _slice(c, input, dim, start, start + length)


@aten("select", "select.int", "select_copy")
def selected(c: Context, input: Any, dim: int, index: Any) -> Any:
    """The part of a tensor at a place of an axis, without that axis."""
    axis = c.axis(input, dim)
    if isinstance(index, PrimExpr):  # which may count from the end
        place = c.cast(index, "int64")
        end = c.op("add", place, c.cast(c.shape_of(input)[axis], "int64"))
        return c.op("take", input, c.op("where", c.op("less", place, relax.const(0, "int64")), end, place), axis=axis)
    place = _inside(index, c.shape_of(input)[axis])
    return c.op("squeeze", sliced(c, input, axis, place, place + 1), axis=[axis])


@aten("split", "split.Tensor", "split_copy")
def _split(c: Context, input: Any, split_size: Any, dim: int = 0) -> Any:
    axis = c.axis(input, dim)
    extent = c.shape_of(input)[axis]
    if isinstance(extent, int) and isinstance(split_size, int):
        return _parts(c, input, axis, list(range(0, extent, split_size))[1:])
    # How many parts there are the export knows of open sizes, too.
    return _parts(c, input, axis, [split_size * n for n in range(1, len(c.result))])


@aten("split_with_sizes", "split.sizes", "split_with_sizes_copy")
def _split_with_sizes(c: Context, input: Any, split_sizes: Sequence[int], dim: int = 0) -> Any:
    return _parts(c, input, c.axis(input, dim), list(accumulate(split_sizes))[:-1])


@aten("chunk")
def _chunk(c: Context, input: Any, chunks: int, dim: int = 0) -> Any:
    axis = c.axis(input, dim)
    return _split(c, input, -(-c.shape_of(input)[axis] // chunks), axis)


def _parts(c: Context, input: Any, axis: int, ends: Sequence[Any]) -> list[Any]:
    """The parts of a tensor that end at some places of an axis, and what follows these."""
    if not ends:
        return [input]
    if not all(isinstance(one, int) for one in ends):
        return [sliced(c, input, axis, begin, end) for begin, end in zip([0, *ends], [*ends, c.shape_of(input)[axis]], strict=True)]
    whole = c.op("split", input, list(ends), axis=axis)
    return [c.builder.emit(relax.TupleGetItem(whole, n)) for n in range(len(ends) + 1)]


@aten("unbind")
def _unbind(c: Context, input: Any, dim: int = 0) -> Any:
    return [selected(c, input, dim, n) for n in range(c.shape_of(input)[c.axis(input, dim)])]


@aten("embedding")
def _embedding(c: Context, weight: Any, indices: Any, *rest: Any) -> Any:
    return c.op("take", weight, indices, axis=0)


@aten("unfold", "unfold_copy")
def _unfold(c: Context, input: Any, dimension: int, size: int, step: int) -> Any:
    """Windows along an axis, their elements along a new last one."""
    if not c.rank(input):
        return c.reshape(input, [1])
    axis = c.axis(input, dimension)
    begins = c.op("multiply", c.op("arange", 0, c.sizes[axis], 1, dtype="int64"), relax.const(step, "int64"))
    places = c.op("add", c.op("expand_dims", begins, axis=1), relax.const(np.arange(size), "int64"))
    found = c.op("take", input, places, axis=axis)
    return c.op("permute_dims", found, axes=[*(n for n in range(c.rank(found)) if n != axis + 1), axis + 1])


@aten("as_strided", "as_strided_copy")
def _as_strided(c: Context, input: Any, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None) -> Any:
    return c.op("take", c.op("flatten", input), relax.const(_in_memory(c, size, stride, storage_offset), "int64"), axis=0)


@aten("as_strided_scatter", "prims.as_strided_scatter")
def _as_strided_scatter(c: Context, input: Any, src: Any, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None) -> Any:
    places = _in_memory(c, size, stride, storage_offset)
    return c.reshape(put_along(c, c.op("flatten", input), 0, relax.const(places, "int64"), src), c.shape_of(input))


def _in_memory(c: Context, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any) -> Any:
    """Which elements of an operand in order lie at places in memory."""
    steps, extents = tuple(c.operand.stride()), tuple(c.operand.shape)
    if not all(isinstance(one, int) for one in (*size, *stride, *steps, *extents)):
        raise DeclarationError("as_strided is taken of tensors of known extents; export with fixed sizes")
    left = np.full(tuple(size), 0 if storage_offset is None else storage_offset - c.operand.storage_offset(), "int64")
    for axis, (extent, step) in enumerate(zip(size, stride, strict=True)):
        left += np.arange(extent).reshape([-1 if n == axis else 1 for n in range(len(size))]) * step
    # From places in memory to indices, the axis of the longest stride first.
    places = np.zeros(tuple(size), "int64")
    for axis in sorted((n for n, extent in enumerate(extents) if extent > 1 and steps[n]), key=lambda n: -steps[n]):
        index, left = np.divmod(left, steps[axis])
        if ((index < 0) | (index >= extents[axis])).any():
            raise DeclarationError("as_strided reaches elements of the memory that aren't its tensor's")
        places += index * int(np.prod(extents[axis + 1 :]))
    if left.any():
        raise DeclarationError("as_strided reaches elements of the memory that aren't its tensor's")
    return places


@aten("select_scatter")
def _select_scatter(c: Context, input: Any, src: Any, dim: int, index: int) -> Any:
    axis = c.axis(input, dim)
    place = _inside(index, c.shape_of(input)[axis])
    return _slice_scatter(c, input, c.op("expand_dims", src, axis=axis), axis, place, place + 1)


@aten("slice_scatter")
def _slice_scatter(c: Context, input: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    axis = c.axis(input, dim)
    extent = c.shape_of(input)[axis]
    begin = _inside(0 if start is None else start, extent)
    stop = extent if end is None or (isinstance(end, int) and end >= _TO_THE_END) else _inside(end, extent)
    src = _expand(c, src, [*c.shape_of(input)[:axis], c.shape_of(src)[axis], *c.shape_of(input)[axis + 1 :]])
    if step != 1:
        places = c.op("multiply", c.op("arange", 0, c.shape_of(src)[axis], 1, dtype="int64"), relax.const(step, "int64"))
        return put_along(c, input, axis, c.op("add", places, c.cast(begin, "int64")), src)
    ends = [(0, begin), None, (stop, extent)]
    parts = [src if pair is None else sliced(c, input, axis, *pair) for pair in ends if pair is None or pair[0] is not pair[1]]
    kept = [one for one in parts if not (isinstance(c.shape_of(one)[axis], int) and c.shape_of(one)[axis] == 0)]
    return c.op("concat", kept, axis=axis) if len(kept) > 1 else kept[0]


@aten("constant_pad_nd", "pad")
def _pad(c: Context, input: Any, pad: Sequence[int], value: Any = 0, *rest: Any) -> Any:
    if isinstance(value, str):  # pad(input, pad, mode, value)
        return _padded(c, input, pad, {"replicate": "edge"}.get(value, value), rest[0] if rest and rest[0] is not None else 0)
    return _padded(c, input, pad, "constant", value)


def _padded(c: Context, input: Any, pad: Sequence[int], mode: str, value: Any = 0) -> Any:
    """There the last axis comes first; a negative width cuts."""
    rank = c.rank(input)
    pairs = {rank - 1 - n: (pad[2 * n], pad[2 * n + 1]) for n in range(len(pad) // 2)}
    for axis in [axis for axis, pair in pairs.items() if any(isinstance(one, PrimExpr) for one in pair)]:
        if mode != "constant":
            raise DeclarationError(f"as many elements as a size says are added with a constant, not by mode {mode!r}")
        front, back = pairs.pop(axis)
        input = _widened(c, input, axis, front, back, value)
    for axis, (front, back) in pairs.items():
        if front < 0 or back < 0:
            input = sliced(c, input, axis, max(0, -front), c.shape_of(input)[axis] - max(0, -back))
    widths = [max(0, one) for axis in range(rank) for one in pairs.get(axis, (0, 0))]
    return c.op("nn.pad", input, widths, pad_value=value, pad_mode=mode) if any(widths) else input


def _widened(c: Context, input: Any, axis: int, front: Any, back: Any, value: Any) -> Any:
    """`input` with elements of a value before and behind it, as many as sizes say that only a run knows."""
    dtype, shape = c.dtype_of(input), c.shape_of(input)
    filler = relax.const(value or 0, dtype)
    made = [c.op("full", relax.ShapeExpr((*shape[:axis], one, *shape[axis + 1 :])), filler, dtype=dtype) for one in (front, back)]
    return c.op("concat", [made[0], input, made[1]], axis=axis)


def _by_mode(mode: str) -> Callable[..., Any]:
    return lambda c, input, padding: _padded(c, input, padding, mode)


CONVERTERS.update(
    {f"{name}{n}d": _by_mode(mode) for name, mode in (("reflection_pad", "reflect"), ("replication_pad", "edge")) for n in (1, 2, 3)}
)


@aten("tril")
def _tril(c: Context, input: Any, diagonal: int = 0) -> Any:
    return c.op("tril", input, diagonal)


@aten("triu")
def _triu(c: Context, input: Any, diagonal: int = 0) -> Any:
    return c.op("triu", input, diagonal)


@aten("_linalg_det")
def _det(c: Context, input: Any) -> Any:
    return [c.op("det", input)]  # its other results are those of the factors, for derivatives


@aten("meshgrid", "meshgrid.indexing")
def _meshgrid(c: Context, tensors: Sequence[Any], indexing: str = "ij") -> Any:
    axes = list(range(len(tensors)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = [1, 0]
    extents: list[Any] = [c.shape_of(one)[0] if c.rank(one) else 1 for one in tensors]
    whole = relax.ShapeExpr(tuple(extents[axes.index(n)] for n in range(len(axes))))
    apart = [c.reshape(one, [extents[n] if axis == axes[n] else 1 for axis in range(len(axes))]) for n, one in enumerate(tensors)]
    return [c.op("broadcast_to", one, whole) for one in apart]
