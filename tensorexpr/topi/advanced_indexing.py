"""Indexing by several tensors, sums back to a smaller shape, slices whose bounds are tensors, constants as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DeclarationError
from ..te.tensor import Tensor
from ..tir import arithmetic, intrin
from ..tir.arithmetic import const
from ..tir.expr import PrimExpr, Var
from .indexing import _wrapped
from .reduction import sum as sum_over
from .transform import injective, reshape
from .utils import equal_const_int, extent_value, shape_text


def adv_index(data: Tensor, indices: Sequence[Tensor]) -> Tensor:
    """data[indices[0], indices[1], ...], as NumPy's indexing by arrays: the indices are broadcast together.

    Args:
        data: of at least as many dimensions as there are indices.
        indices: integers; they index the first dimensions, negative ones from the end. Beyond the ends the nearest element is read.

    Returns:
        A tensor of the broadcast shape and the dimensions of `data` that are left.

    Raises:
        DeclarationError: for more indices than dimensions, or indices that don't broadcast.
    """
    if not indices or len(indices) > data.ndim:
        raise DeclarationError(f"adv_index: {len(indices)} indices for the {data.ndim} dimensions of {data.name}")
    rank = max(index.ndim for index in indices)
    shared = tuple(_shared_extent(indices, rank, dim) for dim in range(rank))

    def body(*i: Var) -> PrimExpr:
        at = []
        for index, extent in zip(indices, data.shape, strict=False):
            own = i[rank - index.ndim : rank]
            chosen = index(*(const(0) if equal_const_int(e, 1) else a for a, e in zip(own, index.shape, strict=True)))
            at.append(_wrapped(chosen, extent))
        return data(*at, *i[rank:])

    return injective((*shared, *data.shape[len(indices) :]), body, "advanced_index")


def _shared_extent(indices: Sequence[Tensor], rank: int, dim: int) -> Any:
    """The extent that dimension `dim` of the broadcast indices has."""
    own = [index.shape[dim - (rank - index.ndim)] for index in indices if dim >= rank - index.ndim]
    larger = [extent for extent in own if not equal_const_int(extent, 1)]
    if len({extent_value(extent) for extent in larger if isinstance(extent_value(extent), int)}) > 1:
        raise DeclarationError(f"adv_index: the shapes {', '.join(map(shape_text, indices))} don't broadcast")
    return larger[0] if larger else own[0]


def collapse_sum(data: Tensor, target_shape: Sequence[Any]) -> Tensor:
    """`data` summed over what broadcasting `target_shape` to its shape repeats: the gradient of a broadcast.

    Raises:
        DeclarationError: for a shape that doesn't broadcast to that of `data`.
    """
    target = tuple(target_shape)
    missing = data.ndim - len(target)
    axes = [*range(max(missing, 0))]
    for n, (own, wanted) in enumerate(zip(data.shape[max(missing, 0) :], target, strict=False)):
        x, y = extent_value(own), extent_value(wanted)
        if x != y and y != 1:
            # A mark, no axis: the shapes don't fit.
            axes = [-1]
            break
        if x != y:
            axes.append(missing + n)
    if missing < 0 or -1 in axes:
        raise DeclarationError(f"collapse_sum: the shape {list(target)} doesn't broadcast to {shape_text(data)}")
    return reshape(sum_over(data, axis=axes) if axes else data, target)


def dynamic_strided_slice(a: Tensor, begin: Tensor, end: Tensor, strides: Tensor, output_shape: Sequence[Any]) -> Tensor:
    """`a[begin:end:stride]` with bounds that are only known when the program runs.

    Args:
        a: of any shape.
        begin, end, strides: tensors of one dimension with an element for each axis; negative bounds count from the end.
        output_shape: extents of the result.

    Returns:
        A tensor of output_shape.
    """
    del end  # it has made the output's shape

    def body(*i: Var) -> PrimExpr:
        at = []
        for dim, index in enumerate(i):
            extent, step = arithmetic.cast(a.shape[dim], begin.dtype), arithmetic.cast(strides(dim), begin.dtype)
            first = intrin.select(begin(dim) < 0, begin(dim) + extent, begin(dim))
            first = arithmetic.minimum(arithmetic.maximum(first, 0), intrin.select(step > 0, extent, extent - 1))
            place = first + arithmetic.cast(index, begin.dtype) * step
            at.append(arithmetic.maximum(arithmetic.minimum(place, extent - 1), 0))
        return a(*at)

    return injective(tuple(output_shape), body, "T_strided_slice_dynamic")


def const_vector(vector: Any, name: str = "const_vector") -> Tensor:
    """A vector of given numbers, written into the program: for few elements."""
    values = np.asarray(vector)
    if values.ndim != 1:
        raise DeclarationError(f"const_vector takes one dimension, not {values.ndim}")
    dtype = str(values.dtype)

    def body(i: Var) -> PrimExpr:
        chosen: PrimExpr = const(0, dtype)
        for number, value in reversed([*enumerate(values.tolist())]):
            chosen = intrin.select(arithmetic.convert(i == number), const(value, dtype), chosen)
        return chosen

    return injective((len(values),), body, name)


def const_matrix(matrix: Any, name: str = "const_matrix", attrs: Any = None) -> Tensor:
    """A matrix of given numbers, written into the program: for the small transforms of Winograd's algorithm.

    Args:
        matrix: numbers of two dimensions.
        name: of the operation.
        attrs: hints for schedulers.

    Raises:
        DeclarationError: for another rank.
    """
    from ..te.declare import compute

    values = np.asarray(matrix)
    if values.ndim != 2:
        raise DeclarationError(f"const_matrix takes two dimensions, not {values.ndim}")
    dtype = str(values.dtype)

    def body(i: Var, j: Var) -> PrimExpr:
        chosen: PrimExpr = const(0, dtype)
        # A chain of selects: with the constant indices of unrolled loops one number is left of it.
        for row, column in reversed([*np.ndindex(*values.shape)]):
            here = arithmetic.all(arithmetic.convert(i == row), arithmetic.convert(j == column))
            chosen = intrin.select(here, const(values[row, column].item(), dtype), chosen)
        return chosen

    return compute(values.shape, body, name, "injective", attrs={"const_matrix": True, **(attrs or {})})
