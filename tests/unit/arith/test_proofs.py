"""Queries: True means proved, and loops over symbolic extents need to be."""

from __future__ import annotations

import pytest

from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.errors import DeclarationError
from tensorexpr.tir import arithmetic as op
from tensorexpr.tir import intrin
from tensorexpr.tir.expr import Cast, IntImm, PrimExpr, Range, SizeVar, Var

n, m = SizeVar("n"), SizeVar("m")
i, j, io, ii, jo = (Var(name) for name in ("i", "j", "io", "ii", "jo"))
free = Var("free")
RANGES = {
    i: Range.from_min_extent(0, n),
    j: Range.from_min_extent(0, m),
    io: Range.from_min_extent(0, (n + 31) // 32),
    ii: Range.from_min_extent(0, 32),
    jo: Range.from_min_extent(0, n // 32),
}


@pytest.mark.parametrize(
    "condition",
    [
        i < n,
        i + 1 <= n,
        io * 32 < n,
        io * 32 + ii < n + 31,
        io * 32 + ii < (n + 31) // 32 * 32,
        jo * 32 + ii < n,
        i * m + j < n * m,
        i * m + j >= 0,
        op.minimum(i, 5) <= i,
        op.maximum(i, j) >= j,
        op.minimum(n - io * 32, 32) > 0,
        i % 8 <= i,
        i // 8 <= i,
        n // 32 <= (n + 31) // 32,
        (n + 31) // 32 * 32 - n < 32,
        Cast("int64", i) * 4 < Cast("int64", n) * 4,
        op.logical_and(i < n, intrin.likely(j < m)),
        op.logical_not(i >= n),
        n * 4 != i * 4 + 1,
    ],
)
def test_proved(condition: PrimExpr) -> None:
    assert Analyzer(RANGES).known_true(condition)


@pytest.mark.parametrize(
    "condition",
    [
        io * 32 + ii < n,
        io * 32 + ii < n + 30,
        i < m,
        i > 0,
        n > 0,
        i * m + j < n * m - 1,
        free < free + 1,  # wraps at the largest int32
        free * 2 >= free,
        free + n < free + n + 1,
        op.minimum(i, 5) < i,
        op.logical_or(i < j, i > j),
        i != j,
        Cast("int8", i) == i,
    ],
)
def test_not_proved(condition: PrimExpr) -> None:
    analyzer = Analyzer(RANGES)
    assert not analyzer.known_true(condition)


def test_constraints_take_part() -> None:
    analyzer = Analyzer(RANGES)
    with analyzer.constraint_scope(intrin.likely(io * 32 + ii < n)):
        assert analyzer.known_less(io * 32 + ii, n)
        assert analyzer.known_less_equal(io * 32, n - 1)
        assert not analyzer.known_less(io * 32 + ii, n - 1)
        with analyzer.constraint_scope(n <= m):
            assert analyzer.known_less(io * 32 + ii, m)
    assert not analyzer.known_less(io * 32 + ii, n)


def test_equalities() -> None:
    analyzer = Analyzer(RANGES)
    assert analyzer.known_equal(n * 2 - n, n)
    assert analyzer.known_equal((i * m + j) // m, i)
    assert analyzer.known_equal(free * 4 - free * 3, free)
    assert analyzer.known_equal((n + m) * i, n * i + m * i)
    assert not analyzer.known_equal(n, m)
    with analyzer.constraint_scope(n == m):
        assert analyzer.known_equal(n + 1, m + 1)


def test_python_numbers_and_names_of_old() -> None:
    analyzer = Analyzer(RANGES)
    assert analyzer.can_prove_less(ii, 32)
    assert analyzer.can_prove_greater_equal(ii, 0)
    assert analyzer.can_prove_equal(ii - ii, 0)
    assert analyzer.can_prove(ii < 32)
    assert analyzer.known_nonnegative(ii)
    assert analyzer.known_divisible(ii * 4 + 8, 4)
    assert analyzer.known_divisible(12, 4)
    assert not analyzer.known_divisible(ii, 2)


def test_bindings_are_not_replaced_by_accident() -> None:
    analyzer = Analyzer(RANGES)
    analyzer.bind(ii, Range.from_min_extent(0, 32))
    with pytest.raises(DeclarationError, match=r"ii is bound to another range already; pass allow_override=True"):
        analyzer.bind(ii, Range.from_min_extent(0, 16))
    analyzer.bind(ii, Range.from_min_extent(0, 64), allow_override=True)
    assert not analyzer.known_less(ii, 32)


def test_a_new_range_ends_what_was_known_of_the_old_one() -> None:
    analyzer = Analyzer()
    analyzer.bind(i, Range.from_min_extent(0, 1))
    with analyzer.constraint_scope(op.logical_and(i * 2 + j < 4, i + 1 < 2)):
        analyzer.bind(i, Range.from_min_extent(0, 10), allow_override=True)
        assert not analyzer.known_less(i * 2 + j, 4)
        assert not analyzer.known_true(i + 1 < 2)
        assert analyzer.simplify(i) is i


def test_scopes_end() -> None:
    analyzer = Analyzer()
    with analyzer.scope():
        analyzer.bind(i, Range.from_min_extent(0, 4))
        assert analyzer.known_less(i, 4)
    assert not analyzer.known_less(i, 4)


def test_products_that_wrap_prove_nothing() -> None:
    a, b, c = (Var(name, "int8") for name in "abc")
    byte = Range.from_min_extent(IntImm("int8", 100), IntImm("int8", 4))
    analyzer = Analyzer({a: byte, b: byte, c: Range.from_min_extent(IntImm("int8", 0), IntImm("int8", 2))})
    assert not analyzer.known_nonnegative((a + b) * c)  # 200 is -56
    assert analyzer.known_nonnegative((a - b + 3) * c)
