"""trim_no_ops: a condition of a reduction loop becomes a bound of it, and every iteration that does something still runs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.lower.phase2.trim_no_ops import trim_no_ops
from tensorexpr.tir.arithmetic import all as all_of
from tensorexpr.tir.arithmetic import const
from tensorexpr.tir.buffer import Buffer
from tensorexpr.tir.expr import Call, PrimExpr, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import Evaluate, For, ForKind, IfThenElse, Stmt, seq
from tests.effort import share_of

from .builder import SERIAL, UNROLLED, VECTORIZED, applied, flat, func, guard, load, loop, loops, statements, store


def _add(c: Buffer, i: PrimExpr, value: PrimExpr) -> Stmt:
    return store(c, load(c, i) + value, i)


def _triangle(n: int, kind: ForKind = SERIAL) -> PrimFunc:
    """C[i] = sum of A[k] for k <= i."""
    a, c = flat("A", n), flat("C", n)
    body = loop("i", n, lambda i: loop("k", n, lambda k: guard(k <= i, _add(c, i, load(a, k)), hint=False), kind))
    return func(body, a, c)


def test_a_triangle() -> None:
    result = applied(trim_no_ops, _triangle(6))
    assert loops(result) == ["i 0:6", "k 0:i + 1"]
    assert not statements(result, IfThenElse)


def test_lines_asked_for_ahead_keep_no_iteration_alive() -> None:
    a, c = flat("A", 6), flat("C", 6)

    def body(i: PrimExpr, k: PrimExpr) -> Stmt:
        ask = Evaluate(Call("int32", "tir.prefetch", (load(a, k + 2), *(const(flag, "int32") for flag in (0, 3, 1)))))
        return seq(ask, guard(k <= i, _add(c, i, load(a, k)), hint=False))

    result = applied(trim_no_ops, func(loop("i", 6, lambda i: loop("k", 6, lambda k: body(i, k))), a, c))
    assert loops(result) == ["i 0:6", "k 0:i + 1"]
    assert not statements(result, IfThenElse) and statements(result, Evaluate)


@pytest.mark.parametrize("kind", [UNROLLED, VECTORIZED])
def test_loops_of_other_kinds_stay(kind: ForKind) -> None:
    start = _triangle(6, kind)
    assert trim_no_ops(start, None) is start  # type: ignore[arg-type]


def test_loops_over_elements_keep_their_extent() -> None:
    c = flat("C", 6)
    start = func(loop("i", 6, lambda i: loop("k", 6, lambda k: guard(k <= i, store(c, 1.0, k), hint=False))), c)
    assert applied(trim_no_ops, start) is start


def test_splits_are_left_to_partition() -> None:
    a, c = flat("A", 10), flat("C", 1)
    zero = const(0)
    start = func(loop("o", 3, lambda o: loop("k", 4, lambda k: guard(o * 4 + k < 10, _add(c, zero, load(a, o * 4 + k))))), a, c)
    assert applied(trim_no_ops, start) is start


def test_both_borders_and_what_else_is_asked_stays() -> None:
    a, c = flat("A", 8), flat("C", 8)

    def body(h: Var, k: Var, v: Var) -> Stmt:
        inside = all_of(h + k >= 1, h + k < 9, v < 2)
        return guard(inside, _add(c, h, load(a, h + k - 1)), hint=False)

    nest = loop("h", 8, lambda h: loop("k", 3, lambda k: loop("v", 4, lambda v: body(h, k, v))))
    result = applied(trim_no_ops, func(nest, a, c))
    assert loops(result)[0] == "h 0:8" and "v 0:2" in loops(result)
    trimmed = next(stmt for stmt in statements(result, For) if stmt.loop_var.name == "k")
    assert str(trimmed.min) == "T.max(1 - h, 0)" and "T.min(9 - h, 3)" in str(trimmed.extent)


def test_what_stands_beside_the_condition_still_runs() -> None:
    a, c, d = flat("A", 6), flat("C", 6), flat("D", 1)

    def body(i: Var, k: Var) -> Stmt:
        return seq(guard(k <= i, _add(c, i, load(a, k)), hint=False), _add(d, const(0), const(1.0)))

    start = func(loop("i", 6, lambda i: loop("k", 6, lambda k: body(i, k))), a, c, d)
    assert applied(trim_no_ops, start) is start


def test_other_branches_and_memory_are_no_bounds() -> None:
    a, n, c = flat("A", 6), flat("N", 6, "int32"), flat("C", 6)
    zero = const(0.0)

    def otherwise(i: Var, k: Var) -> Stmt:
        return IfThenElse(k <= i, _add(c, i, load(a, k)), _add(c, i, zero))

    def counted(i: Var, k: Var) -> Stmt:
        return guard(k < load(n, i), _add(c, i, load(a, k)), hint=False)

    for body in (otherwise, counted):
        start = func(loop("i", 6, lambda i, body=body: loop("k", 6, lambda k: body(i, k))), a, n, c)
        assert applied(trim_no_ops, start) is start


def test_a_condition_on_a_loop_further_in_is_taken_there() -> None:
    a, c = flat("A", 12), flat("C", 1)

    def body(p: Var, q: Var) -> Stmt:
        return guard(p + q < 7, _add(c, const(0), load(a, p + q)), hint=False)

    result = applied(trim_no_ops, func(loop("p", 6, lambda p: loop("q", 6, lambda q: body(p, q))), a, c))
    assert loops(result) == ["p 0:6", "q 0:T.min(7 - p, 6)"]


@settings(max_examples=share_of(80), deadline=None, derandomize=True)
@given(st.data())
def test_random_conditions(data: st.DataObject) -> None:
    """Affine comparisons of any sign and size, possibly never true; loops that need not start at 0."""
    small = st.integers(-3, 3)
    low, depth = data.draw(st.integers(-2, 2)), data.draw(st.integers(0, 5))
    a, c = flat("A", 16), flat("C", 5)

    def condition(i: Var, k: Var) -> PrimExpr:
        x, y, z = (data.draw(small) for _ in range(3))
        left, right = x * i + y * k, data.draw(st.sampled_from((0, 1))) * i + z
        return data.draw(st.sampled_from((left < right, left <= right, left > right, left >= right)))

    def body(i: Var, k: Var) -> Stmt:
        inside = all_of(*(condition(i, k) for _ in range(data.draw(st.integers(1, 3)))))
        return guard(inside, _add(c, i, load(a, k + 4)), hint=False)

    applied(trim_no_ops, func(loop("i", 5, lambda i: loop("k", depth, lambda k: body(i, k), low=low)), a, c))
