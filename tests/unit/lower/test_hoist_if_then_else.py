"""hoist_if_then_else: conditions leave the loops that don't change them."""

from __future__ import annotations

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase3.hoist_if_then_else import hoist_if_then_else
from tensorexpr.tir.arithmetic import all as all_of
from tensorexpr.tir.expr import Var
from tensorexpr.tir.stmt import For, IfThenElse, Stmt, seq

from .builder import applied, arrays, flat, func, guard, load, loop, statements, store

A, B = flat("A", 64), flat("B", 64)


def test_through_all_loops_that_do_not_matter() -> None:
    def body(i: Var) -> Stmt:
        return loop("j", 4, lambda j: loop("k", 4, lambda k: guard(i < 2, store(B, 1.0, i * 16 + j * 4 + k))))

    result = applied(hoist_if_then_else, func(loop("i", 4, body), B))
    assert isinstance(result.body, For)
    assert isinstance(result.body.body, IfThenElse)


def test_else_cases_get_a_loop_of_their_own() -> None:
    n = Var("n")
    body = loop("i", 4, lambda i: IfThenElse(n > 2, store(B, 1.0, i), store(B, load(A, i), i)))
    start = func(body, A, B, n)
    for size in (1, 5):
        result = applied(hoist_if_then_else, start, [*arrays(func(body, A, B)), size])
    assert isinstance(result.body, IfThenElse)
    assert len({stmt.loop_var for stmt in statements(result, For)}) == 2


def test_only_the_invariant_part_leaves() -> None:
    n = Var("n")
    body = loop("i", 4, lambda i: IfThenElse(all_of(i < 3, n > 2, load(A, 0) > -99.0), store(B, 1.0, i)))
    result = applied(hoist_if_then_else, func(body, A, B, n), [*arrays(func(body, A, B)), 5])
    outer, inner = statements(result, IfThenElse)
    assert str(outer.condition) == "n > 2"
    assert "A[0]" in str(inner.condition)


def test_what_varies_stays() -> None:
    body = loop("i", 4, lambda i: guard(i < 3, store(B, 1.0, i)))
    start = func(body, B)
    assert hoist_if_then_else(start, PassContext()) is start


def test_conditions_that_read_memory_stay() -> None:
    start = func(loop("i", 4, lambda i: IfThenElse(load(B, 0) > 0.0, store(B, -1.0, 0))), B)
    assert hoist_if_then_else(start, PassContext()) is start


def test_conditions_of_a_part_of_the_body_stay() -> None:
    n = Var("n")
    start = func(loop("i", 4, lambda i: seq(store(A, 1.0, i), guard(n > 1, store(B, 1.0, i)))), A, B, n)
    assert hoist_if_then_else(start, PassContext()) is start
