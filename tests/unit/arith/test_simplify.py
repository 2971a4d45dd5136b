"""What the simplifier makes of index expressions, as text; that the value stays is the property tests' matter."""

from __future__ import annotations

import pytest

from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.arith.index_analyzer import Analyzer as IndexAnalyzer
from tensorexpr.tir import arithmetic as op
from tensorexpr.tir import intrin
from tensorexpr.tir.expr import (
    Add,
    Broadcast,
    Cast,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Let,
    Mul,
    PrimExpr,
    Ramp,
    Range,
    Select,
    SizeVar,
    Var,
)

i, j, io, ii, f, k = (Var(name) for name in ("i", "j", "io", "ii", "f", "k"))
x, y, z = (Var(name) for name in "xyz")
n, m = SizeVar("n"), SizeVar("m")
p = Var("p", "int8")
RANGES = {var: Range.from_min_extent(0, extent) for var, extent in ((i, 14), (j, 14), (io, 4), (ii, 32), (f, 196), (k, (n + 31) // 32))}


def simplified(expr: PrimExpr) -> str:
    """The text of the simplified expression."""
    return str(Analyzer(RANGES).simplify(expr))


def check(cases: list[tuple[object, str]]) -> None:
    """Every expression becomes its text."""
    found = [(str(expr), simplified(op.convert(expr))) for expr, _ in cases]
    assert found == [(str(expr), text) for expr, text in cases]


def test_sums_keep_the_order_of_appearance_and_put_constants_last() -> None:
    check(
        [
            ((io * 32 + ii) * 512 + k, "io * 16384 + ii * 512 + k"),
            (1 + x + y * 0, "x + 1"),
            (x - (y - z), "x - y + z"),
            (y * -1 + x, "x - y"),
            (0 - x - y, "x * -1 - y"),
            (4 - (x - 2), "6 - x"),
            ((x + 1) * 4 - 4, "x * 4"),
            (x * 3 - 5 - x * 3, "-5"),
            (x * 2 + x, "x * 3"),
        ]
    )


def test_products_are_distributed_only_to_cancel() -> None:
    check(
        [
            ((n + 1) * m - n * m, "m"),
            (n * m - m * n, "0"),
            ((n + 1) * m, "(n + 1) * m"),
            (x * (y * 4), "x * y * 4"),
            ((n + 1) * (m + 1) - n * m - n, "m + 1"),
        ]
    )


def test_quotients() -> None:
    check(
        [
            ((x * 32 + ii) // 32, "x"),
            ((x * 64 + ii) // 32, "x * 2"),
            ((x * 32 + ii) // 64, "x // 2"),
            ((x * 4 + 6) // 8, "(x + 1) // 2"),
            ((x + 35) // 32, "(x + 3) // 32 + 1"),
            (x // 4 // 8, "x // 32"),
            ((x // 4 + 1) // 8, "(x + 4) // 32"),
            (x % 32 // 4, "x // 4 % 8"),
            (x // -4, "x * -1 // 4"),
            (f // 14 // 14, "0"),
            (op.truncdiv(i, 4), "i // 4"),
            (op.truncdiv(x, 4), "T.Div(x, 4)"),
            ((x % 12) // 4, "x // 4 % 3"),
            ((x % 12 + 1) // 4, "(x % 12 + 1) // 4"),  # the 1 may carry
        ]
    )


def test_remainders() -> None:
    check(
        [
            ((x * 32 + ii) % 32, "ii"),
            ((x * 32 + ii) % 64, "x % 2 * 32 + ii"),
            (x % 32 % 4, "x % 4"),
            (x % 4 % 32, "x % 4"),
            ((x - 1) % 32, "(x + 31) % 32"),
            (x * 5 % 4, "x % 4"),
            (x * 6 % 4, "x % 2 * 2"),
            (i % 14, "i"),
            ((i - 14) % 14, "i"),
            (op.truncmod(i, 4), "i % 4"),
            (op.truncmod(x, -4), "T.truncmod(x, 4)"),
        ]
    )


def test_quotients_meet_their_remainders() -> None:
    check(
        [
            (x // 4 * 4 + x % 4, "x"),
            (x // 4 * 8 + x % 4 * 2, "x * 2"),
            (f // 7 % 2 * 7 + f % 7, "f % 14"),
            ((io * 13 + ii) // 7 * 7 + (io * 13 + ii) % 7, "io * 13 + ii"),  # the remainder is that of io * 6 + ii
            ((io * 13 + ii) // 7 * 14 + (io * 6 + ii + 7) % 7 * 2, "io * 26 + ii * 2"),
            ((io * 13 + ii) // 7 * 7 + (io * 5 + ii) % 7, "(io * 13 + ii) // 7 * 7 + (io * 5 + ii) % 7"),
            (x - x % 4, "x // 4 * 4"),
            (x - x // 4 * 4, "x % 4"),
            ((n + 31) // 32 * 32 - n, "31 - (n + 31) % 32"),
            (f // n * n + f % n, "f"),
        ]
    )


def test_symbolic_divisors() -> None:
    analyzer = Analyzer({i: Range.from_min_extent(0, n), j: Range.from_min_extent(0, m), k: Range.from_min_extent(0, n + 1)})
    cases = [
        ((i * m + j) // m, "i"),
        ((i * m + j) % m, "j"),
        ((i * m + j + m) // m, "i + 1"),
        ((i * (n + 1) + k) // (n + 1), "i"),
        ((n * i + i + k) % (n + 1), "k"),
        (n * m // m, "n"),
        ((i * m + x) % m, "x % m"),
    ]
    assert [(str(expr), str(analyzer.simplify(expr))) for expr, _ in cases] == [(str(expr), text) for expr, text in cases]


def test_extrema() -> None:
    check(
        [
            (op.minimum(i + 1, 15), "i + 1"),
            (op.maximum(i, 20), "20"),
            (op.minimum(op.minimum(n, 64), 32), "T.min(n, 32)"),
            (op.minimum(x, op.maximum(x, y)), "x"),
            (op.minimum(n * 4, m * 4), "T.min(n, m) * 4"),
            (op.minimum(n + i, m + i), "T.min(n, m) + i"),
            (op.minimum(k * 32 + 32, n) - k * 32, "T.min(n - k * 32, 32)"),
            (io * 32 - op.maximum(io * 32 - 3, n), "T.min(io * 32 - n, 3)"),
            (op.maximum(k * 32 - 3, n), "n"),
        ]
    )


def test_comparisons() -> None:
    check(
        [
            (i < 14, "T.bool(True)"),
            (i >= 14, "T.bool(False)"),
            (i * 4 < 9, "i < 3"),
            (i > 3, "i >= 4"),
            (i <= 9, "i < 10"),
            (i + 1 <= j, "i < j"),
            (n - i > 0, "i < n"),
            (io * 32 + ii < 128, "T.bool(True)"),
            (io * 32 + ii < 96, "io < 3"),
            (io * 32 + ii < 100, "io * 32 + ii < 100"),
            (io * 32 + ii < n, "io * 32 + ii < n"),
            (x // 4 < 3, "x < 12"),
            (x // 4 >= 2, "x >= 8"),
            (i * 2 == 5, "T.bool(False)"),
            (i * 2 == 6, "i == 3"),
            (i - j == 0, "i == j"),
            (x % 4 == 6, "T.bool(False)"),
        ]
    )


def test_wrapping_is_respected() -> None:
    check(
        [
            (x + 1 > x, "x < x + 1"),  # the largest int32 plus 1 is the smallest
            (p * op.const(4, "int8") // op.const(4, "int8"), "p * T.int8(4) // T.int8(4)"),
            (op.cast(op.cast(x, "int8"), "int32"), 'T.Cast("int32", T.Cast("int8", x))'),
            (op.cast(op.cast(x, "int64"), "int32"), "x"),
            (op.cast(i + 1, "int64") - op.cast(i, "int64"), "T.int64(1)"),
        ]
    )


def test_conditions() -> None:
    check(
        [
            (op.logical_and(i < 5, i < 10), "i < 5"),
            (op.logical_and(i < 5, i >= 5), "T.bool(False)"),
            (op.logical_or(i < 5, i >= 5), "T.bool(True)"),
            (op.logical_or(i < 5, i < 10), "i < 10"),
            (op.logical_and(x < 5, op.logical_and(y < 3, x < 5)), "x < 5 and y < 3"),
            (op.logical_not(op.logical_and(i < 5, j < 3)), "i >= 5 or j >= 3"),
            (intrin.likely(ii < 32), "T.bool(True)"),
            (intrin.likely(ii < 31), "T.likely(ii < 31)"),
        ]
    )


def test_branches_know_their_condition() -> None:
    check(
        [
            (intrin.if_then_else(i < 7, i % 7, i), "i"),
            (intrin.if_then_else(i < 7, intrin.if_then_else(i < 9, x, y), z), "T.if_then_else(i < 7, x, z)"),
            (Select((x < y), x, y), "T.min(x, y)"),
            (Select(op.logical_not(x < y), x, y), "T.max(x, y)"),
            (Select(i < 20, x, y), "x"),
            (intrin.if_then_else(x % 8 == 3, x % 4, 9), "T.if_then_else(x % 8 == 3, 3, 9)"),
            (intrin.if_then_else(x == 3, x + 1, x), "T.if_then_else(x == 3, 4, x)"),
        ]
    )


def vector(base: PrimExpr | int, stride: int, lanes: int = 4) -> PrimExpr:
    """A ramp."""
    return Ramp(op.convert(base), IntImm("int32", stride), lanes)


def same(value: PrimExpr | int, lanes: int = 4) -> PrimExpr:
    """A broadcast."""
    return Broadcast(op.convert(value), lanes)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (Add(vector(x, 1), same(y)), vector(x + y, 1)),
        (Mul(vector(x, 2), same(3)), vector(x * 3, 6)),
        (FloorDiv(vector(x * 8, 1), same(8)), same(x)),
        (FloorMod(vector(x * 8, 1), same(8)), vector(0, 1)),
        (FloorDiv(vector(x * 8 + 6, 1), same(8)), None),  # lanes 2 and 3 are in the next block
        (FloorMod(vector(x, 8), same(4)), same(x % 4)),
        (FloorMod(vector(0, 3, 3), same(6, 3)), None),  # both ends are in range, as if 0, 3, 6 were 0, 3, 6
        (vector(i * 4, 1) < same(56), Broadcast(IntImm("bool", 1), 4)),
        (Cast("int64x4", vector(i, 1)), Ramp(Cast("int64", i), IntImm("int64", 1), 4)),
    ],
)
def test_vectors(expr: PrimExpr, text: PrimExpr | None) -> None:
    after = Analyzer(RANGES).simplify(expr)
    if text is None:
        assert not isinstance(after, (Ramp, Broadcast))
    else:
        assert after is text, f"{expr} -> {after}"


def test_floats_are_left_alone() -> None:
    a, b = Var("a", "float32"), Var("b", "float32")
    zero = FloatImm("float32", 0.0)
    for expr in (a + b - b, a * (b * a), a + zero, a * zero, a - a, a < a, op.minimum(a, a + zero), op.logical_not(a < b)):
        assert Analyzer().simplify(expr) is expr


def test_division_by_zero_is_left_alone() -> None:
    zero = IntImm("int32", 0)
    for expr in (FloorDiv(x, zero), FloorMod(x, zero), FloorDiv(zero, zero), FloorMod(IntImm("int32", 5), zero)):
        assert Analyzer(RANGES).simplify(expr) is expr


def test_known_values_are_put_in() -> None:
    one = Var("one")
    analyzer = Analyzer({one: Range.from_min_extent(3, 1)})
    analyzer.bind(x, y + 1)
    assert str(analyzer.simplify(x + one)) == "y + 4"
    assert str(Analyzer().simplify(Let(x, IntImm("int32", 3), x + y))) == "y + 3"


def test_deep_expressions_survive() -> None:
    total: PrimExpr = x
    least: PrimExpr = x
    branch: PrimExpr = x
    condition: PrimExpr = x < 5
    for step in range(5000):
        total = total + (y if step % 2 else 1)
        least = op.minimum(least, i * step)
        condition = op.logical_and(condition, x + y < step)
        branch = intrin.if_then_else(x < step, branch, step)
    analyzer = Analyzer(RANGES)
    assert str(analyzer.simplify(total)) == "x + y * 2500 + 2500"
    for deep in (least, condition, branch):
        after = analyzer.simplify(deep)
        assert analyzer.simplify(after) is after


def test_shared_subexpressions_cost_nothing() -> None:
    total: PrimExpr = x
    for _ in range(200):
        total = Add(total, total)
    assert str(Analyzer().simplify(total)) == "0"  # 2**200 times x, modulo 2**32


def test_a_quotient_meets_a_remainder_that_was_simplified_further() -> None:
    """Of pixels fused and split again: (f % 49 * 64 + i) % 56 is written (f*8 + i) % 56, as 64 - 8 and 49*64 are multiples of 56."""
    pixel = f % 49 * 64 + ii
    check([((pixel // 56) * 56 + pixel % 56, str(Analyzer(RANGES).simplify(pixel)))])
    check([((pixel // 56) * 112 + (pixel % 56) * 2, str(Analyzer(RANGES).simplify(pixel * 2)))])
    other = f % 48 * 64 + ii
    assert "//" in simplified((pixel // 56) * 56 + other % 56)


def test_a_vector_over_rows_of_another_length_is_one_index() -> None:
    """Of planes of 3136 in rows of 56, by vectors of 64: each part of the index is simplified by itself before they meet."""
    vector = f * 64 + ii
    inside = Analyzer(RANGES | {ii: Range(0, 64)})
    parts = vector // 3136 * 3136 + vector // 56 % 56 * 56 + (f * 8 + ii) % 56
    assert str(inside.simplify(parts)) == "f * 64 + ii"
    assert str(inside.simplify(f // 49 * 3136 + vector % 3136)) in ("f * 64 + ii", "ii + f * 64")
    # Of 63 rows a multiple of 63 isn't one of 56, and of 48 vectors no quotient is that of the plane.
    assert "//" in str(inside.simplify(f // 48 * 3136 + vector % 3136))
    assert "//" in str(inside.simplify(vector // 56 % 56 * 56 + (f * 9 + ii) % 56))


def test_a_sum_of_many_terms_takes_time_in_proportion() -> None:
    """Partial sums aren't brought into order one by one: 200 terms took two minutes."""
    terms = [op.maximum(x, step) for step in range(400)]
    total: PrimExpr = y
    for term in terms:
        total = total + term
    for term in terms[1:]:
        total = total - term
    found = IndexAnalyzer().simplify(total)
    assert str(found) == "T.max(x, 0) + y"


def test_choices_that_share_operands_are_not_taken_apart_at_every_level() -> None:
    """Each arm holds the choice before: under the conditions of both that were 2**24 visits."""
    value: PrimExpr = x
    for step in range(30):
        value = intrin.if_then_else(y < step * 3, value + 1, value * 2)
    assert Analyzer().simplify(value).dtype == "int32"
    assert IndexAnalyzer().rewrite_simplify(value).dtype == "int32"
