"""Property 7: booleans and comparisons used as indices: converted they count 0 and 1 everywhere, unconverted they are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.errors import DeclarationError
from tensorexpr.schedule import create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.expr import IntImm, PrimExpr, Range, Var
from tests.effort import share_of

from .index_expressions import assert_same_value, points

N = 12
TABLE = te.placeholder((2, N), name="table")
FLAGS = te.placeholder((N,), "bool", name="flags")
NUMBERS = te.placeholder((N,), "int32", name="numbers")


def number(condition: Any, dtype: str = "int32") -> PrimExpr:
    """A condition as 0 or 1."""
    value: PrimExpr = condition.asobject().astype(dtype) if hasattr(condition, "asobject") else condition.astype(dtype)
    return value


READS: dict[str, Callable[[Var], Any]] = {
    "comparison": lambda i: TABLE[number(i > 3), i],
    "int64": lambda i: TABLE[number(i >= 5, "int64"), i],
    "uint8": lambda i: TABLE[number(i < 5, "uint8"), i],
    "flag": lambda i: TABLE[FLAGS[i].astype("int32"), i],
    "data": lambda i: TABLE[number(NUMBERS[i] > 0), i],
    "and": lambda i: TABLE[number(te.all(i > 2, NUMBERS[i] > 0)), i],
    "or": lambda i: TABLE[number(te.any(i < 2, FLAGS[i])), i],
    "sum": lambda i: TABLE[0, number(i > 1) + number(i > 7) * 3],
    "product": lambda i: TABLE[1, i * number(i % 2 == 0)],
    "difference": lambda i: TABLE[number(i != 4), i - number(i > 0)],
    "negated": lambda i: TABLE[1 - number(FLAGS[i]), N - 1 - i],
}


@pytest.mark.parametrize("factor", [4, 5])
@pytest.mark.parametrize("kind", ["serial", "vectorize", "unroll"])
@pytest.mark.parametrize("name", READS)
def test_7_conditions_count_zero_and_one(name: str, kind: str, factor: int) -> None:
    b = te.compute((N,), READS[name], name="B")
    c = te.compute((N,), lambda i: b[i] + b[N - 1 - i], name="C")
    s = create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=factor)
    s[b].compute_at(s[c], outer)
    if kind != "serial":
        getattr(s[c], kind)(inner)
        getattr(s[b], kind)(s[b].split(b.op.axis[0], factor=factor)[1])
    assert_schedule_correct(s, [t for t in (TABLE, FLAGS, NUMBERS) if t in b.op.input_tensors] + [c], phases=(0, 2))


UNCONVERTED: dict[str, Callable[[], Tensor]] = {
    "comparison": lambda: te.compute((N,), lambda i: TABLE[i > 3, i]),
    "flag": lambda: te.compute((N,), lambda i: TABLE[FLAGS[i], i]),
    "and": lambda: te.compute((N,), lambda i: TABLE[te.all(i > 3, i < 6), i]),
}


@pytest.mark.parametrize("name", UNCONVERTED)
def test_7_a_condition_is_no_index(name: str) -> None:
    with pytest.raises(DeclarationError, match=r"indexed with .* \(bool\); .*convert with .astype\('int32'\)"):
        UNCONVERTED[name]()


X, Y = Var("x"), Var("y")
RANGES = {
    X: Range.from_min_extent(IntImm("int32", -3), IntImm("int32", 8)),
    Y: Range.from_min_extent(IntImm("int32", 0), IntImm("int32", 5)),
}


@st.composite
def conditional_sums(draw: st.DrawFn) -> PrimExpr:
    """A sum of converted conditions, alone or times a variable, perhaps divided."""
    total: PrimExpr = IntImm("int32", draw(st.integers(-2, 2)))
    for _ in range(draw(st.integers(1, 3))):
        left, right = draw(st.sampled_from((X, Y, X + Y, X * 2))), draw(st.sampled_from((Y, Y * 3, IntImm("int32", 1))))
        condition = draw(st.sampled_from((lambda a, b: a < b, lambda a, b: a >= b, lambda a, b: te.all(a > b, b >= 0))))(left, right)
        total = total + number(condition) * draw(st.sampled_from((X, Y, IntImm("int32", 1), IntImm("int32", -2))))
    divisor = draw(st.sampled_from((None, 2, 3)))
    return total if divisor is None else te.floordiv(total, divisor) + te.floormod(total, divisor)


@settings(max_examples=share_of(150), deadline=None, derandomize=True)
@given(conditional_sums())
def test_7_the_algebra_of_converted_conditions(expr: PrimExpr) -> None:
    assert_same_value(expr, Analyzer(RANGES).simplify(expr), points(RANGES))
