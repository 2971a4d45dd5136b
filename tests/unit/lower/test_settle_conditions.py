"""Conditions of values: which are dropped after unrolling, which stay, and that nothing else changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.settle_conditions import settle_conditions
from tensorexpr.tir import intrin
from tensorexpr.tir.arithmetic import all as all_of
from tensorexpr.tir.buffer import Buffer
from tensorexpr.tir.expr import NE, Add, And, Broadcast, BufferLoad, FloatImm, IntImm, Mul, PrimExpr, Ramp, Select, Var
from tensorexpr.tir.function import PrimFunc

from .builder import check_kept, flat, func, load, loop, store

ZERO = FloatImm("float32", 0.0)
X, Y = flat("x", 128), flat("y", 128)
Value = Callable[[Buffer, Var], PrimExpr]


def nest(value: Value) -> PrimFunc:
    """y[i] = value(x, i) for 8 numbers i, or vectors of 8."""
    one = value(X, Var("i"))
    lanes = 8 if "x8" in one.dtype else 1
    at: Callable[[Var], PrimExpr] = lambda i: Ramp(i * 8, IntImm("int32", 1), 8) if lanes > 1 else i  # noqa: E731
    return func(loop("i", 8, lambda i: store(Y, value(X, i), at(i))), X, Y)


def settled(value: Value) -> tuple[PrimFunc, PrimFunc]:
    before = nest(value)
    return before, settle_conditions(before, PassContext())


def vector(base: PrimExpr, stride: int = 1) -> Ramp:
    return Ramp(base, IntImm("int32", stride), 8)


def everywhere(value: PrimExpr | int) -> Broadcast:
    return Broadcast(IntImm("int32", value) if isinstance(value, int) else value, 8)


def masked(x: Buffer, index: Ramp, mask: PrimExpr) -> PrimExpr:
    return Select(mask, BufferLoad(x, (index,), mask), Broadcast(ZERO, 8))


SETTLED: dict[str, Value] = {
    "of a value": lambda x, i: intrin.if_then_else(i + 3 >= 1, load(x, i), ZERO),
    "several of them": lambda x, i: intrin.if_then_else(all_of(i >= 0, i * 2 + 1 < 128), load(x, i), ZERO),
    "in all lanes": lambda x, i: masked(x, vector(i * 8), vector(i * 8 + 1).__class__(i * 8 + 1, IntImm("int32", 1), 8) >= everywhere(1)),
    "one scalar for all lanes": lambda x, i: masked(x, vector(i * 8), Broadcast(i < 9, 8)),
    "inside of arithmetic": lambda x, i: Mul(Add(intrin.if_then_else(i < 8, load(x, i), ZERO), load(x, i)), load(x, i)),
}


@pytest.mark.parametrize("name", list(SETTLED))
def test_conditions_that_hold_are_dropped(name: str) -> None:
    before, after = settled(SETTLED[name])
    assert not any(word in after.script() for word in ("if_then_else", "Select", "predicate"))
    check_kept(before, after)


OPEN: dict[str, Value] = {
    "first iteration": lambda x, i: intrin.if_then_else(i >= 1, load(x, i), ZERO),
    "last lanes": lambda x, i: masked(x, vector(i * 8), vector(i * 8) < everywhere(60)),
    "a lane in the middle": lambda x, i: masked(x, vector(i * 8), NE(vector(i * 8), everywhere(3))),
    "what is in memory": lambda x, i: intrin.if_then_else(load(x, i) >= FloatImm("float32", 0.0), load(x, i), ZERO),
}


@pytest.mark.parametrize("name", list(OPEN))
def test_conditions_that_are_open_stay(name: str) -> None:
    before, after = settled(OPEN[name])
    assert after is before


def test_only_what_holds_leaves_a_conjunction() -> None:
    before, after = settled(lambda x, i: masked(x, vector(i * 8), And(Broadcast(i < 9, 8), vector(i * 8) < everywhere(60))))
    assert "< T.Broadcast(60, 8)" in after.script() and "< 9" not in after.script()
    check_kept(before, after)


def test_a_condition_is_judged_in_its_own_loop() -> None:
    """The same condition, shared as an expression, holds in one loop and not in the next."""
    i = Var("i")
    value = intrin.if_then_else(i < 8, load(X, i), ZERO)
    both = func(loop("k", 1, lambda k: loop("i", 8, lambda _: store(Y, value, i))), X, Y)
    assert settle_conditions(both, PassContext()) is both, "a variable of no loop around it has any value"
