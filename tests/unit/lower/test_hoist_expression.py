"""hoist_expression: what every iteration computes anyway is computed once, and nothing that may not be computed at all."""

from __future__ import annotations

import numpy as np

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase3.hoist_expression import hoist_expression
from tensorexpr.tir.arithmetic import const
from tensorexpr.tir.buffer import Buffer
from tensorexpr.tir.expr import Broadcast, IntImm, Ramp, Var
from tensorexpr.tir.intrin import call_extern, exp, if_then_else
from tensorexpr.tir.stmt import BufferStore, Evaluate, For, LetStmt, Stmt, seq

from .builder import allocate, applied, arrays, flat, func, guard, load, loop, parallel, statements, store

A, B, C = flat("A", 64), flat("B", 64), flat("C", 64)


def test_loads_calls_and_divisions() -> None:
    def body(i: Var) -> Stmt:
        return loop("j", 8, lambda j: store(B, load(A, i) * exp(load(A, i + 8) * 0.0) + load(C, j), i * 8 + j))

    result = applied(hoist_expression, func(loop("i", 8, body), A, B, C))
    outer = result.body
    assert isinstance(outer, For)
    assert isinstance(outer.body, LetStmt)
    (let,) = statements(result, LetStmt)
    assert str(let.value) == "A[i] * T.exp(A[i + 8] * T.float32(0.0))"


def test_the_whole_invariant_part_is_one_value() -> None:
    body = loop("j", 8, lambda j: store(B, (load(A, 0) + load(A, 1)) * load(C, j), j))
    (let,) = statements(applied(hoist_expression, func(body, A, B, C)), LetStmt)
    assert str(let.value) == "A[0] + A[1]"


def test_through_as_many_loops_as_possible() -> None:
    body = loop("i", 4, lambda i: loop("j", 8, lambda j: store(B, load(A, 5) + 1.0, i * 8 + j)))
    assert isinstance(applied(hoist_expression, func(body, A, B)).body, LetStmt)


def test_what_the_loop_writes_stays() -> None:
    start = func(loop("j", 8, lambda j: store(B, load(B, 0) + 1.0, j)), B)
    assert hoist_expression(start, PassContext()) is start


def test_what_a_condition_guards_stays() -> None:
    small = flat("S", 1)
    n = Var("n")
    start = func(loop("j", 8, lambda j: guard(n > 3, store(B, load(small, n - 4), j), hint=False)), B, small, n)
    assert hoist_expression(start, PassContext()) is start
    lazy = func(loop("j", 8, lambda j: store(B, if_then_else(j > 8, load(small, n), const(0.0)), j)), B, small, n)
    assert hoist_expression(lazy, PassContext()) is lazy


def test_loops_that_may_not_run_keep_theirs() -> None:
    small = flat("S", 1)
    n = Var("n")
    body = loop("j", n, lambda j: store(B, load(small, 1 - n), j))
    start = func(body, B, small, n)
    assert hoist_expression(start, PassContext()) is start
    nested = func(loop("i", 4, lambda i: loop("j", n, lambda j: store(B, load(small, 1 - n), j))), B, small, n)
    assert hoist_expression(nested, PassContext()) is nested


def test_the_condition_itself_is_computed_for_sure() -> None:
    body = loop("j", 8, lambda j: guard(load(A, 3) > 0.0, store(B, 1.0, j), hint=False))
    assert statements(applied(hoist_expression, func(body, A, B)), LetStmt)


def test_index_arithmetic_stays() -> None:
    n = Var("n")
    body = loop("j", 8, lambda j: store(B, load(A, n * 3 // 7 + j), n * 2 + j))
    start = func(body, A, B, n)
    assert hoist_expression(start, PassContext()) is start


def test_parallel_loops_keep_theirs() -> None:
    start = func(parallel("j", 8, lambda j: store(B, load(A, 0), j)), A, B)
    assert hoist_expression(start, PassContext()) is start


def test_registers_stay() -> None:
    body = allocate("R", 1, lambda r: seq(store(r, 1.0, 0), loop("j", 8, lambda j: store(B, load(r, 0) * 2.0, j))), scope="register")
    start = func(body, B)
    assert hoist_expression(start, PassContext()) is start


def test_only_as_many_as_registers_hold() -> None:
    vector = Ramp(IntImm("int32", 0), IntImm("int32", 1), 64)  # four registers

    def body(j: Var) -> Stmt:
        parts = [store(B, load(A, vector) * float(i + 2), vector) for i in range(4)]
        return seq(*parts, *(store(C, load(A, i), j) for i in range(9)))

    result = applied(hoist_expression, func(loop("j", 8, body), A, B, C))
    assert len(statements(result, LetStmt)) == 2  # eight of 32 registers


def test_calls_with_effects_may_write_what_they_get() -> None:
    def body(j: Var) -> Stmt:
        return seq(store(B, load(A, 0), j), Evaluate(call_extern("int32", "f", A.data)))

    start = func(loop("j", 8, body), A, B)
    assert hoist_expression(start, PassContext()) is start


def test_special_values_survive() -> None:
    start = func(loop("j", 4, lambda j: store(B, load(A, 0) / load(A, 1) + load(A, j), j)), A, B)
    args = arrays(start)
    args[0][:2] = [np.nan, 0.0]
    applied(hoist_expression, start, args)


def test_a_register_tile_comes_first() -> None:
    vector = Ramp(IntImm("int32", 0), IntImm("int32", 1), 16)

    def fixed(slots: int) -> int:
        def body(r: Buffer) -> Stmt:
            updates = [BufferStore(r, load(r, i) + load(A, vector) * float(i + 2), (IntImm("int32", i),)) for i in range(slots)]
            init = [BufferStore(r, Broadcast(const(0.0), 16), (IntImm("int32", i),)) for i in range(slots)]
            return seq(*init, loop("k", 8, lambda k: seq(*updates)), store(B, load(r, 0), vector))

        start = func(allocate("R", slots, body, "float32x16", "register"), A, B)
        return len(statements(applied(hoist_expression, start), LetStmt))

    assert fixed(28) == 0
    assert fixed(24) == 4
    assert fixed(4) == 4
