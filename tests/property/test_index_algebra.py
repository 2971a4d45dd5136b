"""Index algebra against brute force: properties 1-6 and 9 of the list of bug classes, by number."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.arith import Analyzer as IndexAnalyzer
from tensorexpr.arith import extent_bound, relax
from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.arith.iter_map import detect_iter_map, inverse_affine_iter_map, to_expr
from tensorexpr.tir.dtype import int_limits
from tensorexpr.tir.expr import Add, Call, Div, FloorDiv, FloorMod, IntImm, Max, Min, Mod, PrimExpr, Range, Select, Sub, Var
from tensorexpr.tir.rewriting import walk
from tests.effort import share_of

from .index_expressions import (
    COMPARE,
    Loops,
    assert_same_value,
    holds_bound,
    holds_congruence,
    lane,
    points,
    random_affine,
    random_condition,
    random_expr,
    random_map,
    random_pieces,
    random_product,
    random_ranges,
    random_vector,
    some,
    values,
)

SETTINGS = settings(deadline=None, derandomize=True, max_examples=share_of(150))
SEEDS = st.integers(0, 1 << 48)

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
@given(SEEDS, st.sampled_from(["int8", "int16", "int32"]))
def test_1_products(seed: int, dtype: str) -> None:
    rng = random.Random(seed)
    ranges = random_ranges(rng, dtype)
    variables = list(ranges)
    left, right = random_product(rng, variables), random_product(rng, variables)
    expr = rng.choice((*COMPARE, Min, Max, FloorDiv, FloorMod, Sub))(left, rng.choice((right, *variables)))
    assert_same_value(expr, Analyzer(ranges).simplify(expr), some(points(ranges), rng))


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
    if op in COMPARE and Analyzer().known_true(expr):
        assert all(values(expr, envs))


@settings(SETTINGS, max_examples=share_of(80))
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


@settings(SETTINGS, max_examples=share_of(80))
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


@settings(SETTINGS, max_examples=share_of(20))
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12), st.sampled_from([-40, -16, 0, 3]), st.sampled_from([1, 2, 3, -3, 4, 8]))
def test_3_quotients_of_remainders(a: int, b: int, c: int, low: int, k: int) -> None:
    x = Var("x")
    ranges = {x: Range.from_min_extent(IntImm("int32", low), IntImm("int32", 60))}
    for analyzer in (Analyzer(ranges), Analyzer()):
        for expr in (x * k % a // b, x * k // b % c, x * k // a // b, x * k % a % b, (x * k + c) // a % b, (x // a * a + x % a) // b):
            for op in (FloorDiv, FloorMod, Div, Mod):
                whole = op(expr, IntImm("int32", c))
                assert_same_value(whole, analyzer.simplify(whole), points(ranges))


@settings(SETTINGS, max_examples=share_of(60))
@given(SEEDS, st.booleans())
def test_3_quotients_meet_their_remainders(seed: int, bounded: bool) -> None:
    rng = random.Random(seed)
    x, y = Var("x"), Var("y")
    ranges = {
        x: Range.from_min_extent(IntImm("int32", -40), IntImm("int32", 80)),
        y: Range.from_min_extent(IntImm("int32", 0), IntImm("int32", 4)),
    }
    expr = random_pieces(rng, rng.choice((x, x, x + 3, x * 4 + y)))
    if rng.random() < 0.3:
        expr = rng.choice((FloorDiv, FloorMod))(expr, IntImm("int32", rng.choice((2, 3, 4, 6, 10))))
    analyzer = Analyzer(ranges if bounded else {y: ranges[y]})
    after = analyzer.simplify(expr)
    assert analyzer.simplify(after) is after
    assert_same_value(expr, after, points(ranges))


@settings(SETTINGS, max_examples=share_of(30))
@given(SEEDS, st.sampled_from(["int32", "int64"]))
def test_1_the_analyzer_of_programs_keeps_the_value(seed: int, dtype: str) -> None:
    """Rewritten by laws and in canonical form; what it proves holds, and its bounds hold every value."""
    rng = random.Random(seed)
    ranges = random_ranges(rng, dtype)
    variables = list(ranges)
    pick = random_expr if rng.random() < 0.7 else random_condition
    expr = pick(rng, variables, rng.choice((2, 3)), dtype)
    analyzer = IndexAnalyzer()
    for var, dom in ranges.items():
        analyzer.bind(var, dom)
    envs = [env for env in some(points(ranges), rng) if _fits(expr, env)]
    for simplified in (analyzer.rewrite_simplify(expr), analyzer.canonical_simplify(expr), analyzer.simplify(expr)):
        assert_same_value(expr, simplified, envs)
    if pick is random_condition and analyzer.can_prove(expr):
        assert all(value is None or value == 1 for value in values(expr, envs))


def _fits(expr: PrimExpr, env: dict[Var, int]) -> bool:
    """True if no part of an expression leaves the range of indices."""
    return all(value is None or abs(value) < 1 << 30 for part in walk(expr) for value in values(part, [env]))  # type: ignore[arg-type]


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
        inner = {
            v: Range.from_min_extent(IntImm("int32", lane(r.min, env)), IntImm("int32", lane(r.extent, env))) for v, r in domain.items()
        }
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


@settings(SETTINGS, max_examples=8)
@given(SEEDS)
def test_5_deep_expressions(seed: int) -> None:
    rng = random.Random(seed)
    x, y = Var("x"), Var("y")
    ranges = {
        x: Range.from_min_extent(IntImm("int32", 0), IntImm("int32", 8)),
        y: Range.from_min_extent(IntImm("int32", -4), IntImm("int32", 8)),
    }
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
    ranges = {
        x: Range.from_min_extent(IntImm(dtype, least), IntImm(dtype, 3)),
        y: Range.from_min_extent(IntImm(dtype, -1), IntImm(dtype, 3)),
    }
    divisor = rng.choice((IntImm(dtype, 0), IntImm(dtype, -1), IntImm(dtype, least), y, y * IntImm(dtype, 0)))
    quotient = rng.choice((FloorDiv, FloorMod, Div, Mod))(rng.choice((x, x + IntImm(dtype, 1), IntImm(dtype, least), y)), divisor)
    expr = Select(rng.choice((y != 0, y > 0, x < y)).asobject(), quotient, rng.choice((x, y)))
    analyzer = Analyzer(ranges)
    assert_same_value(expr, analyzer.simplify(expr), points(ranges))
    assert_same_value(quotient, analyzer.simplify(quotient), points(ranges))
    bound = analyzer.const_int_bound(quotient)
    assert all(value is None or holds_bound(bound, value) for value in values(quotient, points(ranges)))
    assert most > 0


@settings(SETTINGS, max_examples=share_of(80))
@given(SEEDS)
def test_9_detected_maps_give_the_original_index(seed: int) -> None:
    rng = random.Random(seed)
    extents = [rng.choice((1, 2, 3, 4, 6)) for _ in range(3)]
    lows = [rng.choice((0, 0, 2, -3)) for _ in extents]
    iters = {
        Var(n): Range.from_min_extent(IntImm("int32", low), IntImm("int32", e)) for n, low, e in zip("ijk", lows, extents, strict=True)
    }
    indices = random_map(rng, iters)
    found = detect_iter_map(indices, iters)
    if not found.indices:
        assert found.errors
        return
    outputs = [Var(f"o{place}") for place in range(len(indices))]
    inverse = inverse_affine_iter_map(found, outputs)
    for env in points(iters):
        reached = [lane(index, env) for index in indices]
        assert [lane(to_expr(total), env) for total in found.indices] == reached
        back = dict(zip(outputs, reached, strict=True))
        assert {var: lane(inverse[var], back) for var in iters} == env
    assert len({tuple(lane(index, env) for index in indices) for env in points(iters)}) == len(points(iters))
