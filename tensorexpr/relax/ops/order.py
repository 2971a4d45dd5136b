"""Operators on the order of elements: sorted ones, the largest ones, different ones, running sums. NaN is larger than every number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import te, topi
from ...errors import DeclarationError
from ...tir.arithmetic import as_int
from ...tir.dtype import to_numpy
from ...tir.expr import IntImm
from ..expr import Call
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .manipulate import product
from .row import Expr, operator, tensor


def _order(data: Any, axis: int, descending: bool) -> Any:
    """Where the elements of the sorted array stand; equal ones in their order."""
    if not descending:
        return np.argsort(data, axis, kind="stable")
    # Reversed twice, so that equal elements keep their order: the places of [1, 2, 2] are [1, 2, 0].
    return data.shape[axis] - 1 - np.flip(np.argsort(np.flip(data, axis), axis, kind="stable"), axis)


@operator(
    "sort",
    te=lambda x, axis, descending: topi.sort(x, axis, not descending),
    numpy=lambda x, axis, descending: np.take_along_axis(x, _order(x, axis, descending), axis),
)
def sort(x: Expr, axis: int = -1, descending: bool = False) -> StructInfo:
    """Elements in their order along an axis."""
    operand = tensor(x, "x")
    operand.axis(axis)
    return operand.info


@operator(
    "argsort",
    te=lambda data, axis, descending, dtype: topi.argsort(data, None, axis, not descending, dtype),
    numpy=lambda data, axis, descending, dtype: _order(data, axis, descending).astype(to_numpy(dtype)),
)
def argsort(data: Expr, axis: int = -1, descending: bool = False, dtype: str = "int32") -> StructInfo:
    """Where the elements of the sorted tensor stand along an axis; equal ones keep their order."""
    operand = tensor(data, "data")
    operand.axis(axis)
    return operand.like(operand.info.shape, dtype, operand.ndim)


def _te_topk(data: Any, k: int, axis: int, ret_type: str, largest: bool, dtype: str) -> Any:
    return topi.topk(data, k if k > 0 else -1, axis, ret_type, not largest, dtype)


def _np_topk(data: Any, k: int, axis: int, ret_type: str, largest: bool, dtype: str) -> Any:
    count = data.shape[axis] if k < 1 else k
    places = np.take(_order(data, axis, largest), np.arange(count), axis)
    found = {"values": np.take_along_axis(data, places, axis), "indices": places.astype(to_numpy(dtype))}
    return (found["values"], found["indices"]) if ret_type == "both" else found[ret_type]


@operator("topk", te=_te_topk, numpy=_np_topk)
def topk(data: Expr, k: int = 1, axis: int = -1, ret_type: str = "both", largest: bool = True, dtype: str = "int32") -> StructInfo:
    """The `k` largest or smallest elements along an axis in their order, and where they stand; all for a `k` below 1."""
    operand = tensor(data, "data")
    place = operand.axis(axis)
    if ret_type not in ("both", "values", "indices"):
        raise DeclarationError(f"relax.op.topk: ret_type is {ret_type!r}; it takes 'both', 'values' or 'indices'")
    extents = None if operand.extents is None else list(operand.extents)
    if extents is not None and k > 0:
        extent = as_int(extents[place])
        if extent is not None and k > extent:
            raise DeclarationError(f"relax.op.topk: {k} elements of an axis of {extent}")
        extents[place] = IntImm("int64", k)
    infos = [operand.like(extents, one, operand.ndim) for one in (operand.dtype, dtype)]
    return TupleStructInfo(tuple(infos)) if ret_type == "both" else infos[ret_type == "indices"]


def _scan(name: str, summary: str, te_form: Callable[..., Any], ufunc: Any) -> Callable[..., Call]:
    def rule(data: Expr, axis: int | None = None, dtype: str | None = None, exclusive: bool = False) -> StructInfo:
        operand = tensor(data, "data")
        made = dtype or operand.dtype
        if axis is None:
            return operand.like(None if operand.extents is None else [product(operand.extents)], made, 1)
        operand.axis(axis)
        return operand.like(operand.info.shape, made, operand.ndim)

    def computed(data: Any, axis: int | None, dtype: str | None, exclusive: bool) -> Any:
        return te_form(data, axis, dtype or data.dtype, exclusive)

    def evaluated(data: Any, axis: int | None, dtype: str | None, exclusive: bool) -> Any:
        flat = data.astype(to_numpy(dtype) if dtype else data.dtype)
        flat, place = (flat.ravel(), 0) if axis is None else (flat, axis)
        if exclusive and flat.shape[place]:
            kept = np.delete(flat, -1, place)
            flat = np.insert(kept, 0, ufunc.identity, place)
        return ufunc.accumulate(flat, place, dtype=flat.dtype)

    rule.__doc__ = f"The {summary} of the elements up to each one along an axis, or of the flattened tensor; `exclusive` leaves it out."
    return operator(name, te=computed, numpy=evaluated)(rule)


cumsum = _scan("cumsum", "sum", topi.cumsum, np.add)
cumprod = _scan("cumprod", "product", topi.cumprod, np.multiply)


def _np_unique(
    x: Any,
    sorted: bool,
    return_index: bool,
    return_inverse: bool,
    return_counts: bool,
    axis: int | None,
) -> Any:
    values, first, inverse, counts = np.unique(x, True, True, True, axis)
    # Versions of NumPy give it different shapes.
    inverse = inverse.reshape(-1)
    if not sorted:  # in the order in which they occur
        order = np.argsort(first, kind="stable")
        # The inverse permutation: where each of the sorted values has gone.
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        values, first, inverse, counts = np.take(values, order, axis or 0), first[order], rank[inverse], counts[order]
    wanted = (True, return_index, return_inverse, return_counts)
    found = tuple(one for one, is_wanted in zip((values, first, inverse, counts), wanted, strict=True) if is_wanted)
    return found if len(found) > 1 else found[0]


@operator("unique", numpy=_np_unique)
def unique(
    x: Expr,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> StructInfo:
    """The different elements, or parts along an axis, in their order or that of their first occurrences.

    With them, where stated, tensors of int64: where each occurs first, for each element the number of its value, how often each occurs.
    The extent of the results depends on the elements.
    """
    operand = tensor(x, "x")
    place = None if axis is None else operand.axis(axis)
    count = None if operand.extents is None else product(operand.extents) if place is None else operand.extents[place]
    values = operand.like(None, ndim=1 if axis is None else operand.ndim)
    inverse = TensorStructInfo(None if count is None else [count], "int64", ndim=1)
    several = TensorStructInfo(None, "int64", ndim=1)
    wanted = (True, return_index, return_inverse, return_counts)
    infos = [one for one, is_wanted in zip((values, several, inverse, several), wanted, strict=True) if is_wanted]
    return infos[0] if len(infos) == 1 else TupleStructInfo(tuple(infos))


# NumPy makes one axis where there is none: indices of a scalar have no row.
@operator("nonzero", numpy=lambda x: np.array(np.nonzero(np.atleast_1d(x)), np.int64)[: x.ndim])
def nonzero(x: Expr) -> StructInfo:
    """The indices of the elements that aren't zero, a column for each: int64 [axes of x, as many as there are]."""
    tensor(x, "x")
    return TensorStructInfo(None, "int64", ndim=2)


def _np_bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    found = np.bincount(x.astype(np.int64), weights, minlength)
    return found.astype(np.int64) if weights is None else found.astype(weights.dtype)


@operator("bincount", numpy=_np_bincount)
def bincount(x: Expr, weights: Expr | None = None, minlength: int = 0) -> StructInfo:
    """How often each integer from 0 on occurs, or the sums of the weights that stand there; the largest, or `minlength`, says how many.

    Args:
        x: integers [n], none below 0.
        weights: [n], whose dtype the sums have; counts are int64.
        minlength: the least length of the result, which depends on the elements.
    """
    operand = tensor(x, "x")
    if operand.ndim not in (1, -1):
        raise DeclarationError(f"relax.op.bincount: x has one axis, where it is {operand.info}")
    return TensorStructInfo(None, "int64" if weights is None else tensor(weights, "weights").dtype, ndim=1)


@operator("repeat_places", numpy=lambda repeats: np.repeat(np.arange(len(repeats), dtype=np.int64), repeats))
def repeat_places(repeats: Expr) -> StructInfo:
    """The place of each number as often as it says: int64, [2, 0, 1] -> [0, 0, 2]; the sum of the numbers is its length."""
    operand = tensor(repeats, "repeats")
    if operand.ndim not in (1, -1):
        raise DeclarationError(f"relax.op.repeat_places: repeats has one axis, where it is {operand.info}")
    return TensorStructInfo(None, "int64", ndim=1)


def _te_multinomial(prob: Any, uniform_sample: Any, sample_indices: Any, dtype: str) -> Any:
    sums, last = topi.cumsum(prob, 1), prob.shape[1] - 1
    k = te.reduce_axis((0, prob.shape[1]), name="k")

    def below(i: Any, j: Any) -> Any:
        return te.sum((sums[sample_indices[i, j], k] <= uniform_sample[i, j]).astype("int64"), axis=k)

    counted = te.compute(sample_indices.shape, below, name="counted")
    # Rounded sums may end below the number: then it is the last category.
    return te.compute(sample_indices.shape, lambda i, j: te.min(counted[i, j], last.astype("int64")).astype(dtype), name="multinomial")


def _np_multinomial(prob: Any, uniform_sample: Any, sample_indices: Any, dtype: str) -> Any:
    sums = np.cumsum(prob, 1, dtype=prob.dtype)[sample_indices[:, 0]]
    return np.minimum((sums <= uniform_sample).sum(1, keepdims=True), prob.shape[1] - 1).astype(to_numpy(dtype))


@operator("multinomial_from_uniform", te=_te_multinomial, numpy=_np_multinomial)
def multinomial_from_uniform(prob: Expr, uniform_sample: Expr, sample_indices: Expr, dtype: str = "int64") -> StructInfo:
    """For each number [n, 1] between 0 and 1 the first category whose probabilities up to it sum to more than that.

    Args:
        prob: [batch, categories].
        uniform_sample: [n, 1].
        sample_indices: which row of `prob` each number is for, [n, 1] of int64.
        dtype: of the result, [n, 1].
    """
    rows, numbers, places = tensor(prob, "prob"), tensor(uniform_sample, "uniform_sample"), tensor(sample_indices, "sample_indices")
    if any(one.ndim not in (2, -1) for one in (rows, numbers, places)):
        raise DeclarationError(f"relax.op.multinomial_from_uniform: {rows.info}, {numbers.info} and {places.info}; all have two axes")
    return places.like(places.info.shape, dtype, 2)


__all__ = [
    "argsort", "bincount", "cumprod", "cumsum", "multinomial_from_uniform", "nonzero", "repeat_places", "sort", "topk", "unique",
]  # fmt: skip
