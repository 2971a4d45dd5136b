"""Sparse tensors as places and values: places are rows of `sparse_indices`. What depends on values runs on the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import DeclarationError
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .row import Expr, Operand, indices_of, operator, tensor


def _places(name: str, sparse_indices: Expr, *shapes: tuple[str, Expr]) -> Operand:
    """The places, of one row each, beside shapes as tensors.

    Raises:
        DeclarationError: for other ranks.
    """
    found = indices_of(sparse_indices, "sparse_indices")
    if found.ndim not in (-1, 2) or any(indices_of(one, what).ndim not in (-1, 1) for what, one in shapes):
        given = ", ".join(f"{what} is {one.struct_info}" for what, one in (("sparse_indices", sparse_indices), *shapes))
        raise DeclarationError(f"relax.op.{name}: places are rows and shapes have one axis; {given}")
    return found


def _np_fill(sparse_indices: Any, sparse_values: Any, dense_shape: Any, default_value: Any) -> Any:
    is_empty = np.ones(int(dense_shape[0]), bool)
    is_empty[sparse_indices[:, 0]] = False
    added = np.flatnonzero(is_empty)
    places = np.zeros((len(added), sparse_indices.shape[1]), sparse_indices.dtype)
    places[:, :1] = added[:, None]
    rows = np.concatenate((sparse_indices, places))
    # Stable: within a row places stay in their order.
    order = np.argsort(rows[:, 0], kind="stable")
    fillers = np.full(len(added), np.ravel(default_value)[0], sparse_values.dtype)
    return rows[order], np.concatenate((sparse_values, fillers))[order], is_empty


@operator("sparse_fill_empty_rows", numpy=_np_fill)
def sparse_fill_empty_rows(sparse_indices: Expr, sparse_values: Expr, dense_shape: Expr, default_value: Expr) -> StructInfo:
    """A sparse tensor that has a value in each row: places by their rows, values, and whether each row was empty.

    Args:
        sparse_indices: [n, axes] of integers.
        sparse_values: [n].
        dense_shape: [axes].
        default_value: one element, which empty rows get in their first place.
    """
    places = _places("sparse_fill_empty_rows", sparse_indices, ("dense_shape", dense_shape))
    values = tensor(sparse_values, "sparse_values")
    return TupleStructInfo((places.like(None, ndim=2), values.like(None, ndim=1), TensorStructInfo(None, "bool", ndim=1)))


def _np_reshape(sparse_indices: Any, prev_shape: Any, new_shape: Any) -> Any:
    new, count = [int(one) for one in new_shape], math.prod(int(one) for one in prev_shape)
    if -1 in new:
        rest = math.prod(one for one in new if one != -1)
        new[new.index(-1)] = count // rest if rest else 0
    flat = sparse_indices.astype(np.int64) @ _steps([int(one) for one in prev_shape])
    rows = flat[:, None] // _steps(new) % np.asarray([count, *new[1:]] if new else [])
    return rows.astype(sparse_indices.dtype), np.asarray(new).astype(new_shape.dtype)


def _steps(shape: list[int]) -> Any:
    """How many elements the neighbours along each axis are apart."""
    return np.asarray([math.prod(shape[n + 1 :]) for n in range(len(shape))], np.int64)


@operator("sparse_reshape", numpy=_np_reshape)
def sparse_reshape(sparse_indices: Expr, prev_shape: Expr, new_shape: Expr) -> StructInfo:
    """The places of a sparse tensor's values in another shape, and that shape, in which -1 was what is left.

    Args:
        sparse_indices: [n, axes] of integers.
        prev_shape: [axes].
        new_shape: [new axes], one of which may be -1.
    """
    places = _places("sparse_reshape", sparse_indices, ("prev_shape", prev_shape), ("new_shape", new_shape))
    new = tensor(new_shape, "new_shape")
    known = places.extents is not None and new.extents is not None
    return TupleStructInfo((places.like([places.extents[0], new.extents[0]] if known else None, ndim=2), new.info))  # type: ignore[index]
