"""Constant bounds and congruences."""

from __future__ import annotations

import pytest

from tensorexpr.arith import ConstIntBound, ModularSet
from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.tir import arithmetic as op
from tensorexpr.tir import bitwise, intrin
from tensorexpr.tir.expr import Cast, FloorDiv, FloorMod, IntImm, PrimExpr, Range, Select, SizeVar, Var

x, y = Var("x"), Var("y")
n = SizeVar("n")
free = Var("free")
byte = Var("byte", "uint8")
wide = Var("wide", "int64")
RANGES = {
    x: Range.from_min_extent(-3, 8),
    y: Range.from_min_extent(2, 5),
    byte: Range.from_min_extent(IntImm("uint8", 200), IntImm("uint8", 50)),
}
INT32 = (-(1 << 31), (1 << 31) - 1)


@pytest.mark.parametrize(
    ("expr", "low", "high"),
    [
        (x + y, -1, 10),
        (x - y * 2, -15, 0),
        (x * y, -18, 24),
        (x // 2, -2, 2),
        (op.truncdiv(x, 2), -1, 2),
        (x // y, -2, 2),
        (x % 4, 0, 3),
        (y % 8, 2, 6),
        (x % -3, -2, 0),
        (op.truncmod(x, 3), -2, 2),
        (op.minimum(x, y), -3, 4),
        (op.maximum(x, 1), 1, 4),
        (Select(x < 0, x, y), -3, 6),
        (free, *INT32),
        (free + 1, *INT32),  # it may wrap
        (n, 0, INT32[1]),
        (n + 1, 1, INT32[1]),  # a size doesn't
        (free // 16, -(1 << 27), (1 << 27) - 1),
        (byte + byte, 0, 255),
        (Cast("int32", byte) + Cast("int32", byte), 400, 498),
        (Cast("int8", byte), -128, 127),
        (bitwise.shift_right(y, 1), 1, 3),
        (bitwise.bitwise_and(free, 7), 0, 7),
        (intrin.likely(x < 2), 0, 1),
        (wide, ConstIntBound.NEG_INF, ConstIntBound.POS_INF),
        (FloorDiv(x, IntImm("int32", 0)), *INT32),
        (FloorMod(x, IntImm("int32", 0)), *INT32),
        (IntImm("int32", INT32[0]) // IntImm("int32", -1), *([INT32[0]] * 2)),  # as the machine wraps
    ],
)
def test_constant_bounds(expr: PrimExpr, low: int, high: int) -> None:
    assert Analyzer(RANGES).const_int_bound(expr) == ConstIntBound(low, high)


def test_bounds_of_symbolic_ranges() -> None:
    io, ii = Var("io"), Var("ii")
    analyzer = Analyzer({io: Range.from_min_extent(0, n // 32), ii: Range.from_min_extent(0, op.minimum(n, 32))})
    assert analyzer.const_int_bound(io) == ConstIntBound(0, (1 << 26) - 2)
    assert analyzer.const_int_bound(ii) == ConstIntBound(0, 31)


def test_constraints_tighten_bounds_while_they_last() -> None:
    analyzer = Analyzer(RANGES)
    with analyzer.constraint_scope(intrin.likely(op.logical_and(x * 2 + y < 5, free >= 1))):
        assert analyzer.const_int_bound(x) == ConstIntBound(-3, 1)
        assert analyzer.const_int_bound(free).min_value == 1
        with analyzer.constraint_scope(op.logical_not(x < 1)):
            assert analyzer.const_int_bound(x) == ConstIntBound(1, 1)
    assert analyzer.const_int_bound(x) == ConstIntBound(-3, 4)


def test_contradictory_constraints_are_survived() -> None:
    analyzer = Analyzer(RANGES)
    with analyzer.constraint_scope(x > 100):
        bound = analyzer.const_int_bound(x + 1)
        assert bound.min_value <= bound.max_value


@pytest.mark.parametrize(
    ("expr", "coeff", "base"),
    [
        (x * 4 + 2, 4, 2),
        (x * 6 + y * 4 + 1, 2, 1),
        (free * 12, 12, 0),
        (byte * op.const(3, "uint8"), 1, 0),  # wraps at 256
        (byte * op.const(4, "uint8"), 4, 0),
        (op.minimum(x * 4, y * 6), 2, 0),
        ((x * 8 + 4) // 4, 2, 1),
        ((x * 8 + 5) % 4, 0, 1),
        ((x * 5) // 2, 1, 0),  # 0, 2 and 5 have no divisor in common
        (op.truncdiv(y * 4 + 1, 2), 2, 0),
        (op.truncdiv(x * 4, 2), 2, 0),
        (op.truncdiv(x * 4 + 1, 2), 1, 0),  # of -3 it is -1: what is below 0 rounds the other way
        (IntImm("int32", 7), 0, 7),
        (x, 1, 0),
        (Select(free < 0, x * 4 + 1, y * 4 + 3), 2, 1),  # the values of the two arms differ too
        (Select(free < 0, IntImm("int32", 1), IntImm("int32", 2)), 1, 0),
    ],
)
def test_congruences(expr: PrimExpr, coeff: int, base: int) -> None:
    assert Analyzer(RANGES).modular_set(expr) == ModularSet(coeff, base)


def test_a_remainder_known_from_a_condition() -> None:
    analyzer = Analyzer()
    with analyzer.constraint_scope(free % 8 == 3):
        assert analyzer.modular_set(free * 2 + 1) == ModularSet(16, 7)
        assert analyzer.known_divisible(free + 1, 4)
        assert str(analyzer.simplify((free + 1) % 8)) == "4"
    assert not analyzer.known_divisible(free + 1, 4)
