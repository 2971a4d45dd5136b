"""How the interpreter finds the variables of shapes that stand in expressions only, and how many iterations it takes."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import tir
from tensorexpr.tir.expr import IntImm, PrimExpr, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.interpreter import InterpreterError, IterationLimitError, interpret
from tensorexpr.tir.stmt import BufferStore, For, ForKind

N, M = Var("n"), Var("m")


def last_size(shape: tuple[PrimExpr, ...], size: PrimExpr) -> PrimFunc:
    """Stores `size` into its first argument; the second has `shape`."""
    out, a = tir.decl_buffer((1,), "int32", name="out"), tir.decl_buffer(shape, name="A")
    first, second = Var("o", "handle"), Var("a", "handle")
    return PrimFunc((first, second), BufferStore(out, size, (IntImm("int32", 0),)), None, {first: out, second: a})


@pytest.mark.parametrize(
    ("shape", "array_shape", "size", "value"),
    [((N * 2,), (6,), N, 3), ((N + 2, M * 3 - N), (4, 7), M, 3), ((M * 2 + N, N), (9, 5), M, 2), ((7 - N,), (7,), N, 0)],
)
def test_the_only_unknown_is_solved_for(shape: tuple[PrimExpr, ...], array_shape: tuple[int, ...], size: PrimExpr, value: int) -> None:
    out = np.zeros(1, np.int32)
    interpret(last_size(shape, size), [out, np.zeros(array_shape, np.float32)])
    assert out[0] == value


def test_no_size_gives_the_extent() -> None:
    with pytest.raises(InterpreterError, match=r"argument A: shape \(7,\) where \(6,\) is needed"):
        interpret(last_size((N * 2,), N), [np.zeros(1, np.int32), np.zeros(7, np.float32)])


@pytest.mark.parametrize("kind", [ForKind.SERIAL, ForKind.PARALLEL])
def test_the_iterations_of_all_loops_are_counted_before_they_run(kind: ForKind) -> None:
    i, j, place = Var("i"), Var("j"), IntImm("int32", 0)
    once = last_size((N,), N)
    inner = For(j, place, IntImm("int32", 1 << 30), ForKind.SERIAL, once.body)
    few = once.with_body(For(i, place, IntImm("int32", 1), kind, once.body))
    endless = once.with_body(For(i, place, IntImm("int32", 3), kind, inner))
    arrays = [np.zeros(1, np.int32), np.zeros(6, np.float32)]
    interpret(few, arrays, max_iterations=1)
    with pytest.raises(IterationLimitError, match=r"loop i: more than 0 iterations in all"):
        interpret(few, arrays, max_iterations=0)
    with pytest.raises(IterationLimitError, match=r"loop j: more than 1000 iterations"):
        interpret(endless, arrays, max_iterations=1000)
