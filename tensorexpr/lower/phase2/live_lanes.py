"""Which lanes of a vector run where each of them is decided, and vectors of only these.

    for o in 31..33: Y[o*5 : o*5 + 6] = f(A[0], A[16], ..., A[80]) where o + 2*lane < 41
 -> for o in 31..33: Y[o*5 : o*5 + 5] = f(A[0], A[16], ..., A[64])

Tiles of two sizes come to this: where the smaller ones have a loop of their own, five of six lanes run in all of its iterations.
"""

from __future__ import annotations

from collections.abc import Callable

from ...arith.analyzer import Analyzer
from ...dataclass import dataclass
from ...tir.arithmetic import add, compare, multiply
from ...tir.dtype import parse_dtype, scalar_dtype, with_lanes
from ...tir.expr import (
    GE,
    GT,
    LE,
    LT,
    BinaryExpr,
    Broadcast,
    BufferLoad,
    Cast,
    CmpExpr,
    IntImm,
    PrimExpr,
    Ramp,
    Select,
    Var,
)
from ...tir.stmt import BufferStore
from ..lanes import lane_binary
from ..rebuild import map_expr, operands

_OPPOSITE: dict[type[CmpExpr], type[CmpExpr]] = {LT: GE, GE: LT, LE: GT, GT: LE}


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes of [first, end) run, and no others of `count`."""

    first: int
    end: int
    count: int

    @property
    def all(self) -> bool:
        """True if every lane runs."""
        return self.first == 0 and self.end == self.count

    def both(self, other: Lanes) -> Lanes:
        """The lanes that run here and there."""
        first = max(self.first, other.first)
        return Lanes(first, max(first, min(self.end, other.end)), self.count)

    def mask(self) -> PrimExpr | None:
        """The lanes as a constant vector of bools; None for lanes in the middle, which are no one comparison."""
        numbers = Ramp(IntImm("int32", 0), IntImm("int32", 1), self.count)
        if self.first == 0:
            return LT(numbers, Broadcast(IntImm("int32", self.end), self.count))
        return GE(numbers, Broadcast(IntImm("int32", self.first), self.count)) if self.end == self.count else None


@dataclass(frozen=True, slots=True)
class RampOrder:
    """An order between a ramp and one value. It changes once at most: what holds in the first and the last lane holds in all."""

    op: type[CmpExpr]
    ramp: Ramp
    bound: PrimExpr
    analyzer: Analyzer

    def holds(self, lane: int) -> bool:
        """Whether it is known to hold in a lane."""
        return self._known(lane, self.op)

    def fails(self, lane: int) -> bool:
        """Whether it is known not to hold in a lane."""
        return self._known(lane, _OPPOSITE[self.op])

    def _known(self, lane: int, op: type[CmpExpr]) -> bool:
        value = add(self.ramp.base, multiply(self.ramp.stride, IntImm(self.ramp.stride.dtype, lane)))
        return self.analyzer.known_true(compare(op, value, self.bound))


def ramp_order(condition: PrimExpr, analyzer: Analyzer) -> RampOrder | None:
    """A condition as an order between a ramp and one value, if that is what it is."""
    match condition:
        case LT(Ramp() as ramp, Broadcast(bound)) | LE(Ramp() as ramp, Broadcast(bound)):
            return RampOrder(type(condition), ramp, bound, analyzer)
        case GT(Ramp() as ramp, Broadcast(bound)) | GE(Ramp() as ramp, Broadcast(bound)):
            return RampOrder(type(condition), ramp, bound, analyzer)
    return None


def live_lanes(condition: PrimExpr, analyzer: Analyzer) -> Lanes | None:
    """The lanes in which a comparison of a ramp with one value holds; None where some lane isn't decided."""
    if isinstance(condition, Broadcast) and isinstance(condition.lanes, int):
        return Lanes(0, condition.lanes, condition.lanes) if analyzer.known_true(condition.value) else None
    order = ramp_order(condition, analyzer)
    if order is None:
        return None
    count = order.ramp.lanes
    begins, ends = order.holds(0), order.holds(count - 1)
    if begins and ends:
        return Lanes(0, count, count)
    if begins:
        # Between the lanes that surely run and those that surely don't may be some of which nothing is known.
        end = _boundary(order.holds, count - 1)
        return Lanes(0, end, count) if order.fails(end) else None
    if ends:
        first = _boundary(order.fails, count - 1)
        return Lanes(first, count, count) if first and order.holds(first) else None
    return None


def _boundary(holds: Callable[[int], bool], last: int) -> int:
    """The first lane up to `last` for which something isn't known, if it is known for all lanes before that one only."""
    # Known lanes come first, so bisection finds the end with log2(lanes) proofs.
    low, high = 0, last
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if holds(middle) else (low, middle)
    return low


def shortened(store: BufferStore, lanes: Lanes, kept: frozenset[Var]) -> BufferStore | None:
    """The store of the lanes that run, without a mask; None if its value has no such form.

    Args:
        kept: storage whose vectors stay whole, as they will be registers.
    """
    # Lanes from a later one on would move the base of every ramp; they keep a constant mask.
    if lanes.first or lanes.end in (0, lanes.count) or len(store.indices) != 1:
        return None
    index, value = _shortened(store.indices[0], lanes, kept), _shortened(store.value, lanes, kept)
    return None if index is None or value is None else BufferStore(store.buffer, value, (index,))


def _shortened(expr: PrimExpr, lanes: Lanes, kept: frozenset[Var]) -> PrimExpr | None:
    """The first lanes of a vector of elementwise operations; a scalar stays."""
    have = parse_dtype(expr.dtype).lanes
    if have != lanes.count:
        return expr if have == 1 else None
    match expr:
        case Ramp(base, stride):
            return base if lanes.end == 1 else Ramp(base, stride, lanes.end)
        case Broadcast(value):
            return value if lanes.end == 1 else Broadcast(value, lanes.end)
        # A part of what will be a register is a second width, which would keep it in memory.
        case BufferLoad(buffer, (Ramp(_, IntImm(_, 1)),)) if buffer.data in kept:
            return None
        case BufferLoad(buffer, _) if parse_dtype(buffer.dtype).lanes > 1:
            return None  # an element is a whole vector
        case Cast(dtype, value):
            inner = _shortened(value, lanes, kept)
            return None if inner is None else Cast(with_lanes(scalar_dtype(dtype), lanes.end), inner)
        case BinaryExpr() | CmpExpr() | Select() | BufferLoad():
            parts = [_shortened(operand, lanes, kept) for operand in operands(expr)]
            found = [part for part in parts if part is not None]
            if len(found) < len(parts):
                return None
            if isinstance(expr, BinaryExpr) and parse_dtype(expr.dtype).is_int:
                return lane_binary(type(expr), *found)  # fewer lanes may lie in one block of a quotient
            # `map_expr` asks for the operands in their order, once each.
            made = iter(found)
            shorter = map_expr(expr, lambda _: next(made))
            if isinstance(shorter, BufferLoad) and isinstance(shorter.indices[0], Broadcast) and shorter.predicate is None:
                return Broadcast(BufferLoad(shorter.buffer, (shorter.indices[0].value,)), lanes.end)
            return shorter
    return None
