"""remove_no_op: what has no effect goes, what has one stays."""

from __future__ import annotations

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase3.remove_no_op import remove_no_op
from tensorexpr.tir.arithmetic import const
from tensorexpr.tir.expr import IntImm, Var
from tensorexpr.tir.intrin import call_extern, exp
from tensorexpr.tir.stmt import NOP, Allocate, AttrStmt, DeclBuffer, Evaluate, For, ForKind, IfThenElse, LetStmt, is_no_op, seq

from .builder import allocate, applied, flat, func, load, loop, statements, store, stores

A, B = flat("A", 16), flat("B", 16)


def test_empty_loops_and_branches() -> None:
    body = seq(loop("i", 4, lambda i: NOP), IfThenElse(load(A, 0) > 0.0, NOP), loop("j", 0, lambda j: store(B, 1.0, j)), store(B, 2.0, 0))
    result = applied(remove_no_op, func(body, A, B))
    assert stores(result) == ["B[0] = T.float32(2.0)"]
    assert not statements(result, For, IfThenElse)


def test_an_empty_then_case_turns_the_condition_round() -> None:
    result = applied(remove_no_op, func(IfThenElse(load(A, 0) > 0.0, NOP, store(B, 1.0, 0)), A, B))
    (branch,) = statements(result, IfThenElse)
    assert branch.else_case is None


def test_an_empty_else_case_goes() -> None:
    result = applied(remove_no_op, func(IfThenElse(load(A, 0) > 0.0, store(B, 1.0, 0), Evaluate(const(3))), A, B))
    assert statements(result, IfThenElse)[0].else_case is None


def test_stores_of_what_is_there() -> None:
    result = applied(remove_no_op, func(loop("i", 4, lambda i: seq(store(B, load(B, i), i), store(A, load(B, i), i))), A, B))
    assert stores(result) == ["A[i] = B[i]"]


def test_unused_values_and_storage() -> None:
    unused, used = Var("unused", "float32"), Var("used", "float32")
    body = LetStmt(unused, load(A, 0), LetStmt(used, load(A, 1), allocate("T", 4, lambda t: store(B, used, 0))))
    result = applied(remove_no_op, func(body, A, B))
    assert [stmt.var.name for stmt in statements(result, LetStmt)] == ["used"]
    assert not statements(result, Allocate)


def test_effects_stay() -> None:
    call = Evaluate(call_extern("int32", "f", A.data))
    bound = LetStmt(Var("x"), call_extern("int32", "g"), NOP)
    start = func(seq(call, bound, store(B, 1.0, 0)), A, B)
    assert remove_no_op(start, PassContext()) is start


def test_values_without_effect_go() -> None:
    body = seq(Evaluate(exp(load(A, 0))), AttrStmt(None, "hint", IntImm("int32", 1), NOP))
    assert is_no_op(remove_no_op(func(body, A), PassContext()).body)


def test_nothing_to_remove() -> None:
    start = func(loop("i", 4, lambda i: store(B, load(A, i), i)), A, B)
    assert remove_no_op(start, PassContext()) is start


def test_conditions_and_extents_of_nothing_are_evaluated_for_what_they_do() -> None:
    body = seq(IfThenElse(call_extern("bool", "f"), NOP), For(Var("i", "int32"), const(0), call_extern("int32", "g"), ForKind.SERIAL, NOP))
    result = remove_no_op(func(body, A, B), PassContext())
    assert [str(one.value) for one in statements(result, Evaluate)] == ['T.call_extern("bool", "f")', 'T.call_extern("int32", "g")']


def test_a_name_goes_with_its_storage() -> None:
    kept = store(A, 1.0, 0)
    buffer = flat("C", 4)
    result = applied(remove_no_op, func(Allocate(buffer.data, "float32", (const(4),), IntImm("bool", 1), DeclBuffer(buffer, kept)), A, B))
    assert result.body is kept
