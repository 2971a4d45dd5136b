"""Sequences and optionals. A sequence is a tuple of the machine, whose elements are known one by one where its length is known; an
optional is its value, or None. All run on the host; what is known when a graph is made needs none of them: it is tuples and elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ...errors import ArgumentError, DeclarationError
from ...tir.arithmetic import as_int
from ..relations import struct_info_lca
from ..struct_info import ObjectStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from .row import Expr, Exprs, indices_of, operator, tensor


def elements_of(sequence: Any, name: str) -> tuple[StructInfo, ...] | None:
    """What is known of the elements of a sequence; None if not even how many there are.

    Raises:
        DeclarationError: for what is no sequence.
    """
    info = sequence.struct_info
    if isinstance(info, TupleStructInfo):
        return info.fields
    if not isinstance(info, ObjectStructInfo):
        raise DeclarationError(f"relax.op.{name}: a sequence is a tuple, not {info}")
    return None


def _any_of(infos: Sequence[StructInfo]) -> StructInfo:
    """What is known of one of several values."""
    return reduce(struct_info_lca, infos) if infos else ObjectStructInfo()


def _place(sequence: Any, position: Any, name: str, beyond: int = 0) -> int:
    """A position counted from the front.

    Raises:
        ArgumentError: for one that there isn't.
    """
    count, place = len(sequence) + beyond, int(np.asarray(position).reshape(()))
    if not -count <= place < count:
        raise ArgumentError(f"{name}: position {place} of a sequence of {len(sequence)}")
    return place % count


def _np_at(sequence: Any, position: Any) -> Any:
    return sequence[_place(sequence, position, "sequence_at")]


@operator("sequence_at", numpy=_np_at)
def sequence_at(sequence: Exprs, position: Expr) -> StructInfo:
    """An element of a sequence, whose positions count from the end if they are negative."""
    indices_of(position, "position")
    fields = elements_of(sequence, "sequence_at")
    return TensorStructInfo(None, "", ndim=-1) if fields is None else _any_of(fields)


def _np_insert(sequence: Any, element: Any, position: Any = None) -> Any:
    if position is None:
        return (*sequence, element)
    place = _place(sequence, position, "sequence_insert", beyond=int(np.all(np.asarray(position) >= 0)))  # behind the last one too
    return (*sequence[:place], element, *sequence[place:])


@operator("sequence_insert", numpy=_np_insert)
def sequence_insert(sequence: Exprs, element: Expr, position: Expr | None = None) -> StructInfo:
    """A sequence with one more element, at a position or at the end."""
    fields = elements_of(sequence, "sequence_insert")
    if position is not None:
        indices_of(position, "position")
    if fields is None:
        return ObjectStructInfo()
    one = element.struct_info
    # At a position that isn't known each element may be the new one.
    return TupleStructInfo((*fields, one) if position is None else (_any_of([*fields, one]),) * (len(fields) + 1))


def _np_erase(sequence: Any, position: Any = None) -> Any:
    place = _place(sequence, -1 if position is None else position, "sequence_erase")
    return (*sequence[:place], *sequence[place + 1 :])


@operator("sequence_erase", numpy=_np_erase)
def sequence_erase(sequence: Exprs, position: Expr | None = None) -> StructInfo:
    """A sequence without an element, the last one without a position."""
    fields = elements_of(sequence, "sequence_erase")
    if fields == ():
        raise DeclarationError("relax.op.sequence_erase: the sequence is empty")
    if fields is None:
        return ObjectStructInfo()
    return TupleStructInfo(fields[:-1] if position is None else (_any_of(fields),) * (len(fields) - 1))


@operator("sequence_length", numpy=lambda sequence: np.asarray(len(sequence), np.int64))
def sequence_length(sequence: Exprs) -> StructInfo:
    """How many elements a sequence has: int64 ()."""
    elements_of(sequence, "sequence_length")
    return TensorStructInfo((), "int64")


def _np_concat(sequence: Any, axis: int, new_axis: bool) -> Any:
    return np.stack(sequence, axis) if new_axis else np.concatenate(sequence, axis)


@operator("sequence_concat", numpy=_np_concat)
def sequence_concat(sequence: Exprs, axis: int = 0, new_axis: bool = False) -> StructInfo:
    """The tensors of a sequence one after the other along an axis, or along a new one."""
    fields = elements_of(sequence, "sequence_concat")
    common = None if fields is None else _any_of(fields)
    if not isinstance(common, TensorStructInfo):
        return TensorStructInfo(None, "", ndim=-1)
    return TensorStructInfo(None, common.dtype, ndim=-1 if common.ndim == -1 else common.ndim + new_axis)


def _np_split(x: Any, sizes: Any, axis: int) -> Any:
    if not sizes.ndim:
        return tuple(np.split(x, range(int(sizes), x.shape[axis], int(sizes)), axis))
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


@operator("sequence_split", numpy=_np_split)
def sequence_split(x: Expr, sizes: Expr, axis: int = 0) -> StructInfo:
    """The parts of a tensor along an axis, of one size, the last of which may be smaller, or of sizes."""
    operand, parts = tensor(x, "x"), indices_of(sizes, "sizes")
    operand.axis(axis)
    count = as_int(parts.extents[0]) if parts.extents else None
    return ObjectStructInfo() if count is None else TupleStructInfo((operand.like(None, ndim=operand.ndim),) * count)


@operator("null_value", numpy=lambda: None)
def null_value() -> StructInfo:
    """An optional without a value."""
    return ObjectStructInfo()


@operator("has_value", numpy=lambda x=None: np.asarray(x is not None))
def has_value(x: Expr) -> StructInfo:
    """Whether an optional has a value: bool ()."""
    return TensorStructInfo((), "bool")
