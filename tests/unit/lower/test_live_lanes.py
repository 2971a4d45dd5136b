"""Lanes that are decided: found as brute force finds them, and stores of only these keep what is computed."""

from __future__ import annotations

import operator
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.phase2.live_lanes import Lanes, live_lanes
from tensorexpr.lower.phase2.settle_conditions import settle_conditions
from tensorexpr.lower.rebuild import walk_statements
from tensorexpr.tir.buffer import Buffer
from tensorexpr.tir.expr import GE, GT, LE, LT, Broadcast, BufferLoad, CmpExpr, IntImm, Max, PrimExpr, Ramp, Range, Var
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.stmt import BufferStore, Stmt, seq

from .builder import allocate, check_kept, flat, func, loop, store

HOLDS: dict[type[CmpExpr], Callable[[int, int], bool]] = {LT: operator.lt, LE: operator.le, GT: operator.gt, GE: operator.ge}
ZERO = Broadcast(IntImm("int32", 0), 6)


def ramp(base: PrimExpr, stride: int, lanes: int = 6) -> Ramp:
    return Ramp(base, IntImm("int32", stride), lanes)


@settings(deadline=None)
@given(
    st.sampled_from((LT, LE, GT, GE)), st.integers(-5, 5), st.integers(1, 3), st.integers(-2, 3), st.integers(2, 8), st.integers(-12, 12)
)
@example(LT, 31, 2, 2, 6, 41)
def test_what_is_found_is_what_holds(op: type[CmpExpr], low: int, count: int, stride: int, lanes: int, bound: int) -> None:
    o, analyzer = Var("o"), Analyzer()
    analyzer.bind(o, Range.from_min_extent(IntImm("int32", low), IntImm("int32", count)))
    found = live_lanes(op(ramp(o, stride, lanes), Broadcast(IntImm("int32", bound), lanes)), analyzer)
    runs = [{HOLDS[op](value + stride * lane, bound) for value in range(low, low + count)} for lane in range(lanes)]
    decided = all(len(outcomes) == 1 for outcomes in runs)
    if found is not None:
        assert decided and [lane for lane in range(lanes) if True in runs[lane]] == list(range(found.first, found.end))
    elif decided:
        assert not any(True in outcomes for outcomes in runs), "only what never runs is left to others"


def tiles(column_stride: int, local: bool, mask_stride: int = 2) -> PrimFunc:
    """y[o*6 : o*6+6] = max(t[0], t[s], t[2s], ...) in the lanes with o + 2*lane < 41, for o in 31 and 32."""
    x, y = flat("x", 64, "int32"), flat("y", 256, "int32")

    def body(o: Var, t: Buffer) -> BufferStore:
        mask = ramp(o, mask_stride) < Broadcast(IntImm("int32", 41), 6)
        value = Max(BufferLoad(t, (ramp(IntImm("int32", 1), column_stride),), mask), ZERO)
        return BufferStore(y, value, (ramp(o * 6, 1),), mask)

    if not local:
        return func(loop("o", 2, lambda o: body(o, x), low=31), x, y)
    every = ramp(IntImm("int32", 0), 1, 64)

    def copied(t: Buffer) -> Stmt:
        return seq(store(t, BufferLoad(x, (every,)), every), loop("o", 2, lambda o: body(o, t), low=31))

    return func(allocate("t", 64, copied, "int32"), x, y)


def stores(function: PrimFunc) -> list[BufferStore]:
    return [stmt for stmt in walk_statements(function.body) if isinstance(stmt, BufferStore) and stmt.buffer.name == "y"]


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("column_stride", [1, 8])
def test_the_lanes_that_run_in_every_iteration_are_a_vector(column_stride: int, local: bool) -> None:
    before = tiles(column_stride, local)
    after = settle_conditions(before, PassContext())
    (only,) = stores(after)
    if local and column_stride == 1:  # may be a register, which stays whole: a constant mask
        assert only.value.dtype == "int32x6" and str(only.predicate) == "T.Ramp(0, 1, 6) < T.Broadcast(5, 6)"
    else:
        assert only.value.dtype == "int32x5" and only.predicate is None and "predicate" not in str(only.value)
    check_kept(before, after)


def test_lanes_that_run_in_some_iterations_keep_their_mask() -> None:
    before = tiles(8, False, mask_stride=9)  # 31, 40, ... and 32, 41, ...
    assert settle_conditions(before, PassContext()) is before


def test_runs_of_lanes() -> None:
    assert Lanes(0, 5, 6).both(Lanes(2, 6, 6)) == Lanes(2, 5, 6) and Lanes(2, 5, 6).mask() is None
    assert str(Lanes(0, 5, 6).mask()) == "T.Ramp(0, 1, 6) < T.Broadcast(5, 6)"
    assert str(Lanes(4, 6, 6).mask()) == "T.Ramp(0, 1, 6) >= T.Broadcast(4, 6)"
