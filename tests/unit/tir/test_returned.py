"""Functions that return a number: compiled, interpreted, saved."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import tir
from tensorexpr.errors import DeclarationError
from tensorexpr.script import from_source
from tensorexpr.tir.interpreter import interpret


def test_numbers_are_returned_and_wrap_in_their_type() -> None:
    func: Any = from_source('@T.prim_func\ndef f(x: T.int8, y: T.int8) -> T.int8:\n    T.evaluate(T.ret(x * y, dtype="int8"))')
    built = tvm.build(func)
    for x, y in ((3, 4), (127, 127), (-128, -1)):
        wanted = int((np.array([x], np.int8) * np.array([y], np.int8))[0])
        assert built(x, y) == wanted == interpret(func, [x, y])
    assert pickle.loads(pickle.dumps(built))(5, 5) == 25
    assert built.time_evaluator("f", number=1)(5, 5).mean >= 0


def test_a_condition_may_return_early() -> None:
    func: Any = from_source(
        "@T.prim_func\ndef f(x: T.int32, A: T.Buffer((1,), 'int32')) -> T.float32:\n"
        "    if x > 3:\n        return T.float32(1.5)\n    A[0] = x\n    return T.float32(2.5)"
    )
    built = tvm.build(func)
    runs: list[Any] = [built, lambda *args: interpret(func, args)]
    for run in runs:
        memory = np.zeros(1, np.int32)
        assert (run(4, memory), int(memory[0])) == (1.5, 0)
        assert (run(3, memory), int(memory[0])) == (2.5, 3)


def test_a_return_out_of_a_loop_is_refused() -> None:
    func: Any = from_source("@T.prim_func\ndef f(x: T.int32) -> T.int32:\n    for i in range(x):\n        return i\n    return 3")
    for run in (tvm.build, lambda f: interpret(f, [1])):
        with pytest.raises(DeclarationError, match="a return inside of a For"):
            run(func)


def test_what_follows_a_return_that_may_not_be_taken_is_kept_or_refused() -> None:
    head = "@T.prim_func\ndef f(x: T.int32) -> T.int32:\n    "
    inside: Any = from_source(head + "with T.LetStmt(x + 1) as y:\n        if y > 3:\n            return 1\n    return 2")
    for run in (tvm.build, lambda f: interpret(f, [1])):
        with pytest.raises(DeclarationError, match="inside of a LetStmt"):
            run(inside)
    both: Any = from_source(head + "if x > 3:\n        return 1\n    else:\n        return 2\n    return 3")
    assert [interpret(both, [x]) for x in (3, 4)] == [2, 1]


def test_ret_makes_the_call() -> None:
    assert str(tir.ret(tir.const(1))) == "T.ret(1)" and tir.ret(tir.const(1.0, "float64")).dtype == "float64"
