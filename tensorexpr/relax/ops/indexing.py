"""Operators that read or write elements where a tensor of indices says. Negative indices count from the end."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import te, topi
from ...errors import DeclarationError, TypeMismatchError
from ...tir.arithmetic import as_int
from ...tir.dtype import to_numpy
from ...tir.expr import IntImm, PrimExpr
from ..expr import PrimValue
from ..relations import same_extents
from ..struct_info import StructInfo, TensorStructInfo
from .row import Expr, Operand, Pattern, Prim, indices_of, operator, tensor

REDUCTIONS = ("update", "add", "mul", "min", "max", "mean")


def _counted(indices: Any, extent: Any) -> Any:
    """Indices from the front, of those that count from the end where they are negative."""
    wide = topi.cast(indices, "int64")
    return te.compute(indices.shape, lambda *i: te.if_then_else(wide[i] < 0, wide[i] + extent, wide[i]), name="counted")


def _te_gather(data: Any, indices: Any, axis: int) -> Any:
    # Indices beyond the ends are errors, but they mustn't read what isn't the tensor's.
    return topi.take(data, _counted(indices, data.shape[axis]), axis, mode="clip")


@operator("gather", Pattern.INJECTIVE, te=_te_gather, numpy=lambda data, indices, axis: np.take(data, indices.astype(np.int64), axis))
def gather(data: Expr, indices: Expr, axis: int = 0) -> StructInfo:
    """Parts of `data` by their indices along an axis, as `take`; indices beyond the ends are errors of the caller."""
    operand, places = tensor(data, "data"), indices_of(indices)
    at = operand.axis(axis)
    if operand.extents is None or places.extents is None:
        return operand.like(None, ndim=-1 if -1 in (operand.ndim, places.ndim) else operand.ndim + places.ndim - 1)
    return operand.like([*operand.extents[:at], *places.extents, *operand.extents[at + 1 :]])


def _np_gather_elements(data: Any, indices: Any, axis: int) -> Any:
    at = list(np.indices(indices.shape, sparse=True))
    at[axis] = indices.astype(np.int64)
    return data[tuple(at)]


@operator(
    "gather_elements",
    Pattern.INJECTIVE,
    te=lambda data, indices, axis: topi.gather(data, axis, topi.cast(indices, "int64")),
    numpy=_np_gather_elements,
)
def gather_elements(data: Expr, indices: Expr, axis: int = 0) -> StructInfo:
    """`data[i, indices[i, j, k], k]`, the index at `axis`: a tensor of the shape of `indices`."""
    operand, places = tensor(data, "data"), indices_of(indices)
    operand.axis(axis)
    _same_ndim("gather_elements", operand, places)
    return operand.like(places.info.shape, ndim=places.ndim)


def _same_ndim(name: str, *operands: Operand) -> None:
    if len({one.ndim for one in operands if one.ndim != -1}) > 1:
        raise DeclarationError(f"relax.op.{name}: {', '.join(f'{one.name} is {one.info}' for one in operands)}; their ndims have to be one")


def _leading(indices: Any) -> Any:
    """Tuples of indices along the first axis instead of the last."""
    wide = topi.cast(indices, "int64")
    return topi.transpose(wide, [len(indices.shape) - 1, *range(len(indices.shape) - 1)])


def _np_gather_nd(data: Any, indices: Any, batch_dims: int) -> Any:
    batch = np.indices(indices.shape[:-1])[:batch_dims]
    at: tuple[Any, ...] = (*batch, *np.moveaxis(indices.astype(np.int64), -1, 0))
    return data[at] if at else np.broadcast_to(data, indices.shape[:-1] + data.shape)


@operator(
    "gather_nd",
    Pattern.INJECTIVE,
    te=lambda data, indices, batch_dims: topi.gather_nd(data, _leading(indices), batch_dims),
    numpy=_np_gather_nd,
)
def gather_nd(data: Expr, indices: Expr, batch_dims: int = 0) -> StructInfo:
    """Elements or parts of `data` at the tuples of indices along the last axis of `indices`.

    The first `batch_dims` axes are common to both: `data[b, ..., indices[b, ..., 0], indices[b, ..., 1], ...]`.
    """
    operand, places = tensor(data, "data"), indices_of(indices)
    if places.ndim == 0:
        raise DeclarationError("relax.op.gather_nd: indices are tuples along a last axis, and there is none")
    if operand.extents is None or places.extents is None:
        return operand.like(None)
    count = as_int(places.extents[-1])
    if count is None:
        return operand.like(None)
    if not 0 <= batch_dims < places.ndim or batch_dims + count > operand.ndim:
        raise DeclarationError(f"relax.op.gather_nd: {batch_dims} common axes and {count} indices for data, which is {operand.info}")
    return operand.like([*places.extents[:-1], *operand.extents[batch_dims + count :]])


_AT = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def _written(data: Any, at: Any, updates: Any, reduction: str) -> Any:
    """The array with updates of places, in their order."""
    made = np.array(data)
    if reduction == "update":
        made[at] = updates
    elif reduction == "mean":
        whole = np.broadcast_arrays(*at)
        for place in np.ndindex(whole[0].shape):
            to = tuple(int(index[place]) for index in whole)
            made[to] = (made[to] + updates[place]) / 2 if made.dtype.kind not in "iu" else np.trunc((made[to] + updates[place]) / 2)
    else:
        # `made[at] += updates` would take one of several updates of a place, and lose the others.
        _AT[reduction].at(made, at, updates)
    return made


def _np_scatter_elements(data: Any, indices: Any, updates: Any, axis: int, reduction: str) -> Any:
    at = list(np.indices(indices.shape, sparse=True))
    at[axis] = indices.astype(np.int64)
    return _written(data, tuple(at), updates, reduction)


def _te_scatter_elements(data: Any, indices: Any, updates: Any, axis: int, reduction: str) -> Any:
    return topi.scatter_elements(data, topi.cast(indices, "int64"), updates, axis, reduction)


def _reduction(name: str, reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise DeclarationError(f"relax.op.{name}: no reduction {reduction!r}; it takes {', '.join(REDUCTIONS)}")


@operator("scatter_elements", Pattern.OPAQUE, te=_te_scatter_elements, numpy=_np_scatter_elements)
def scatter_elements(data: Expr, indices: Expr, updates: Expr, axis: int = 0, reduction: str = "update") -> StructInfo:
    """`data` with `updates[i, j, k]` at `[i, indices[i, j, k], k]`, the index at `axis`.

    Updates of one place happen in their order; `reduction` says how one joins what is there: "update" replaces it, "add", "mul", "min",
    "max", and "mean", the mean of the two (so that of several updates the last one weighs most, as TVM has it).
    """
    operand, places, new = tensor(data, "data"), indices_of(indices), tensor(updates, "updates")
    operand.axis(axis)
    _reduction("scatter_elements", reduction)
    _same_ndim("scatter_elements", operand, places, new)
    _same_dtype("scatter_elements", operand, new)
    if places.extents is not None and new.extents is not None:
        for n, (a, b) in enumerate(zip(places.extents, new.extents, strict=True)):
            if same_extents(a, b) is False:
                raise DeclarationError(f"relax.op.scatter_elements: along axis {n} there are {a} indices and {b} updates")
    return operand.info


def _same_dtype(name: str, operand: Operand, new: Operand) -> None:
    if operand.dtype and new.dtype and operand.dtype != new.dtype:
        raise TypeMismatchError(f"relax.op.{name}: updates of {new.dtype} for data of {operand.dtype}; bring them to one dtype with astype")


def _np_scatter_nd(data: Any, indices: Any, updates: Any, reduction: str) -> Any:
    count = indices.shape[-1]
    if not count:  # each update is one of the whole
        for place in np.ndindex(indices.shape[:-1]):
            data = _written(data, (Ellipsis,), updates[place], reduction)
        return data
    inner = np.indices(data.shape[count:], sparse=True)
    # Broadcast against the places inside of a part, whose axes stand behind.
    outer = [index.reshape(index.shape + (1,) * len(inner)) for index in np.moveaxis(indices.astype(np.int64), -1, 0)]
    return _written(data, (*outer, *inner), updates, reduction)


def _te_scatter_nd(data: Any, indices: Any, updates: Any, reduction: str) -> Any:
    return topi.scatter_nd(data, _leading(indices), updates, reduction)


@operator("scatter_nd", Pattern.OPAQUE, te=_te_scatter_nd, numpy=_np_scatter_nd)
def scatter_nd(data: Expr, indices: Expr, updates: Expr, reduction: str = "update") -> StructInfo:
    """`data` with elements or parts of `updates` at the tuples of indices along the last axis of `indices`; as `scatter_elements`."""
    operand, places, new = tensor(data, "data"), indices_of(indices), tensor(updates, "updates")
    _reduction("scatter_nd", reduction)
    _same_dtype("scatter_nd", operand, new)
    if operand.extents is None or places.extents is None or new.extents is None:
        return operand.info
    count = as_int(places.extents[-1]) if places.extents else None
    if count is None or count > operand.ndim:
        raise DeclarationError(f"relax.op.scatter_nd: tuples of {count} indices for data, which is {operand.info}")
    expected = [*places.extents[:-1], *operand.extents[count:]]
    if len(expected) != new.ndim or any(same_extents(a, b) is False for a, b in zip(expected, new.extents, strict=True)):
        raise DeclarationError(f"relax.op.scatter_nd: updates of shape {expected} are wanted, not {new.info}")
    return operand.info


def _te_one_hot(indices: Any, on_value: Any, off_value: Any, depth: int, axis: int) -> Any:
    dtype = _dtype_of(on_value)
    on, off = (one if isinstance(one, PrimExpr) else te.const(one, dtype) if isinstance(one, (int, float)) else one() for one in
               (on_value, off_value))  # fmt: skip
    return topi.one_hot(topi.cast(indices, "int64"), on, off, depth, axis, dtype)


def _dtype_of(value: Any) -> str:
    if hasattr(value, "dtype"):
        dtype = str(value.dtype)
        return "float32" if dtype == "float64" and isinstance(value, PrimExpr) else dtype
    return "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32"


def _np_one_hot(indices: Any, on_value: Any, off_value: Any, depth: int, axis: int) -> Any:
    ndim = indices.ndim + 1
    steps = np.arange(depth).reshape([-1 if n == axis % ndim else 1 for n in range(ndim)])
    return np.where(np.expand_dims(indices, axis) == steps, on_value, off_value).astype(to_numpy(_dtype_of(on_value)))


@operator("one_hot", Pattern.INJECTIVE, te=_te_one_hot, numpy=_np_one_hot)
def one_hot(indices: Expr, on_value: Prim, off_value: Prim, depth: int, axis: int = -1) -> StructInfo:
    """A new axis of `depth` elements: `on_value` where the index is, `off_value` elsewhere and for indices outside.

    The values are numbers, of which floating-point ones make float32, or tensors without axes, whose dtype the result has.
    """
    places = indices_of(indices)
    if depth < 0:
        raise DeclarationError(f"relax.op.one_hot: a depth of {depth}")
    dtype, other = (_dtype_of(one.value if isinstance(one, PrimValue) else tensor(one, "a value")) for one in (on_value, off_value))
    if dtype != other:
        raise TypeMismatchError(f"relax.op.one_hot: values of {dtype} and {other}; give both in one dtype")
    if places.extents is None:
        return places.like(None, dtype, -1 if places.ndim == -1 else places.ndim + 1)
    at = places.axis(axis, 1)
    return places.like([*places.extents[:at], IntImm("int64", depth), *places.extents[at:]], dtype)


def _np_reverse(data: Any, lengths: Any, seq_axis: int, batch_axis: int) -> Any:
    moved = np.moveaxis(data, (batch_axis, seq_axis), (0, 1))
    made = np.array(moved)
    for row, length in enumerate(lengths.astype(np.int64)):
        made[row, :length] = moved[row, :length][::-1]
    return np.moveaxis(made, (0, 1), (batch_axis, seq_axis))


@operator(
    "reverse_sequence",
    Pattern.INJECTIVE,
    te=lambda data, lengths, seq_axis, batch_axis: topi.reverse_sequence(data, lengths, seq_axis, batch_axis),
    numpy=_np_reverse,
)
def reverse_sequence(data: Expr, lengths: Expr, seq_axis: int = 1, batch_axis: int = 0) -> StructInfo:
    """The first `lengths[b]` elements along an axis in the opposite order, for each b along another axis."""
    operand, count = tensor(data, "data"), indices_of(lengths, "lengths")
    if operand.axis(seq_axis) == operand.axis(batch_axis):
        raise DeclarationError(f"relax.op.reverse_sequence: axis {seq_axis} can't be that of sequences and of the batch")
    if operand.extents is not None and count.extents is not None:
        batch = operand.extents[operand.axis(batch_axis)]
        if len(count.extents) != 1 or same_extents(count.extents[0], batch) is False:
            raise DeclarationError(f"relax.op.reverse_sequence: {batch} lengths are wanted, not {count.info}")
    return operand.info


def axis_without(operand: Operand, axis: int | None) -> TensorStructInfo:
    """A tensor whose extent along an axis, or whose only one, depends on elements."""
    return operand.like(None, ndim=1 if axis is None else operand.ndim)


def _np_compress(data: Any, condition: Any, axis: int | None) -> Any:
    return np.compress(condition.astype(bool), data, axis)


@operator("compress", numpy=_np_compress)
def compress(data: Expr, condition: Expr, axis: int | None = None) -> StructInfo:
    """The parts along an axis, or the elements, where a condition holds; the result's extent depends on it."""
    operand, holds = tensor(data, "data"), tensor(condition, "condition")
    if holds.ndim not in (1, -1):
        raise DeclarationError(f"relax.op.compress: the condition has one axis, not {holds.info}")
    if axis is not None:
        operand.axis(axis)
    return axis_without(operand, axis)


__all__ = [
    "compress", "gather", "gather_elements", "gather_nd", "one_hot", "reverse_sequence", "scatter_elements", "scatter_nd",
]  # fmt: skip
