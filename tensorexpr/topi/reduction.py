"""Reductions over axes: `topi.sum(x, axis, keepdims)` and its family, argmax and argmin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import te
from ..te.declare import compute
from ..te.reducer import Reducer
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import const
from ..tir.dtype import parse_dtype
from ..tir.expr import IterVar, PrimExpr, Var
from ..tir.reduction_laws import FIRST_GREATEST, FIRST_LEAST
from . import tag
from .utils import extent_value, positive_axes

prod_reducer = te.comm_reducer(lambda a, b: a * b, lambda dtype: const(1, dtype), name="prod")
all_reducer = te.comm_reducer(arithmetic.logical_and, lambda dtype: const(True), name="all")
any_reducer = te.comm_reducer(arithmetic.logical_or, lambda dtype: const(False), name="any")


def sum(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis`: one axis, several, or None for all; with `keepdims` they stay as extents of 1.

    Of bool it is whether any is true: a sum is of the dtype of its elements, and True + True is True there, as in NumPy.
    """
    return _reduce(data, axis, keepdims, any_reducer if data.dtype == "bool" else te.sum, "T_sum")


def max(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element over `axis` (see `sum`)."""
    return _reduce(data, axis, keepdims, te.max, "T_max")


def min(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element over `axis` (see `sum`)."""
    return _reduce(data, axis, keepdims, te.min, "T_min")


def prod(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product over `axis` (see `sum`)."""
    return _reduce(data, axis, keepdims, prod_reducer, "T_prod")


def all(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether every element over `axis` is true (see `sum`)."""
    return _reduce(data, axis, keepdims, all_reducer, "T_all", arithmetic.to_bool)


def any(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Whether some element over `axis` is true (see `sum`)."""
    return _reduce(data, axis, keepdims, any_reducer, "T_any", arithmetic.to_bool)


def argmax(data: Tensor, axis: Any = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
    """The int32 index of the largest element over `axis`; over several axes the index into them, flattened.

    Of equal elements the first counts, or with `select_last_index` the last.
    """
    return _arg_reduce(data, axis, keepdims, select_last_index, "T_argmax", True)


def argmin(data: Tensor, axis: Any = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
    """The int32 index of the smallest element over `axis` (see `argmax`)."""
    return _arg_reduce(data, axis, keepdims, select_last_index, "T_argmin", False)


def _reduce(
    data: Tensor,
    axis: Any,
    keepdims: bool,
    reducer: Reducer,
    name: str,
    prepare: Callable[[PrimExpr], PrimExpr] | None = None,
) -> Tensor:
    axes = positive_axes(name.removeprefix("T_"), axis, data.ndim)
    if not axes:
        # A tensor of its own, as every operator makes: the input itself would be no result that a function can compute.
        return compute(data.shape, lambda *i: prepare(data(*i)) if prepare else data(*i), name, tag.ELEMWISE)
    over = reduce_axes(data, axes)

    def body(*i: Var) -> PrimExpr:
        element = data(*full_index(data.ndim, axes, over, i, keepdims))
        return reducer(prepare(element) if prepare else element, axis=over)

    return compute(result_shape(data, axes, keepdims), body, name, tag.COMM_REDUCE)


def first_extreme(data: Tensor, axis: Any, keepdims: bool, largest: bool) -> Tensor:
    """As `argmax` or `argmin`; where there are NaN, the index of the first one, as of NumPy."""
    return _arg_reduce(data, axis, keepdims, False, "T_argmax" if largest else "T_argmin", largest, parse_dtype(data.dtype).is_float)


def _arg_reduce(data: Tensor, axis: Any, keepdims: bool, select_last: bool, name: str, largest: bool, nan_first: bool = False) -> Tensor:
    axes = positive_axes(name.removeprefix("T_"), axis, data.ndim)
    over = reduce_axes(data, axes)
    reducer = _arg_reducer(largest, select_last, nan_first)

    def body(*i: Var) -> tuple[PrimExpr, ...]:
        position: PrimExpr = const(0, "int32")
        for number, own in zip(axes, over, strict=True):
            position = position * data.shape[number] + own.var
        element = data(*full_index(data.ndim, axes, over, i, keepdims))
        pair: tuple[PrimExpr, ...] = reducer((position, element), axis=over)
        return pair

    shape = result_shape(data, axes, keepdims)
    position, _ = compute(shape, body, f"{name}_red_temp", tag.COMM_REDUCE_IDX)
    return compute(shape, lambda *i: position(*i), f"{name}_red", tag.COMM_REDUCE_IDX)


def _arg_reducer(largest: bool, select_last: bool, nan_first: bool = False) -> Callable[..., Any]:
    def combine(a: Sequence[PrimExpr], b: Sequence[PrimExpr]) -> tuple[PrimExpr, PrimExpr]:
        better = a[1] > b[1] if largest else a[1] < b[1]
        preferred = a[0] > b[0] if select_last else a[0] < b[0]
        keep = arithmetic.logical_or(better, arithmetic.logical_and(arithmetic.convert(a[1] == b[1]), preferred))
        return intrin.select(keep, a[0], b[0]), intrin.select(keep, a[1], b[1])

    def identity(index_dtype: str, dtype: str) -> tuple[PrimExpr, PrimExpr]:
        # An index that loses against every real one, so that infinite elements keep theirs.
        index = const(-1, index_dtype) if select_last else intrin.max_value(index_dtype)
        return index, _worst(dtype, largest)

    ordered = (FIRST_GREATEST if largest else FIRST_LEAST).combine
    return te.comm_reducer(ordered if nan_first else combine, identity, name="argmax" if largest else "argmin")


def _worst(dtype: str, largest: bool) -> PrimExpr:
    if dtype.startswith(("float", "bfloat")):
        return arithmetic.negate(intrin.infinity(dtype)) if largest else intrin.infinity(dtype)
    return intrin.min_value(dtype) if largest else intrin.max_value(dtype)


def reduce_axes(data: Tensor, axes: Sequence[int]) -> list[IterVar]:
    """Fresh reduction axes k0, k1, ... over the given axes of a tensor."""
    return [te.reduce_axis((0, data.shape[axis]), name=f"k{axis}") for axis in axes]


def full_index(ndim: int, axes: Sequence[int], over: Sequence[IterVar], rest: Sequence[Var], keepdims: bool = False) -> list[PrimExpr]:
    """Indices of the reduced tensor: `over` at `axes`, the result's indices elsewhere."""
    reduced = {axis: own.var for axis, own in zip(axes, over, strict=True)}
    others = iter(index for number, index in enumerate(rest) if not (keepdims and number in reduced))
    return [reduced[axis] if axis in reduced else next(others) for axis in range(ndim)]


def result_shape(data: Tensor, axes: Sequence[int], keepdims: bool) -> tuple[Any, ...]:
    """The shape after the reduction."""
    kept = [1 if axis in axes else extent_value(extent) for axis, extent in enumerate(data.shape)]
    return tuple(extent for axis, extent in enumerate(kept) if keepdims or axis not in axes)
