"""Operators that move elements about: shapes, layouts, slices, gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import topi
from ...errors import DeclarationError
from ...relax import op as graph_op
from ...relax.expr import Constant
from ...relax.expr import Tuple as GraphTuple
from ...relax.expr import TupleGetItem as GraphTupleGetItem
from ...relax.expr import const as constant
from ...relax.ops.shape_values import new_shape
from ...tir.arithmetic import as_int
from ..expr import as_expr, const
from . import dynamic
from .create import _extents
from .row import Computed, Expr, Exprs, Meaning, dtype, number, operator, shape


def _axis(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise DeclarationError(f"axis {axis} of {ndim} dimensions")
    return axis % ndim


def _list(value: Any) -> list[Any]:
    return [value] if as_int(value) is not None else list(value)


@operator("reshape")
def _reshape(data: Expr, newshape: Any, allowzero: bool = False) -> Meaning:
    return graph_op.reshape(data, new_shape(shape(data), newshape, allowzero))


def reshape(data: Any, newshape: Any, allowzero: bool = False) -> Any:
    """A tensor of the same elements in another shape; see `relax.ops.shape_values.new_shape` for what 0 and numbers below it mean."""
    return dynamic.reshape(data, newshape, allowzero) if dynamic.is_value(newshape) else _reshape(data, _extents(newshape), allowzero)


@operator("contrib_reverse_reshape")
def reverse_reshape(data: Expr, newshape: Any) -> Meaning:
    """As `reshape`, with shapes read from their ends."""
    return graph_op.reshape(data, new_shape(shape(data)[::-1], list(newshape)[::-1])[::-1])


@operator("reshape_like")
def reshape_like(
    data: Expr, shape_like: Expr, lhs_begin: int = 0, lhs_end: int | None = None, rhs_begin: int = 0, rhs_end: int | None = None
) -> Meaning:
    """Some extents of a tensor replaced by some of another one."""
    mine, other = list(shape(data)), list(shape(shape_like))
    last = len(mine) if lhs_end is None else lhs_end
    return graph_op.reshape(data, mine[:lhs_begin] + other[rhs_begin : len(other) if rhs_end is None else rhs_end] + mine[last:])


@operator("transpose")
def transpose(data: Expr, axes: Sequence[int] | None = None) -> Meaning:
    """Axes in another order; reversed without one."""
    return graph_op.permute_dims(data, None if not axes else list(axes))


@operator("expand_dims")
def _expand_dims(data: Expr, axis: int, num_newaxis: int = 1) -> Meaning:
    """Axes of one element, in front of an axis."""
    place = axis if axis >= 0 else axis + len(shape(data)) + 1
    return graph_op.expand_dims(data, [place + n for n in range(num_newaxis)]) if num_newaxis else data


def expand_dims(data: Any, axis: Any, num_newaxis: int = 1) -> Any:
    """Axes of one element, in front of an axis: a number, or a tensor of one."""
    if dynamic.is_value(axis):
        return dynamic.expand_dims(data, axis, num_newaxis)
    return _expand_dims(data, int(number(axis).item()) if hasattr(axis, "struct_info") else axis, num_newaxis)


@operator("squeeze")
def _squeeze(data: Expr, axis: int | Sequence[int] | None = None) -> Meaning:
    """Without axes of one element: those given, or all."""
    return graph_op.squeeze(data, None if axis is None else _list(axis))


def squeeze(data: Any, axis: Any = None) -> Any:
    """Without axes of one element: those given, also as a tensor, or all."""
    return dynamic.squeeze(data, axis) if dynamic.is_value(axis) else _squeeze(data, None if axis is None else _extents(axis))


@operator("nn.batch_flatten")
def batch_flatten(data: Expr) -> Meaning:
    """A row for each element of the first axis."""
    extents = shape(data)
    return graph_op.reshape(data, [extents[0], -1]) if all(as_int(one) != 0 for one in extents) else graph_op.reshape(data, [extents[0], 0])


@operator("concatenate")
def concatenate(data: Exprs, axis: int) -> Meaning:
    """Tensors one behind the other along an axis."""
    return graph_op.concat(data, axis)


@operator("stack")
def stack(data: Exprs, axis: int) -> Meaning:
    """Tensors of one shape beside each other along a new axis."""
    return graph_op.concat(GraphTuple(tuple(graph_op.expand_dims(one, axis) for one in _fields(data))), axis)


def _fields(data: Any) -> list[Any]:
    if isinstance(data, GraphTuple):
        return list(data.fields)
    count = len(data.struct_info.fields)
    return [GraphTupleGetItem(data, n) for n in range(count)]


def _pieces(data: Any, indices_or_sections: Any, axis: int) -> int:
    return int(indices_or_sections) if as_int(indices_or_sections) is not None else len(tuple(indices_or_sections)) + 1


@operator("split", results=_pieces)
def split(data: Expr, indices_or_sections: Any, axis: int = 0) -> Meaning:
    """A tensor in pieces: so many of one size, or cut in front of indices."""
    sections = as_int(indices_or_sections)
    return graph_op.split(data, list(indices_or_sections) if sections is None else sections, axis)


@operator("broadcast_to")
def _broadcast_to(data: Expr, shape: Any) -> Meaning:
    return graph_op.broadcast_to(data, list(shape))


def broadcast_to(data: Any, shape: Any) -> Any:
    """A tensor repeated along axes of one element and new ones in front."""
    return dynamic.broadcast_to(data, shape) if dynamic.is_value(shape) else _broadcast_to(data, _extents(shape))


@operator("broadcast_to_like")
def broadcast_to_like(data: Expr, broadcast_type: Expr) -> Meaning:
    """A tensor repeated to the shape of another one."""
    return graph_op.broadcast_to(data, list(shape(broadcast_type)))


@operator("collapse_sum_to")
def collapse_sum_to(data: Expr, shape: Any) -> Meaning:
    """Sums over the axes that `broadcast_to` would repeat to undo it."""
    return graph_op.collapse_sum_to(data, list(shape))


@operator("collapse_sum_like")
def collapse_sum_like(data: Expr, collapse_type: Expr) -> Meaning:
    """As `collapse_sum_to`, to the shape of another tensor."""
    return graph_op.collapse_sum_to(data, list(shape(collapse_type)))


@operator("tile")
def _tile(data: Expr, reps: Any) -> Meaning:
    return graph_op.tile(data, _list(reps))


def tile(data: Any, reps: Any) -> Any:
    """A tensor repeated along each axis."""
    return dynamic.tile(data, reps) if dynamic.is_value(reps) else _tile(data, _extents(reps))


@operator("repeat")
def repeat(data: Expr, repeats: int, axis: int) -> Meaning:
    """Each element along an axis several times."""
    return graph_op.repeat(data, int(repeats), axis)


@operator("reverse")
def reverse(data: Expr, axis: int) -> Meaning:
    """An axis from its end."""
    return graph_op.flip(data, axis)


@operator("reverse_sequence")
def reverse_sequence(data: Expr, seq_lengths: Expr, seq_axis: int = 1, batch_axis: int = 0) -> Meaning:
    """The first elements of an axis from their end, as many as each one of a batch has."""
    most = constant(int(shape(data)[seq_axis]), dtype(seq_lengths)) if as_int(shape(data)[seq_axis]) is not None else None
    lengths = seq_lengths if most is None else graph_op.minimum(seq_lengths, most)
    return Computed(topi.reverse_sequence, (data, lengths), {"seq_axis": seq_axis, "batch_axis": batch_axis}, "reverse_sequence")


@operator("layout_transform")
def layout_transform(data: Expr, src_layout: str, dst_layout: str) -> Meaning:
    """The order of elements in memory: `"NCHW"` to `"NCHW8c"`."""
    return Computed(topi.layout_transform, (data,), {"src_layout": src_layout, "dst_layout": dst_layout}, "layout_transform")


def _ends(
    begin: Any, end: Any, strides: Any, axes: Any, slice_mode: str, extents: Sequence[Any]
) -> tuple[list[Any], list[Any], list[Any], list[int]]:
    """Begin, end, stride and axis of each axis that is cut."""
    steps = list(strides) if strides else []
    named = max(len(begin), len(end), len(steps)) if slice_mode == "end" else len(begin)
    places = [_axis(one, len(extents)) for one in axes] if axes is not None else list(range(named))
    begin = [*begin, *[0] * (len(places) - len(begin))]
    steps += [1] * (len(places) - len(steps))
    if slice_mode == "size":  # end is how many elements; -1 all that are left
        stops = [extents[p] if as_int(e) == -1 else (b + e) for b, e, p in zip(begin, end, places, strict=True)]
        return list(begin), stops, [1] * len(places), places
    if slice_mode != "end":
        raise DeclarationError(f'strided_slice: slice_mode is "end" or "size", not {slice_mode!r}')
    stops = [extents[places[n]] if n >= len(end) or end[n] is None else end[n] for n in range(len(places))]
    return list(begin), stops, steps, places


@operator("strided_slice")
def _strided_slice(data: Expr, begin: Any, end: Any, strides: Any = None, axes: Any = None, slice_mode: str = "end") -> Meaning:
    low, high, step, places = _ends(begin, end, strides, axes, slice_mode, shape(data))
    return graph_op.strided_slice(data, places, low, high, step)


def strided_slice(data: Any, begin: Any, end: Any, strides: Any = None, axes: Any = None, slice_mode: str = "end") -> Any:
    """Every so manieth element of some axes.

    Args:
        data: a tensor.
        begin, end: of each axis, or of those in `axes`: integers, or tensors of them.
        strides: of each; 1 without.
        axes: which; the first ones without.
        slice_mode: "end", or "size" where `end` says how many elements, -1 for all.
    """
    known = [one is None or not hasattr(one, "struct_info") or isinstance(one, Constant) for one in (begin, end, strides)]
    if all(known):
        return _strided_slice(data, *(None if one is None else _extents(one) for one in (begin, end, strides)), axes, slice_mode)
    if axes is not None:
        raise DeclarationError("relay.strided_slice: cuts that are computed are those of the first axes; axes= stands beside constants")
    given = [one for one in (begin, end, strides) if one is not None]
    cuts = [one if hasattr(one, "struct_info") else const(list(one), "int64") for one in given]
    steps = cuts[2:] or [const([1] * int(shape(cuts[0])[0]), "int64")]
    return dynamic.strided_slice(data, *cuts[:2], *steps, slice_mode)


@operator("strided_set")
def strided_set(data: Expr, v: Expr, begin: Expr, end: Expr, strides: Expr | None = None) -> Meaning:
    """A tensor with some of its elements replaced."""
    return Computed(topi.strided_set, tuple(one for one in (data, v, begin, end, strides) if one is not None), {}, "strided_set")


@operator("slice_like")
def slice_like(data: Expr, shape_like: Expr, axes: Sequence[int] | None = None) -> Meaning:
    """The first elements of axes, as many as another tensor has."""
    other = shape(shape_like)
    places = [_axis(one, len(other)) for one in axes] if axes else list(range(len(other)))
    return graph_op.strided_slice(data, places, [0] * len(places), [other[one] for one in places])


@operator("take")
def take(data: Expr, indices: Expr, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Meaning:
    """Elements by their indices, along an axis or of all.

    Indices past the ends: "clip" takes the last or first element, "wrap" counts on, "fast" trusts that there are none.
    """
    if mode == "clip" and axis is not None and not batch_dims:
        return graph_op.take(data, indices, axis)
    return Computed(topi.take, (data, indices), {"axis": axis, "batch_dims": batch_dims, "mode": mode}, "take")


@operator("gather")
def gather(data: Expr, axis: int, indices: Expr, support_negative_indices: bool = False) -> Meaning:
    """Elements by their indices along an axis, the others being those of the result. Negative ones count from the end in any case."""
    return graph_op.gather_elements(data, indices, axis)


@operator("gather_nd")
def gather_nd(data: Expr, indices: Expr, batch_dims: int = 0, index_rank: int | None = None) -> Meaning:
    """Elements by indices whose first axis is the place in the indices."""
    places: Any = indices.struct_info
    return graph_op.gather_nd(data, graph_op.permute_dims(indices, [*range(1, places.ndim), 0]), batch_dims)


@operator("scatter_elements")
def scatter_elements(data: Expr, indices: Expr, updates: Expr, axis: int = 0, reduction: str = "update") -> Meaning:
    """A tensor with elements replaced, or reduced with others, at indices along an axis."""
    return graph_op.scatter_elements(data, indices, updates, axis, reduction)


def scatter(data: Any, indices: Any, updates: Any, axis: int) -> Any:
    """`scatter_elements` by the name of releases before 0.11."""
    return scatter_elements(data, indices, updates, axis, "update")


def scatter_add(data: Any, indices: Any, updates: Any, axis: int) -> Any:
    """`scatter_elements` that adds, by the name of releases before 0.11."""
    return scatter_elements(data, indices, updates, axis, "add")


@operator("scatter_nd")
def scatter_nd(data: Expr, indices: Expr, updates: Expr, mode: str = "update") -> Meaning:
    """A tensor with elements replaced or reduced at indices whose first axis is the place in the indices."""
    return Computed(topi.scatter_nd, (data, indices, updates), {"mode": mode}, "scatter_nd")


@operator("one_hot")
def _one_hot(indices: Expr, on_value: Expr, off_value: Expr, depth: int, axis: int, dtype: str) -> Meaning:
    """One value at the index along a new axis, another one elsewhere."""
    if dynamic.is_value(on_value) or dynamic.is_value(off_value):
        return dynamic.chosen(indices, graph_op.astype(on_value, dtype), graph_op.astype(off_value, dtype), depth, axis)
    given = {"on_value": number(on_value).item(), "off_value": number(off_value).item(), "depth": depth, "axis": axis, "dtype": dtype}
    return Computed(topi.one_hot, (indices,), given, "one_hot")


def one_hot(indices: Any, on_value: Any, off_value: Any, depth: Any, axis: int, dtype: str) -> Any:
    """One value at the index along a new axis of `depth` elements, another one elsewhere; `depth` is a number, or a tensor of one."""
    if dynamic.is_value(depth):
        return dynamic.one_hot(indices, on_value, off_value, depth, axis, dtype)
    count = int(number(depth).item()) if hasattr(depth, "struct_info") else depth
    return _one_hot(indices, on_value, off_value, count, axis, dtype)


@operator("sequence_mask")
def sequence_mask(data: Expr, valid_length: Expr, mask_value: float = 0, axis: int = 0) -> Meaning:
    """Elements behind the length of each sequence replaced."""
    return Computed(topi.sequence_mask, (data, valid_length), {"mask_value": mask_value, "axis": axis}, "sequence_mask")


@operator("unravel_index")
def unravel_index(indices: Expr, shape: Expr) -> Meaning:
    """Places in a shape of places in the row of its elements."""
    if not dynamic.is_value(shape):
        return Computed(
            lambda i, extents: topi.unravel_index(i, extents), (indices, [int(one) for one in number(shape)]), {}, "unravel_index"
        )
    return dynamic.unravelled(indices, shape)


@operator("meshgrid", results=lambda data, indexing: len(as_expr(data).fields))
def meshgrid(data: Exprs, indexing: str = "ij") -> Meaning:
    """Coordinates of a grid of vectors; a scalar is a vector of one element."""
    vectors = [one if shape(one) else graph_op.reshape(one, [1]) for one in _fields(data)]
    return Computed(topi.meshgrid, (vectors,), {"indexing": indexing}, "meshgrid")


@operator("adv_index")
def adv_index(inputs: Exprs) -> Meaning:
    """Elements of the first tensor at indices in the others, which broadcast."""
    first, *others = _fields(inputs)
    return Computed(topi.adv_index, (first, others), {}, "adv_index")


@operator("sliding_window")
def sliding_window(data: Expr, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Meaning:
    """All windows of a shape over the axes from `axis` on."""
    given = {"axis": axis, "window_shape": list(window_shape), "strides": list(strides)}
    return Computed(topi.sliding_window, (data,), given, "sliding_window")


@operator("matrix_set_diag")
def matrix_set_diag(data: Expr, diagonal: Expr, k: Any = 0, align: str = "RIGHT_LEFT") -> Meaning:
    """Matrices with diagonals replaced."""
    return Computed(
        topi.matrix_set_diag, (data, diagonal), {"k": k if as_int(k) is not None else tuple(k), "align": align}, "matrix_set_diag"
    )


@operator("trilu")
def _trilu(data: Expr, k: Expr, upper: bool = True) -> Meaning:
    diagonal = graph_op.reshape(k, []) if dynamic.is_value(k) else int(number(k).item())
    return (graph_op.triu if upper else graph_op.tril)(data, diagonal)


def trilu(data: Any, k: Any, upper: bool = True) -> Any:
    """The upper or lower triangle of matrices from diagonal `k` on, a number or a tensor of one, with zeros elsewhere."""
    return _trilu(data, k if hasattr(k, "struct_info") else const(k, "int64"), upper)


@operator("invert_permutation")
def invert_permutation(data: Expr) -> Meaning:
    """The order that undoes an order."""
    return Computed(topi.invert_permutation, (data,), {}, "invert_permutation")


@operator("sparse_to_dense")
def _sparse_to_dense(sparse_indices: Expr, sparse_values: Expr, default_value: Expr, output_shape: Any) -> Meaning:
    filler = default_value if dynamic.is_value(default_value) else number(default_value).item()
    return Computed(topi.sparse_to_dense, (sparse_indices, list(output_shape), sparse_values, filler), {}, "sparse_to_dense")


def sparse_to_dense(sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any = 0) -> Any:
    """A tensor of one value with others at indices."""
    value = default_value if hasattr(default_value, "struct_info") else const(default_value, dtype(sparse_values))
    if dynamic.is_value(output_shape):
        return dynamic.sparse_to_dense(sparse_indices, sparse_values, value, output_shape)
    return _sparse_to_dense(sparse_indices, sparse_values, value, _extents(output_shape))


@operator("einsum")
def einsum(data: Exprs, equation: str) -> Meaning:
    """Sums of products by Einstein's convention."""
    return graph_op.einsum(data, equation)
