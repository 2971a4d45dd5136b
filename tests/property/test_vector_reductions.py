"""Property 15, vectorised reductions: the lanes are combined into what the reference gives, with guards, masks and odd numbers of lanes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.spaces.default import default_schedule
from tensorexpr.te.reducer import greatest, least
from tensorexpr.testing import assert_schedule_correct
from tensorexpr.tir.expr import PrimExpr
from tests.effort import share_of

REDUCERS = {
    "sum": te.sum,
    "max": te.max,
    "min": te.min,
    "greatest": greatest,
    "least": least,
    "prod": te.comm_reducer(lambda a, b: a * b, lambda t: te.const(1, t), name="prod"),
}


def reduction(rows: int, depth: int, reducer: str, dtype: str, where: bool = False) -> list[te.Tensor]:
    a = te.placeholder((rows, depth), dtype, "A")
    k = te.reduce_axis((0, depth), "k")

    def body(i: PrimExpr) -> Any:
        return REDUCERS[reducer](a[i, k], axis=k, where=(k + i) % 3 < 2 if where else None)

    return [a, te.compute((rows,), body, name="B")]


@settings(deadline=None, derandomize=True, max_examples=share_of(60))
@given(
    rows=st.integers(1, 4),
    depth=st.integers(1, 70),
    factor=st.sampled_from([None, 2, 3, 5, 8, 16, 24, 33]),
    reducer=st.sampled_from(sorted(REDUCERS)),
    dtype=st.sampled_from(["float32", "float64", "int32"]),
    where=st.booleans(),
)
@example(rows=1, depth=7, factor=4, reducer="max", dtype="float32", where=False)
@example(rows=2, depth=33, factor=None, reducer="sum", dtype="int32", where=True)
def test_15_lanes_are_combined(rows: int, depth: int, factor: int | None, reducer: str, dtype: str, where: bool) -> None:
    args = reduction(rows, depth, reducer, dtype, where)
    s = te.create_schedule(args[-1].op)
    (k,) = args[-1].op.reduce_axis
    s[args[-1]].vectorize(k if factor is None else s[args[-1]].split(k, factor=factor)[1])
    assert_schedule_correct(s, args)


@pytest.mark.parametrize("outer", [False, True])
def test_rows_and_lanes_may_stand_in_any_order(outer: bool) -> None:
    args = reduction(5, 24, "sum", "float32")
    s = te.create_schedule(args[-1].op)
    (i,), (k,) = args[-1].op.axis, args[-1].op.reduce_axis
    if outer:
        s[args[-1]].reorder(k, i)
    s[args[-1]].vectorize(k)
    assert_schedule_correct(s, args)


def test_the_lanes_become_one_value_by_halves() -> None:
    args = reduction(3, 16, "max", "float32")
    s = te.create_schedule(args[-1].op)
    s[args[-1]].vectorize(args[-1].op.reduce_axis[0])
    text = tvm.lower(s, args).script()
    assert text.count("T.Shuffle") == 8 and "for k" not in text


def test_a_pair_of_sums_is_summed_in_lanes() -> None:
    a = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    pair = te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] + y[1]), lambda t, u: (te.const(0, t), te.const(0, u)), name="pair")
    two = te.compute((4,), lambda i: pair((a[i, k], a[i, k] * a[i, k]), axis=k), name="C")
    s = te.create_schedule(two[0].op)
    s[two[0]].vectorize(k)
    assert tvm.lower(s, [a, *two]).script().count("T.Shuffle") == 2 * 2 * 3
    assert_schedule_correct(s, [a, *two])


def test_15_reductions_of_dependent_pairs_and_other_combiners_are_refused() -> None:
    a = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    odd = te.comm_reducer(lambda x, y: x + y + x * y, lambda t: te.const(0, t), name="odd")
    pair = te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] + y[0]), lambda t, u: (te.const(0, t), te.const(0, u)), name="pair")
    one = te.compute((4,), lambda i: odd(a[i, k], axis=k), name="B")
    two = te.compute((4,), lambda i: pair((a[i, k], a[i, k] * a[i, k]), axis=k), name="C")
    for tensor, reason in ((one, "is no sum, product, maximum or minimum"), (two[0], "combines several values at once")):
        s = te.create_schedule(tensor.op)
        with pytest.raises(ScheduleError, match=f"can't vectorize 'k': it is a reduction axis, and .*{reason}"):
            s[tensor].vectorize(k)


def test_15_a_subtraction_is_no_reduction_in_lanes() -> None:
    a = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    minus = te.comm_reducer(lambda x, y: x - y, lambda t: te.const(0, t), name="minus")
    b = te.compute((4,), lambda i: minus(a[i, k], axis=k), name="B")
    with pytest.raises(ScheduleError, match="is no sum"):
        te.create_schedule(b.op)[b].vectorize(k)


def test_15_a_sum_that_does_not_start_at_zero_is_refused() -> None:
    """Each lane would add what the sum starts from once more."""
    a = te.placeholder((4, 8), name="A")
    k = te.reduce_axis((0, 8), "k")
    more = te.comm_reducer(lambda x, y: x + y, lambda t: te.const(1, t), name="more")
    b = te.compute((4,), lambda i: more(a[i, k], axis=k), name="B")
    with pytest.raises(ScheduleError, match="its combiner can't be regrouped"):
        te.create_schedule(b.op)[b].vectorize(k)


@pytest.mark.parametrize("target", ["llvm -mcpu=icelake-server", "llvm -mcpu=znver3"])
def test_the_running_extreme_is_one_instruction_and_a_choice(target: str) -> None:
    """A NaN among the new values is looked for beside the chain of running values: no comparison has one of these as an operand."""
    args = reduction(64, 1024, "greatest", "float32")
    made = tvm.build(default_schedule(args, tvm.target.Target(target)), args, target=target)
    asm = made.get_source("asm")
    assert "vmaxps" in asm
    assert "vcmpunordps" in asm
    assert "vcmpltps" not in asm
