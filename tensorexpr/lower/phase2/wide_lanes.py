"""Vectors of a few lanes less than a register, as whole registers whose last lanes nobody stores.

LLVM takes shuffles of 14 lanes apart into many of 16. Where a store of a column that was transposed in registers does
with the column, constants and contiguous loads, all of it is done in every lane of the register, and the store is masked.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...tir.dtype import parse_dtype
from ...tir.expr import LT, Add, Broadcast, BufferLoad, Div, IntImm, Max, Min, Mul, PrimExpr, Ramp, Sub
from ...tir.stmt import BufferStore


def wide_store(store: BufferStore, whole: Mapping[PrimExpr, PrimExpr]) -> BufferStore | None:
    """A masked store of whole registers, or None if the store does anything that can't be done in all their lanes.

    Args:
        whole: the registers whose first lanes certain vectors are.
    """
    (index,) = store.indices
    if store.predicate is not None or not isinstance(index, Ramp) or not _is_contiguous(index):
        return None
    widths = {parse_dtype(register.dtype).lanes for register in whole.values()}
    if len(widths) != 1:
        return None
    width, dtype = widths.pop(), index.base.dtype
    mask = LT(Ramp(IntImm(dtype, 0), IntImm(dtype, 1), width), Broadcast(IntImm(dtype, index.lanes), width))
    value = _widened(store.value, width, mask, whole)
    return None if value is None else BufferStore(store.buffer, value, (Ramp(index.base, index.stride, width),), mask)


def _is_contiguous(index: PrimExpr) -> bool:
    return isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value == 1


def _widened(expr: PrimExpr, width: int, mask: PrimExpr, whole: Mapping[PrimExpr, PrimExpr]) -> PrimExpr | None:
    """The expression in `width` lanes; loads leave out what the mask leaves out."""
    found = whole.get(expr)
    if found is not None:
        return found
    match expr:
        case Broadcast(value, _):
            return Broadcast(value, width)
        case BufferLoad(buffer, (Ramp(base, stride, _) as index,), None) if _is_contiguous(index):
            return BufferLoad(buffer, (Ramp(base, stride, width),), mask)
        case Add(a, b) | Sub(a, b) | Mul(a, b) | Div(a, b) | Max(a, b) | Min(a, b) if parse_dtype(expr.dtype).is_float:
            # The lanes behind the last one compute with whatever is there: floats don't trap, a division of integers may.
            left, right = _widened(a, width, mask, whole), _widened(b, width, mask, whole)
            return None if left is None or right is None else type(expr)(left, right)
    return None
