"""Index algebra against brute force: properties 1-6 and 9 of the list of bug classes, by number."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.arith import Analyzer, ConstIntBound, ModularSet, extent_bound, relax
from tensorexpr.arith.iter_map import detect_iter_map, inverse_iter_map, to_expr
from tensorexpr.tir.dtype import int_limits, parse_dtype, scalar_dtype, wrap_int
from tensorexpr.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    BinaryExpr,
    Broadcast,
    Call,
    Cast,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    LogicalExpr,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Range,
    Select,
    SizeVar,
    Sub,
    Var,
)  # fmt: skip

SETTINGS = settings(deadline=None, derandomize=True, max_examples=300)
SEEDS = st.integers(0, 1 << 48)
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
        left, right = (random_condition(rng, variables, depth - 1, dtype) for _ in range(2))
        return Not(left) if rng.random() < 0.3 else rng.choice((And, Or))(left, right)
    depth = max(depth, 1) if rng.random() < 0.5 else 0
    found = rng.choice(COMPARE)(random_expr(rng, variables, depth, dtype), random_expr(rng, variables, depth, dtype))
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


def assert_same_value(before: PrimExpr, after: PrimExpr, envs: list[dict[Var, int]]) -> None:
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
    return f"{before}\n became {after}\n differs at { ({v.name: x for v, x in env.items()}) }"


def some(envs: list[dict[Var, int]], rng: random.Random, count: int = 40) -> list[dict[Var, int]]:
    """A sample."""
    return envs if len(envs) <= count else rng.sample(envs, count)


def values(expr: PrimExpr, envs: list[dict[Var, int]]) -> list[int | None]:
    """The value at each point; None where there is none."""
    found: list[int | None] = []
    for env in envs:
        try:
            found.append(lane(expr, env))
        except Undefined:
            found.append(None)
    return found


def random_affine(rng: random.Random, variables: list[Var], dtype: str) -> PrimExpr:
    """A sum of multiples of variables."""
    total: PrimExpr = IntImm(dtype, rng.randint(-5, 5))
    for var in rng.sample(variables, rng.randint(1, 3)):
        total = total + var * rng.choice((-3, -2, -1, 1, 1, 2, 4))
    return total


def random_vector(rng: random.Random, variables: list[Var], depth: int, dtype: str, lanes: int) -> PrimExpr:
    """A vector of ramps, broadcasts and what is computed of them."""
    if depth == 0:
        base = random_expr(rng, variables, rng.choice((0, 1)), dtype)
        stride = IntImm(dtype, wrap_int(rng.choice(CONSTANTS), dtype)) if rng.random() < 0.8 else rng.choice(variables)
        return Ramp(base, stride, lanes) if rng.random() < 0.6 else Broadcast(base, lanes)
    op = rng.choice((*BINARY, FloorDiv, FloorMod))
    left = random_vector(rng, variables, depth - 1, dtype, lanes)
    if op in (FloorDiv, FloorMod) and rng.random() < 0.8:
        return op(left, Broadcast(IntImm(dtype, rng.choice((2, 3, 4, 8))), lanes))
    right = random_vector(rng, variables, depth - 1, dtype, lanes)
    return Select(rng.choice(COMPARE)(left, right), right, left) if rng.random() < 0.1 else op(left, right)


class Loops:
    """Loops of symbolic extent, expressions of their variables, and points of the nest."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.factor = rng.choice((2, 3, 4))
        self.n, self.m = (SizeVar("n") if rng.random() < 0.5 else Var("n")), SizeVar("m")
        i, j, io, ii, x = (Var(name) for name in ("i", "j", "io", "ii", "x"))
        outer = (self.n + (self.factor - 1)) // self.factor if rng.random() < 0.7 else self.n // self.factor
        rows = {i: (0, self.n), j: (rng.choice((0, -2)), self.m), io: (0, outer), ii: (0, self.factor), x: (rng.choice((0, -5)), 4)}
        self.ranges = {var: Range.from_min_extent(low, extent) for var, (low, extent) in rows.items()}
        self.envs = [env for _ in range(60) if (env := self._point()) is not None]

    def _point(self) -> dict[Var, int] | None:
        env = {self.n: self.rng.randint(1, 7), self.m: self.rng.randint(1, 6)}
        for var, dom in self.ranges.items():
            low, extent = lane(dom.min, env), lane(dom.extent, env)
            if extent <= 0:
                return None
            env[var] = self.rng.randrange(low, low + extent)
        return env

    def index(self, depth: int) -> PrimExpr:
        """An integer expression."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            constant = IntImm("int32", rng.choice((-3, -1, 0, 1, 2, 4, self.factor, self.factor - 1, 2 * self.factor)))
            return constant if rng.random() < 0.25 else rng.choice([*self.ranges, self.n, self.m])
        op = rng.choice((Add, Add, Add, Sub, Sub, Mul, Mul, FloorDiv, FloorMod, Min, Max, Div, Mod))
        left = self.index(depth - 1)
        if op in (Mul, FloorDiv, FloorMod, Div, Mod) and rng.random() < 0.95:
            constants = [IntImm("int32", c) for c in (self.factor, self.factor, 2 * self.factor, 2, 3, -self.factor, 8)]
            return op(left, rng.choice([*constants, self.n, self.m, self.n + 1]))
        return op(left, self.index(depth - 1))

    def condition(self, depth: int) -> PrimExpr:
        """A bool expression."""
        found: PrimExpr = self.rng.choice((*COMPARE, LT, LT))(self.index(depth), self.index(depth))
        if self.rng.random() < 0.3:
            found = self.rng.choice((And, Or))(found, self.condition(depth))
        return Not(found) if self.rng.random() < 0.2 else found


def holds_bound(bound: ConstIntBound, value: int) -> bool:
    """True if the value is within the bounds, which may be open."""
    above = bound.min_value == ConstIntBound.NEG_INF or bound.min_value <= value
    return above and (bound.max_value == ConstIntBound.POS_INF or value <= bound.max_value)


def holds_congruence(found: ModularSet, value: int) -> bool:
    """True if the value is in the set."""
    return (value - found.base) % found.coeff == 0 if found.coeff else value == found.base


DTYPES = st.sampled_from(["int32", "int32", "int64", "int8", "uint8", "int16", "uint32"])


@SETTINGS
@given(SEEDS, DTYPES)
def test_1_simplify_keeps_the_value(seed: int, dtype: str) -> None:
    rng = random.Random(seed)
    ranges = random_ranges(rng, dtype)
    expr = random_expr(rng, list(ranges), rng.choice((2, 3, 4)), dtype)
    assert_same_value(expr, Analyzer(ranges).simplify(expr), some(points(ranges), rng))


@SETTINGS
@given(SEEDS, DTYPES)
def test_1_simplify_keeps_conditions(seed: int, dtype: str) -> None:
    rng = random.Random(seed)
    ranges = random_ranges(rng, dtype)
    condition = random_condition(rng, list(ranges), 3, dtype)
    envs = some(points(ranges), rng)
    assert_same_value(condition, Analyzer(ranges).simplify(condition), envs)
    if Analyzer(ranges).known_true(condition):
        assert all(value is None or value == 1 for value in values(condition, envs))


@SETTINGS
@given(SEEDS)
def test_1_unknown_variables_wrap_like_the_machine(seed: int) -> None:
    rng = random.Random(seed)
    variables = [Var(name) for name in "xyz"]
    expr = random_affine(rng, variables, "int32")
    op = rng.choice((*COMPARE, Min, Max))
    expr = op(expr, random_affine(rng, variables, "int32"))
    ends = [-(1 << 31), -(1 << 31) + 1, -1, 0, 1, (1 << 31) - 2, (1 << 31) - 1]
    envs = [{var: rng.choice(ends) for var in variables} for _ in range(40)]
    assert_same_value(expr, Analyzer().simplify(expr), envs)


@SETTINGS
@given(SEEDS)
def test_1_symbolic_ranges_and_constraints(seed: int) -> None:
    rng = random.Random(seed)
    loops = Loops(rng)
    expr = loops.index(rng.choice((2, 3))) if rng.random() < 0.6 else loops.condition(2)
    scope, question = loops.condition(rng.choice((1, 2))), loops.condition(rng.choice((1, 2)))
    analyzer = Analyzer(loops.ranges)
    with analyzer.constraint_scope(scope):
        after, proved, bound = analyzer.simplify(expr), analyzer.known_true(question), analyzer.const_int_bound(expr)
    envs = [env for env, value in zip(loops.envs, values(scope, loops.envs), strict=True) if value]
    assert_same_value(expr, after, envs)
    assert not proved or all(value is None or value == 1 for value in values(question, envs)), f"{question} under {scope}"
    assert all(value is None or holds_bound(bound, value) for value in values(expr, envs)), f"{expr} under {scope}: {bound}"


@SETTINGS
@given(SEEDS, st.sampled_from(["int32", "int64", "int8", "uint8"]), st.sampled_from([2, 3, 4, 8]))
def test_2_every_lane(seed: int, dtype: str, lanes: int) -> None:
    rng = random.Random(seed)
    ranges = random_ranges(rng, dtype)
    expr = random_vector(rng, list(ranges), rng.choice((1, 2, 3)), dtype, lanes)
    if rng.random() < 0.3:
        expr = rng.choice(COMPARE)(expr, random_vector(rng, list(ranges), 1, dtype, lanes))
    analyzer = Analyzer(ranges)
    after = analyzer.simplify(expr)
    assert_same_value(expr, after, some(points(ranges), rng, 20))
    assert Analyzer(ranges).simplify(after) is after


@settings(SETTINGS, max_examples=60)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12), st.sampled_from([-40, -16, 0, 3]), st.sampled_from([1, 2, 3, -3, 4, 8]))
def test_3_quotients_of_remainders(a: int, b: int, c: int, low: int, k: int) -> None:
    x = Var("x")
    ranges = {x: Range(IntImm("int32", low), IntImm("int32", 60))}
    for analyzer in (Analyzer(ranges), Analyzer()):
        for expr in (x * k % a // b, x * k // b % c, x * k // a // b, x * k % a % b, (x * k + c) // a % b, (x // a * a + x % a) // b):
            for op in (FloorDiv, FloorMod, Div, Mod):
                whole = op(expr, IntImm("int32", c))
                assert_same_value(whole, analyzer.simplify(whole), points(ranges))


@SETTINGS
@given(SEEDS, DTYPES)
def test_4_bounds_and_congruences_hold_every_value(seed: int, dtype: str) -> None:
    rng = random.Random(seed)
    ranges = random_ranges(rng, dtype)
    expr = random_expr(rng, list(ranges), rng.choice((2, 3, 4)), dtype)
    analyzer = Analyzer(ranges)
    bound, found = analyzer.const_int_bound(expr), analyzer.modular_set(expr)
    for value in values(expr, some(points(ranges), rng)):
        if value is not None:
            assert holds_bound(bound, value), f"{expr}: {value} not in {bound}"
            assert holds_congruence(found, value), f"{expr}: {value} not in {found}"


@SETTINGS
@given(SEEDS)
def test_4_relaxed_intervals_hold_every_value(seed: int) -> None:
    rng = random.Random(seed)
    loops = Loops(rng)
    expr = loops.index(rng.choice((2, 3)))
    if rng.random() < 0.3:
        expr = Call("int32", "tir.if_then_else", (loops.condition(1), expr, loops.index(1)))
    check_interval(rng, loops, expr, exact=False)


@SETTINGS
@given(SEEDS)
def test_4_relaxed_intervals_of_affine_forms_are_exact(seed: int) -> None:
    rng = random.Random(seed)
    loops = Loops(rng)
    check_interval(rng, loops, random_affine(rng, list(loops.ranges), "int32"), exact=True)


def check_interval(rng: random.Random, loops: Loops, expr: PrimExpr, exact: bool) -> None:
    """The interval holds all values of the varying variables; `exact`: and no more."""
    domain = {var: dom for var, dom in loops.ranges.items() if rng.random() < 0.6}
    analyzer = Analyzer({var: dom for var, dom in loops.ranges.items() if var not in domain and rng.random() < 0.5})
    interval = relax(expr, domain, analyzer)
    assert interval is not None or not exact
    if interval is None:
        return
    bound = extent_bound(interval, analyzer)
    for env in loops.envs[:4]:
        inner = {v: Range(IntImm("int32", lane(r.min, env)), IntImm("int32", lane(r.extent, env))) for v, r in domain.items()}
        envs = [{**env, **point} for point in points(inner)]
        (low,), (high,) = values(interval.min, [env]), values(interval.max, [env])
        seen = [value for value in values(expr, envs) if value is not None]
        if low is None or high is None or not seen:
            continue
        assert low <= min(seen) and max(seen) <= high, f"{expr} in [{interval.min}, {interval.max}] at {env}"
        assert bound is None or high - low + 1 <= bound
        assert not exact or (low, high) == (min(seen), max(seen)), f"{expr} in [{interval.min}, {interval.max}] at {env}"


@SETTINGS
@given(SEEDS, DTYPES)
def test_5_simplify_is_idempotent(seed: int, dtype: str) -> None:
    rng = random.Random(seed)
    ranges = random_ranges(rng, dtype)
    build = random_expr if rng.random() < 0.7 else random_condition
    expr = build(rng, list(ranges), 4, dtype)
    analyzer = Analyzer(ranges)
    after = analyzer.simplify(expr)
    assert analyzer.simplify(after) is after
    assert Analyzer(ranges).simplify(after) is after, f"{expr} -> {after} -> {Analyzer(ranges).simplify(after)}"


@settings(SETTINGS, max_examples=20)
@given(SEEDS)
def test_5_deep_expressions(seed: int) -> None:
    rng = random.Random(seed)
    x, y = Var("x"), Var("y")
    ranges = {x: Range(IntImm("int32", 0), IntImm("int32", 8)), y: Range(IntImm("int32", -4), IntImm("int32", 8))}
    op = rng.choice((Add, Sub, Min, Max, FloorDiv, FloorMod))
    expr: PrimExpr = x
    for _ in range(2500):
        expr = op(expr, IntImm("int32", 1 + rng.randrange(3)) if op in (FloorDiv, FloorMod) else rng.choice((x, y, IntImm("int32", 2))))
    analyzer = Analyzer(ranges)
    after = analyzer.simplify(expr)
    assert analyzer.simplify(after) is after
    bound = analyzer.const_int_bound(expr)
    assert holds_bound(bound, analyzer.const_int_bound(after).min_value) or op in (Add, Sub)


@SETTINGS
@given(SEEDS, st.sampled_from(["int32", "int64", "int8"]))
def test_6_division_by_zero_and_the_most_negative_number(seed: int, dtype: str) -> None:
    rng = random.Random(seed)
    least, most = int_limits(dtype)
    x, y = Var("x", dtype), Var("y", dtype)
    ranges = {x: Range(IntImm(dtype, least), IntImm(dtype, 3)), y: Range(IntImm(dtype, -1), IntImm(dtype, 3))}
    divisor = rng.choice((IntImm(dtype, 0), IntImm(dtype, -1), IntImm(dtype, least), y, y * 0))
    quotient = rng.choice((FloorDiv, FloorMod, Div, Mod))(rng.choice((x, x + 1, IntImm(dtype, least), y)), divisor)
    expr = Select(rng.choice((y != 0, y > 0, x < y)).asobject(), quotient, rng.choice((x, y)))
    analyzer = Analyzer(ranges)
    assert_same_value(expr, analyzer.simplify(expr), points(ranges))
    assert_same_value(quotient, analyzer.simplify(quotient), points(ranges))
    bound = analyzer.const_int_bound(quotient)
    assert all(value is None or holds_bound(bound, value) for value in values(quotient, points(ranges)))
    assert most > 0


@SETTINGS
@given(SEEDS)
def test_9_detected_maps_give_the_original_index(seed: int) -> None:
    rng = random.Random(seed)
    extents = [rng.choice((1, 2, 3, 4, 6)) for _ in range(3)]
    lows = [rng.choice((0, 0, 2, -3)) for _ in extents]
    iters = {Var(n): Range(IntImm("int32", low), IntImm("int32", e)) for n, low, e in zip("ijk", lows, extents, strict=True)}
    indices = random_map(rng, iters)
    found = detect_iter_map(indices, iters)
    if not found.indices:
        assert found.errors
        return
    outputs = [Var(f"o{place}") for place in range(len(indices))]
    inverse = inverse_iter_map(found, outputs)
    for env in points(iters):
        reached = [lane(index, env) for index in indices]
        assert [lane(to_expr(total), env) for total in found.indices] == reached
        back = dict(zip(outputs, reached, strict=True))
        assert {var: lane(inverse[var], back) for var in iters} == env
    assert len({tuple(lane(index, env) for index in indices) for env in points(iters)}) == len(points(iters))


def random_map(rng: random.Random, iters: Mapping[Var, Range]) -> list[PrimExpr]:
    """Indices made by fusing iterators and splitting what came of it, now and then wrongly."""
    order = list(iters.items())
    rng.shuffle(order)
    fused: PrimExpr = IntImm("int32", 0)
    for var, dom in order:
        fused = fused * dom.extent + (var - dom.min)
    total = 1
    for dom in iters.values():
        total *= int(dom.extent)  # type: ignore[call-overload]
    inner = rng.choice([d for d in range(1, total + 1) if total % d == 0] + [total // 2 + 1])
    shift, scale = rng.choice((0, 0, 4)), rng.choice((1, 1, 3))
    indices = [FloorDiv(fused, IntImm("int32", inner)) * scale + shift, FloorMod(fused, IntImm("int32", inner))]
    return [fused] if rng.random() < 0.3 else indices
