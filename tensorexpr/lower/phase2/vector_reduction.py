"""A vectorised reduction: all lanes are combined into one value, by halves, and that value into the accumulator.

    for k in vectorized(16): C[i] = C[i] + f(k)    ->    C[i] = C[i] + sum of the lanes of f, as ((8 + 8) -> (4 + 4) -> ...)

The schedule allowed another order of the terms when it marked the loop (`VECTOR_REDUCTION`); other loops whose lanes
store to one element run one after the other.
"""

from __future__ import annotations

from math import copysign, inf

from ...tir.expr import BufferLoad, FloatImm, PrimExpr, Select, Shuffle, Var
from ...tir.reduction_laws import Law
from ...tir.stmt import BufferStore, For, LetStmt, Stmt
from ..lanes import broadcast, lanes_of
from ..pragmas import VECTOR_REDUCTION


def is_reduction(loop: For) -> bool:
    """True for a vector loop whose terms may be combined in any order."""
    return bool(loop.annotations.get(VECTOR_REDUCTION))


def combined(stmt: BufferStore, index: PrimExpr, law: Law, lanes: PrimExpr, mask: PrimExpr | None) -> Stmt:
    """The accumulation of all `lanes`, those outside `mask` left out."""
    dtype = stmt.buffer.dtype
    if mask is not None:
        count = lanes_of(lanes)
        # Lanes outside of the mask are anything; the neutral value drops out of the combination.
        lanes = Select(mask, lanes, broadcast(_neutral(law, dtype), count))

    def both(left: PrimExpr, right: PrimExpr) -> PrimExpr:
        return law.combine((left,), (right,))[0]

    bindings: list[tuple[Var, PrimExpr]] = []
    rest: list[PrimExpr] = []
    while (count := lanes_of(lanes)) > 1:
        # Bound, as both halves are picked out of it: else it would be computed once for each.
        whole = Var("lanes", lanes.dtype)
        bindings.append((whole, lanes))
        half = count // 2
        # Of 7 lanes, 3 and 3 are combined; the odd one waits for the end.
        if count % 2:
            rest.append(Shuffle((whole,), (count - 1,)))
        lanes = both(Shuffle((whole,), tuple(range(half))), Shuffle((whole,), tuple(range(half, 2 * half))))
    for value in rest:
        lanes = both(lanes, value)
    result: Stmt = BufferStore(stmt.buffer, both(BufferLoad(stmt.buffer, (index,)), lanes), (index,))
    for var, value in reversed(bindings):
        result = LetStmt(var, value, result)
    return result


def _neutral(law: Law, dtype: str) -> PrimExpr:
    """The value that changes nothing: for extrema the infinity that loses against everything."""
    neutral = law.neutral[0]
    assert neutral is not None
    value = neutral(dtype)
    # The neutral values of sums and products are 0 and 1; those of extrema are the dtype's bounds, beyond which lie infinities.
    return FloatImm(dtype, copysign(inf, value.value)) if isinstance(value, FloatImm) and abs(value.value) > 1 else value
