"""Arithmetic on vectors of indices: ramps stay ramps, scalars meet vectors by broadcasting."""

from __future__ import annotations

from ..tir.arithmetic import binary, cast, compare, fold
from ..tir.dtype import parse_dtype, with_lanes
from ..tir.expr import Add, BinaryExpr, Broadcast, CmpExpr, FloorDiv, FloorMod, IntImm, Mul, PrimExpr, Ramp, Sub


def lanes_of(expr: PrimExpr) -> int:
    """The number of lanes of a value."""
    return parse_dtype(expr.dtype).lanes


def broadcast(expr: PrimExpr, lanes: int) -> PrimExpr:
    """`expr` in every lane; a vector stays as it is."""
    return expr if lanes == 1 or lanes_of(expr) > 1 else Broadcast(expr, lanes)


def lane_cast(expr: PrimExpr, scalar: str) -> PrimExpr:
    """Every lane converted to an integer dtype; a ramp stays one (indices don't wrap)."""
    if isinstance(expr, Ramp):
        return Ramp(cast(expr.base, scalar), cast(expr.stride, scalar), expr.lanes)
    return cast(expr, with_lanes(scalar, lanes_of(expr)))


def ramp_binary(op: type[BinaryExpr], a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """`op` of two operands of which at least one has lanes, as a ramp or broadcast where the law of the operator gives one."""
    lanes = max(lanes_of(a), lanes_of(b))
    a = a.value if isinstance(a, Broadcast) else a
    b = b.value if isinstance(b, Broadcast) else b
    if lanes_of(a) == 1 and lanes_of(b) == 1:
        return Broadcast(binary(op, a, b), lanes)
    if parse_dtype(a.dtype).is_int:
        result = _ramp_law(op, a, b)
        if result is not None:
            return result
    made = op(broadcast(a, lanes), broadcast(b, lanes))
    folded = fold(made)
    return made if folded is None else folded


def _ramp_law(op: type[BinaryExpr], a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    if op in (Add, Sub):
        return _sum(op, a, b)
    if op is Mul:
        ramp, factor = (a, b) if isinstance(a, Ramp) else (b, a)
        if isinstance(ramp, Ramp) and lanes_of(factor) == 1:
            return _ramp(binary(Mul, ramp.base, factor), binary(Mul, ramp.stride, factor), ramp.lanes)
    if op in (FloorDiv, FloorMod) and isinstance(a, Ramp) and isinstance(b, IntImm) and isinstance(a.stride, IntImm) and b.value > 0:
        # Of constants that lie in one block of b the quotient is the first one's: (8 + i) // 12 in 4 lanes.
        if isinstance(a.base, IntImm) and a.base.value // b.value == (a.base.value + a.stride.value * (a.lanes - 1)) // b.value:
            first = binary(op, a.base, b)
            return Broadcast(first, a.lanes) if op is FloorDiv else _ramp(first, a.stride, a.lanes)
        # With s = q*b, (base + i*s) // b is base // b + i*q, and the remainder is the base's in every lane.
        if a.stride.value % b.value:
            return None
        if op is FloorMod:
            return Broadcast(binary(FloorMod, a.base, b), a.lanes)
        return _ramp(binary(FloorDiv, a.base, b), binary(FloorDiv, a.stride, b), a.lanes)
    return None


def _sum(op: type[BinaryExpr], a: PrimExpr, b: PrimExpr) -> PrimExpr | None:
    if isinstance(a, Ramp) and isinstance(b, Ramp):
        return _ramp(binary(op, a.base, b.base), binary(op, a.stride, b.stride), a.lanes)
    if isinstance(a, Ramp) and lanes_of(b) == 1:
        return Ramp(binary(op, a.base, b), a.stride, a.lanes)
    if isinstance(b, Ramp) and lanes_of(a) == 1:
        stride = b.stride if op is Add else binary(Sub, IntImm(b.stride.dtype, 0), b.stride)
        return Ramp(binary(op, a, b.base), stride, b.lanes)
    return None


def _ramp(base: PrimExpr, stride: PrimExpr, lanes: int) -> PrimExpr:
    return Broadcast(base, lanes) if isinstance(stride, IntImm) and stride.value == 0 else Ramp(base, stride, lanes)


def lane_binary(op: type[BinaryExpr], a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """`op` of scalars or vectors."""
    return binary(op, a, b) if lanes_of(a) == 1 and lanes_of(b) == 1 else ramp_binary(op, a, b)


def lane_compare(op: type[CmpExpr], a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """A comparison of scalars or vectors; a broadcast where no lane differs."""
    lanes = max(lanes_of(a), lanes_of(b))
    if lanes == 1:
        return compare(op, a, b)
    a = a.value if isinstance(a, Broadcast) else a
    b = b.value if isinstance(b, Broadcast) else b
    if lanes_of(a) == 1 and lanes_of(b) == 1:
        return Broadcast(compare(op, a, b), lanes)
    # A vector of different constants would cost a load where the comparison of two ramps is one instruction: only agreement folds.
    verdicts = _constant_lanes(op, a, b, lanes)
    if verdicts is not None and len(set(verdicts)) == 1:
        return Broadcast(IntImm("bool", int(verdicts[0])), lanes)
    return op(broadcast(a, lanes), broadcast(b, lanes))


def _constant_lanes(op: type[CmpExpr], a: PrimExpr, b: PrimExpr, lanes: int) -> list[bool] | None:
    left, right = _values(a, lanes), _values(b, lanes)
    if left is None or right is None:
        return None
    results = [compare(op, x, y) for x, y in zip(left, right, strict=True)]
    return [isinstance(r, IntImm) and r.value == 1 for r in results]


def _values(expr: PrimExpr, lanes: int) -> list[IntImm] | None:
    if isinstance(expr, IntImm):
        return [expr] * lanes
    if isinstance(expr, Ramp) and isinstance(expr.base, IntImm) and isinstance(expr.stride, IntImm):
        return [IntImm(expr.base.dtype, expr.base.value + i * expr.stride.value) for i in range(lanes)]
    return None
