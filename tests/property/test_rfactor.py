"""Property 15: a reduction in parts is the reduction, for every split, order and place of the factored axis."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.strategies import compute_dags, schedules
from tensorexpr.tir.expr import IterVar
from tensorexpr.tir.intrin import select
from tests.effort import share_of

EXTENTS = st.sampled_from((1, 2, 3, 5, 7, 8, 11, 13, 16, 17))
FACTORS = st.sampled_from((1, 2, 3, 4, 5, 7, 8))


def _argmax() -> Any:
    def combine(x: Any, y: Any) -> Any:
        keep = te.any(x[1] > y[1], te.all(x[1].equal(y[1]), x[0] < y[0]))
        return select(keep, x[0], y[0]), select(keep, x[1], y[1])

    return te.comm_reducer(combine, lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")


@st.composite
def reductions(draw: st.DrawFn) -> tuple[list[Tensor], list[Tensor]]:
    """Inputs and results of a reduction over one or two axes of random extents, under conditions, from a starting value."""
    rows, depth, columns = draw(EXTENTS), draw(EXTENTS), draw(st.sampled_from((1, 3, 4, 8)))
    a = te.placeholder((rows, depth, columns), draw(st.sampled_from(("float32", "int32"))), name="A")
    low = draw(st.integers(0, rows - 1))
    k, q = te.reduce_axis((low, rows), name="k"), te.reduce_axis((0, depth), name="q")
    where = draw(st.sampled_from((None, lambda i: (k + q) % 3 != 1, lambda i: k > i, lambda i: a[k, q, i] > 0)))
    kind = draw(st.sampled_from(("sum", "max", "min", "argmax")))
    if kind == "argmax":
        results = te.compute((columns,), lambda i: _argmax()((k * depth + q, a[k, q, i]), axis=[k, q], where=where and where(i)), name="B")
        return [a], list(results)
    reducer = {"sum": te.sum, "max": te.max, "min": te.min}[kind]
    start = draw(st.sampled_from((None, lambda i: a[0, 0, i], lambda i: 3)))
    body = te.compute((columns,), lambda i: reducer(a[k, q, i], axis=[k, q], where=where and where(i), init=start and start(i)), name="B")
    return [a], [body]


def _split_some(draw: st.DrawFn, s: Schedule, b: Tensor) -> list[IterVar]:
    """Random splits, fusion and order of the reduction loops; returns the loops."""
    axes = list(b.op.reduce_axis)
    if draw(st.integers(0, 3)) == 0:
        axes = [s[b].fuse(*axes)]
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(axes) - 1))
        value = draw(FACTORS)
        axes[at : at + 1] = s[b].split(axes[at], factor=value) if draw(st.booleans()) else s[b].split(axes[at], nparts=value)
    axes = draw(st.permutations(axes))
    s[b].reorder(*axes)
    return axes


@st.composite
def factored(draw: st.DrawFn) -> tuple[Schedule, list[Tensor]]:
    """A reduction of which a random loop is factored, with threads or vector lanes on the partial results."""
    inputs, results = draw(reductions())
    b = results[0]
    s = create_schedule(b.op)
    axes = _split_some(draw, s, b)
    if draw(st.booleans()):
        s[b].split(b.op.axis[0], factor=draw(FACTORS))
    made = s.rfactor(b, axes[draw(st.integers(0, len(axes) - 1))], draw(st.integers(-2, 1)))
    partial = made if isinstance(made, Tensor) else made[0]
    stage = s[partial]
    if draw(st.booleans()):
        stage.reorder(*draw(st.permutations(stage.leaf_iter_vars)))
    first, second = draw(st.permutations(list(partial.op.axis)))
    if draw(st.booleans()):
        stage.parallel(first)
    if draw(st.booleans()):
        stage.vectorize(second)
    if draw(st.integers(0, 2)) == 0:
        stage.compute_at(s[b], draw(st.sampled_from(s[b].leaf_iter_vars)))
    return s, [*inputs, *results]


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(factored(), st.integers(0, 3))
def test_15_reductions_in_parts(case: tuple[Schedule, list[Tensor]], native: int) -> None:
    schedule, args = case
    assert_schedule_correct(schedule, args, compiled=native == 0)


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(factored())
def test_31_replay_of_json(case: tuple[Schedule, list[Tensor]]) -> None:
    schedule, args = case
    trace = Trace.from_json(json.loads(json.dumps(schedule.trace.to_json())))
    assert trace == schedule.trace
    again = Schedule(schedule.outputs, trace)
    assert str(again) == str(schedule)
    assert again.as_python() == schedule.as_python()
    replayed = create_schedule(args[-1].op)
    exec(schedule.as_python(), {"A": args[0], "B": args[-1], "s": replayed})
    assert replayed.trace == schedule.trace


@settings(max_examples=share_of(25), deadline=None, derandomize=True)
@given(st.data())
def test_15_anywhere_in_a_program(data: st.DataObject) -> None:
    """Random schedules of random programs, then one rfactor more wherever it is allowed."""
    dag = data.draw(compute_dags(max_ops=2, layers=("reduction", "matmul", "argmax", "convolution")))
    schedule = data.draw(schedules(dag.outputs, max_steps=5, tensorize=False))
    loops = [(stage, axis) for stage in schedule.stages for axis in stage.leaf_iter_vars if axis.iter_type == IterVar.COMM_REDUCE]
    assume(loops)
    stage, axis = data.draw(st.sampled_from(loops))
    before = str(schedule)
    try:
        schedule.rfactor(stage.origin_op.output(0), axis, data.draw(st.sampled_from((0, -1))))
    except ScheduleError:
        assert str(schedule) == before
        return
    assert_schedule_correct(schedule, dag.tensors, compiled=False)
