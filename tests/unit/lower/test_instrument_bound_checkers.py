"""instrument_bound_checkers: wild accesses become failing asserts, safe ones stay silent."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.vectorize_loop import vectorize_loop
from tensorexpr.lower.phase3.instrument_bound_checkers import instrument_bound_checkers
from tensorexpr.tir.arithmetic import all as all_of
from tensorexpr.tir.arithmetic import const
from tensorexpr.tir.expr import Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.interpreter import InterpreterError, interpret
from tensorexpr.tir.intrin import if_then_else
from tensorexpr.tir.stmt import AssertStmt, IfThenElse

from .builder import applied, flat, func, guard, load, loop, statements, store, vectorized

A, B = flat("A", 8), flat("B", 8)
ON = PassContext(config={"tir.instrument_bound_checkers": 1})


def _fails(start: PrimFunc, n: int, name: str) -> None:
    checked = instrument_bound_checkers(start, ON)
    with pytest.raises(InterpreterError, match=f"assert .* failed: an access to {name} is out of bounds"):
        interpret(checked, [np.zeros(8, np.float32), np.zeros(8, np.float32), n])


def _passes(start: PrimFunc, n: int) -> None:
    checked = instrument_bound_checkers(start, ON)
    assert statements(checked, AssertStmt)
    interpret(checked, [np.zeros(8, np.float32), np.zeros(8, np.float32), n])


def test_scalars() -> None:
    n = Var("n")
    start = func(loop("i", n, lambda i: store(B, load(A, i - 1 + 1), i)), A, B, n)
    _passes(start, 8)
    _fails(start, 9, "A")
    below = func(store(B, 1.0, n), A, B, n)
    _passes(below, 0)
    _fails(below, -1, "B")


def test_guarded_loads_are_checked_where_they_happen() -> None:
    n = Var("n")
    start = func(loop("i", 8, lambda i: store(B, if_then_else(all_of(i >= n, i - n < 8), load(A, i - n), const(0.0)), i)), A, B, n)
    _passes(start, 3)
    _passes(start, -3)
    wrong = func(loop("i", 8, lambda i: store(B, if_then_else(i >= n, load(A, i - n), const(0.0)), i)), A, B, n)
    _fails(wrong, -3, "A")


def test_lazy_conditions() -> None:
    n = Var("n")
    start = func(loop("i", 8, lambda i: IfThenElse(all_of(i < n, load(A, n - 1 - i) > -1.0), store(B, 1.0, i))), A, B, n)
    _passes(start, 8)
    _fails(start, 9, "A")


def test_vectors_and_masks() -> None:
    n = Var("n")
    start = vectorize_loop(func(vectorized("v", 16, lambda v: guard(v < n, store(B, load(A, v), v))), A, B, n), PassContext())
    _passes(start, 8)
    _fails(start, 9, "A")


def test_shifted_vectors() -> None:
    n = Var("n")
    start = vectorize_loop(func(vectorized("v", 4, lambda v: store(B, load(A, v + n), v * 2)), A, B, n), PassContext())
    _passes(start, 4)
    _fails(start, 5, "A")


def test_only_on_request() -> None:
    start = func(store(B, load(A, 0), 0), A, B)
    assert instrument_bound_checkers(start, PassContext()) is start
    applied(instrument_bound_checkers, start, config={"tir.instrument_bound_checkers": 1})
