"""Index algebra against brute force: properties 1-6 and 9 of the list of bug classes, by number."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.arith import Analyzer
from tensorexpr.tir import arithmetic
from tensorexpr.tir.dtype import int_limits, parse_dtype, scalar_dtype, wrap_int
from tensorexpr.tir.expr import (
    EQ, GE, GT, LE, LT, NE, Add, And, BinaryExpr, Broadcast, Call, Cast, CmpExpr, Div, FloorDiv, FloorMod, IntImm, LogicalExpr, Max, Min,
    Mod, Mul, Not, Or, PrimExpr, Ramp, Range, Select, Sub, Var,
)  # fmt: skip

SETTINGS = settings(deadline=None, derandomize=True, max_examples=400)
Value = int | tuple[int, ...]


class Undefined(Exception):
    """The expression divides by zero there."""


def _truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _defined(op: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def divide(a: int, b: int) -> int:
        if b == 0:
            raise Undefined
        return op(a, b)

    return divide


EVALUATE: dict[type[PrimExpr], Callable[[int, int], int]] = {
    Add: operator.add, Sub: operator.sub, Mul: operator.mul, Min: min, Max: max,
    FloorDiv: _defined(operator.floordiv), FloorMod: _defined(operator.mod),
    Div: _defined(_truncdiv), Mod: _defined(lambda a, b: a - _truncdiv(a, b) * b),
    EQ: operator.eq, NE: operator.ne, LT: operator.lt, LE: operator.le, GT: operator.gt, GE: operator.ge,
    And: operator.and_, Or: operator.or_,
}  # fmt: skip


def lane(expr: PrimExpr, env: Mapping[Var, int], index: int = 0) -> int:
    """The value of one lane, as the machine computes it."""
    match expr:
        case IntImm(_, value):
            return value
        case Var():
            return env[expr]
        case Not(a):
            return 1 - lane(a, env, index)
        case Cast(dtype, value):
            found = lane(value, env, index)
            return int(found != 0) if parse_dtype(dtype).code == "bool" else wrap_int(found, scalar_dtype(dtype))
        case Ramp(base, stride, _):
            return wrap_int(lane(base, env) + index * lane(stride, env), scalar_dtype(expr.dtype))
        case Broadcast(value, _):
            return lane(value, env)
        case Select(condition, a, b) | Call(_, "tir.if_then_else", (condition, a, b)):
            return lane(a if lane(condition, env, index) else b, env, index)
        case Call(_, "tir.likely", (a,)):
            return lane(a, env, index)
        case BinaryExpr(a, b) | CmpExpr(a, b) | LogicalExpr(a, b):
            value = EVALUATE[type(expr)](lane(a, env, index), lane(b, env, index))
            return wrap_int(int(value), scalar_dtype(expr.dtype))
    raise AssertionError(f"no evaluation of {type(expr).__name__}")


def evaluate(expr: PrimExpr, env: Mapping[Var, int]) -> Value:
    """The value of an expression: an integer, or one per lane."""
    lanes = parse_dtype(expr.dtype).lanes
    return lane(expr, env) if lanes == 1 else tuple(lane(expr, env, index) for index in range(lanes))


# Random programs: a handful of variables over small ranges (negative ones included) and expressions of them.
BINARY = (Add, Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max)
COMPARE = (EQ, NE, LT, LE, GT, GE)
CONSTANTS = (-16, -7, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 32)


def random_expr(rng: random.Random, variables: list[Var], depth: int, dtype: str) -> PrimExpr:
    """An integer expression of the dtype, built without folding."""
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.3:
            return IntImm(dtype, wrap_int(rng.choice(CONSTANTS), dtype))
        return rng.choice(variables)
    roll = rng.random()
    if roll < 0.12:
        arms = [random_expr(rng, variables, depth - 1, dtype) for _ in range(2)]
        condition = random_condition(rng, variables, depth - 1, dtype)
        return Select(condition, *arms) if rng.random() < 0.5 else Call(dtype, "tir.if_then_else", (condition, *arms))
    op = rng.choice(BINARY)
    left = random_expr(rng, variables, depth - 1, dtype)
    if op in (Mul, FloorDiv, FloorMod, Div, Mod) and rng.random() < 0.85:
        return op(left, IntImm(dtype, wrap_int(rng.choice(CONSTANTS), dtype)))
    return op(left, random_expr(rng, variables, depth - 1, dtype))


def random_condition(rng: random.Random, variables: list[Var], depth: int, dtype: str) -> PrimExpr:
    """A bool expression."""
    if depth > 0 and rng.random() < 0.3:
        op = rng.choice((And, Or, Not))
        inner = [random_condition(rng, variables, depth - 1, dtype) for _ in range(2)]
        return Not(inner[0]) if op is Not else op(*inner)
    depth = max(depth, 1) if rng.random() < 0.5 else 0
    op = rng.choice(COMPARE)
    found = op(random_expr(rng, variables, depth, dtype), random_expr(rng, variables, depth, dtype))
    return Call("bool", "tir.likely", (found,)) if rng.random() < 0.1 else found


def random_ranges(rng: random.Random, dtype: str) -> dict[Var, Range]:
    """Three variables with small ranges, some of them touching the ends of the dtype."""
    least, most = int_limits(dtype)
    found = {}
    for name in "xyz":
        extent = rng.choice((1, 2, 3, 4, 6, 8))
        low = max(rng.choice((0, 0, 0, -3, -8, -20, 5, 16)), least)
        if rng.random() < 0.1:
            low = rng.choice((least, most - extent + 1))
        found[Var(name, dtype)] = Range(IntImm(dtype, low), IntImm(dtype, extent))
    return found


def points(ranges: Mapping[Var, Range]) -> list[dict[Var, int]]:
    """All assignments of variables with constant ranges."""
    spans = [range(int(r.min), int(r.min) + int(r.extent)) for r in ranges.values()]  # type: ignore[call-overload]
    return [dict(zip(ranges, values, strict=True)) for values in itertools.product(*spans)]


def assert_same_value(before: PrimExpr, after: PrimExpr, ranges: Mapping[Var, Range], envs: list[dict[Var, int]]) -> None:
    """Both evaluate alike wherever the first one has a value."""
    assert before.dtype == after.dtype
    for env in envs:
        try:
            expected = evaluate(before, env)
        except Undefined:
            continue
        assert evaluate(after, env) == expected, describe(before, after, env)


def describe(before: PrimExpr, after: PrimExpr, env: Mapping[Var, int]) -> str:
    """A failure, to be read."""
    return f"{before!r}\n became {after!r}\n differs at { ({v.name: x for v, x in env.items()}) }"


def some(envs: list[dict[Var, int]], rng: random.Random, count: int = 40) -> list[dict[Var, int]]:
    """A sample."""
    return envs if len(envs) <= count else rng.sample(envs, count)


@SETTINGS
@given(st.integers(0, 1 << 48), st.sampled_from(["int32", "int32", "int64", "int8", "uint8", "int16", "uint32"]))
def test_1_simplify_keeps_the_value(seed: int, dtype: str) -> None:
    rng = random.Random(seed)
    ranges = random_ranges(rng, dtype)
    expr = random_expr(rng, list(ranges), rng.choice((2, 3, 4)), dtype)
    after = Analyzer(ranges).simplify(expr)
    assert_same_value(expr, after, ranges, some(points(ranges), rng))
