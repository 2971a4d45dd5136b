"""Stores: ``A[i] = value`` for any value that can be made an element of A."""

from __future__ import annotations

from typing import Any

from ...tir.arithmetic import cast, const
from ...tir.buffer import Buffer
from ...tir.expr import PrimExpr
from ...tir.stmt import BufferStore
from .values import Number, as_expr


def store(buffer: Buffer, indices: tuple[PrimExpr, ...], value: Any, predicate: PrimExpr | None = None) -> BufferStore:
    """The statement that stores `value`; numbers and values of another type are converted, scalars fill vectors."""
    wanted = buffer.access_dtype(indices)
    worth = const(value, wanted) if isinstance(value, Number) else cast(as_expr(value), wanted)
    return BufferStore(buffer, worth, indices, predicate)
