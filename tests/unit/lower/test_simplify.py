"""simplify: shorter indices, and no guards and loops that decide nothing."""

from __future__ import annotations

import numpy as np

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase1.simplify import simplify
from tensorexpr.tir.expr import IntImm, SizeVar, StringImm, Var
from tensorexpr.tir.stmt import AssertStmt, BufferStore, For, IfThenElse, Stmt

from .builder import PARALLEL, applied, flat, func, guard, load, loop, loops, statements, store, stores


def test_indices_under_loop_ranges() -> None:
    a, b = flat("A", 24), flat("B", 24)
    body = loop("i", 4, lambda i: loop("j", 6, lambda j: store(b, load(a, (i * 6 + j) // 6 * 6 + (i * 6 + j) % 6), i * 6 + j)))
    assert stores(applied(simplify, func(body, a, b))) == ["B[i * 6 + j] = A[i * 6 + j]"]


def test_guards_that_always_hold_disappear() -> None:
    a = flat("A", 12)
    body = loop("i", 3, lambda i: loop("j", 4, lambda j: guard(i * 4 + j < 12, store(a, 1.0, i * 4 + j))))
    assert not statements(applied(simplify, func(body, a)), IfThenElse)


def test_guards_that_never_hold_take_their_body_along() -> None:
    a = flat("A", 12)
    body = loop("i", 3, lambda i: IfThenElse(i > 5, store(a, 1.0, i), store(a, 2.0, i)))
    assert stores(applied(simplify, func(body, a))) == ["A[i] = T.float32(2.0)"]


def test_a_condition_is_known_inside() -> None:
    a = flat("A", 12)
    body = loop("i", 12, lambda i: guard(i < 3, guard(i < 7, store(a, 1.0, i))))
    assert len(statements(applied(simplify, func(body, a)), IfThenElse)) == 1


def test_the_negated_condition_is_known_in_the_else_case() -> None:
    a = flat("A", 12)
    body = loop("i", 12, lambda i: IfThenElse(i < 3, store(a, 1.0, i), guard(i >= 3, store(a, 2.0, i))))
    assert len(statements(applied(simplify, func(body, a)), IfThenElse)) == 1


def test_loops_of_one_iteration() -> None:
    a = flat("A", 4)
    body = loop("p", 1, lambda p: loop("i", 4, lambda i: store(a, 1.0, p * 4 + i)), PARALLEL)
    assert loops(applied(simplify, func(body, a))) == ["i 0:4"]


def test_trivial_loops_are_kept_on_request_and_under_pragmas() -> None:
    a = flat("A", 4)
    start = func(loop("p", 1, lambda p: store(a, 1.0, p)), a)
    assert loops(applied(simplify, start, config={"tir.debug_keep_trivial_loop": 1})) == ["p 0:1"]
    pragma = func(loop("p", 1, lambda p: store(a, 1.0, p), auto_unroll_max_step=8), a)
    assert loops(applied(simplify, pragma)) == ["p 0:1"]


def test_empty_loops() -> None:
    a = flat("A", 4)
    assert not statements(applied(simplify, func(loop("i", 0, lambda i: store(a, 1.0, i)), a)), For)


def test_symbolic_extents_and_negative_minimum() -> None:
    n = SizeVar("n")
    a = flat("A", 40)

    def body(i: Var) -> Stmt:
        return guard(i + 8 >= 0, store(a, 1.0, i + 8))

    start = func(loop("i", n, body, low=-8), a, n)
    result = applied(simplify, start, [np.zeros(40, np.float32), 20])
    assert not statements(result, IfThenElse)


def test_asserts() -> None:
    a = flat("A", 4)
    body = loop("i", 4, lambda i: AssertStmt(i < 4, StringImm("too far"), AssertStmt(i < 3, StringImm("ha"), store(a, 1.0, 0))))
    start = func(body, a)
    assert len(statements(simplify(start, PassContext()), AssertStmt)) == 1
    off = PassContext(config={"tir.disable_assert": 1})
    assert not statements(simplify(start, off), AssertStmt)


def test_simple_functions_stay_as_they_are() -> None:
    a = flat("A", 4)
    n = Var("n")
    start = func(loop("i", 4, lambda i: guard(i < n, store(a, load(a, i) + 1.0, i))), a, n)
    assert simplify(start, PassContext()) is start


def test_int64_indices_stay_int64() -> None:
    a = flat("A", 24)
    body = loop("i", 4, lambda i: store(a, 1.0, i * IntImm("int64", 6) // IntImm("int64", 3)), dtype="int64")
    (stored,) = statements(applied(simplify, func(body, a)), BufferStore)
    assert (str(stored.indices[0]), stored.indices[0].dtype) == ("i * T.int64(2)", "int64")
