"""A vectorised reduction: all lanes are combined into one value, by halves, and that value into the accumulator.

    for k in vectorized(16): C[i] = C[i] + f(k)    ->    C[i] = C[i] + sum of the lanes of f, as ((8 + 8) -> (4 + 4) -> ...)

The schedule allowed another order of the terms when it marked the loop (`VECTOR_REDUCTION`); other loops whose lanes
store to one element run one after the other.
"""

from __future__ import annotations

from typing import Any

from ...tir.arithmetic import const, negate
from ...tir.expr import Add, And, BinaryExpr, BufferLoad, Max, Min, Mul, Or, PrimExpr, Select, Shuffle, Var
from ...tir.intrin import infinity, max_value, min_value
from ...tir.stmt import BufferStore, For, LetStmt, Stmt
from ..lanes import broadcast, lanes_of
from ..pragmas import VECTOR_REDUCTION

_OPERATORS: tuple[type[Any], ...] = (Add, Mul, Max, Min, And, Or)


def is_reduction(loop: For) -> bool:
    """True for a vector loop whose terms may be combined in any order."""
    return bool(loop.annotations.get(VECTOR_REDUCTION))


def accumulation(stmt: BufferStore) -> tuple[type[BinaryExpr], PrimExpr] | None:
    """The operator and the term of `C[i] = C[i] op term`, if the statement has that form and the term doesn't read C."""
    value = stmt.value
    if not isinstance(value, _OPERATORS):
        return None
    for old, term in ((value.a, value.b), (value.b, value.a)):
        if isinstance(old, BufferLoad) and old.buffer is stmt.buffer and old.indices == stmt.indices and old.predicate is None:
            return type(value), term
    return None


def combined(stmt: BufferStore, index: PrimExpr, operator: type[BinaryExpr], lanes: PrimExpr, mask: PrimExpr | None) -> Stmt:
    """The accumulation of all `lanes`, those outside `mask` left out."""
    dtype = stmt.buffer.dtype
    if mask is not None:
        count = lanes_of(lanes)
        lanes = Select(mask, lanes, broadcast(_neutral(operator, dtype), count))
    bindings: list[tuple[Var, PrimExpr]] = []
    rest: list[PrimExpr] = []
    while (count := lanes_of(lanes)) > 1:
        whole = Var("lanes", lanes.dtype)
        bindings.append((whole, lanes))
        half = count // 2
        if count % 2:
            rest.append(Shuffle((whole,), (count - 1,)))
        lanes = operator(Shuffle((whole,), tuple(range(half))), Shuffle((whole,), tuple(range(half, 2 * half))))
    for value in rest:
        lanes = operator(lanes, value)
    result: Stmt = BufferStore(stmt.buffer, operator(BufferLoad(stmt.buffer, (index,)), lanes), (index,))
    for var, value in reversed(bindings):
        result = LetStmt(var, value, result)
    return result


def _neutral(operator: type[BinaryExpr], dtype: str) -> PrimExpr:
    """The value that changes nothing: for extrema the infinity that loses against everything."""
    if operator in (Add, Or):
        return const(0, dtype)
    if operator in (Mul, And):
        return const(1, dtype)
    floating = dtype.startswith(("float", "bfloat"))
    if operator is Max:
        return negate(infinity(dtype)) if floating else min_value(dtype)
    return infinity(dtype) if floating else max_value(dtype)
