"""Stages in other layouts compute the same, wherever they are computed and whatever is padded."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.schedule.legality import check_tree
from tensorexpr.schedule.steps import Step, TransformLayout
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.strategies import compute_dags, layout_mappings, schedules
from tests.effort import share_of

PADS = st.sampled_from((None, 0, 1, -3))
EXTENTS = st.sampled_from((1, 2, 3, 5, 7, 8, 11, 13, 16, 17))


def try_step(schedule: Schedule, step: Step) -> bool:
    """Append a step if it is legal; False, and nothing changed, if it isn't."""
    trial = schedule.copy()
    try:
        trial.apply_step(step)
        check_tree(trial.tree)
    except ScheduleError:
        return False
    schedule.apply_step(step)
    return True


def transform(draw: st.DrawFn, schedule: Schedule, tensor: Tensor) -> bool:
    """A random layout for a stage."""
    stage = schedule.tree[schedule[tensor].id]
    return try_step(schedule, TransformLayout(stage.id, draw(layout_mappings(stage)), draw(PADS)))


@st.composite
def packed(draw: st.DrawFn) -> tuple[Schedule, list[Tensor]]:
    """A product of matrices with a random layout of a copy of an operand, of the accumulators, or of both, at any loop."""
    m, k, n = draw(EXTENTS), draw(EXTENTS), draw(EXTENTS)
    dtype = draw(st.sampled_from(("float32", "int32")))
    a, b = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    over = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, over] * b[over, j], axis=over), name="C")
    s = create_schedule(c.op)
    local = s.cache_write(c, draw(st.sampled_from(("local", "global"))))
    copy = s.cache_read(draw(st.sampled_from((a, b))), "global", [local])
    for tensor in draw(st.sampled_from(((copy,), (local,), (copy, local), (copy, copy)))):
        transform(draw, s, tensor)
    rows, columns = (s[c].split(axis, factor=draw(st.sampled_from((1, 2, 3, 4, 8)))) for axis in c.op.axis)
    s[c].reorder(columns[0], rows[0], rows[1], columns[1])
    if draw(st.booleans()):
        s[c].parallel(columns[0])
    s[c].vectorize(columns[1])
    place = draw(st.integers(0, 3))
    if place:
        s[local].compute_at(s[c], (columns[0], rows[0], rows[1])[place - 1])
    if draw(st.booleans()):
        s[local].vectorize(s[local].op.axis[-1])
    target, loops = (s[local], s[local].leaf_iter_vars) if draw(st.booleans()) else (s[c], [columns[0], rows[0]])
    if draw(st.booleans()):
        trial = s.copy()
        trial[copy].compute_at(trial[c] if target.id == s[c].id else trial[local], draw(st.sampled_from(loops)))
        try:
            check_tree(trial.tree)
            s = trial
        except ScheduleError:
            pass
    if draw(st.booleans()):
        s[copy].vectorize(s[copy].op.axis[-1])
    return s, [a, b, c]


@settings(max_examples=share_of(50), deadline=None, derandomize=True)
@given(packed(), st.integers(0, 3))
def test_packed_operands(case: tuple[Schedule, list[Tensor]], native: int) -> None:
    schedule, args = case
    try:
        check_tree(schedule.tree)
    except ScheduleError:
        assume(False)
    assert_schedule_correct(schedule, args, compiled=native == 0)


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(packed())
def test_replay(case: tuple[Schedule, list[Tensor]]) -> None:
    schedule, args = case
    trace = Trace.from_json(json.loads(json.dumps(schedule.trace.to_json())))
    assert trace == schedule.trace
    again = Schedule(schedule.outputs, trace)
    assert str(again) == str(schedule)
    assert again.as_python() == schedule.as_python()
    replayed = create_schedule(args[-1].op)
    names: dict[str, Any] = {tensor.name: tensor for tensor in args}
    exec(schedule.as_python(), {**names, "s": replayed})
    assert replayed.trace == schedule.trace


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(st.data())
def test_anywhere_in_a_program(data: st.DataObject) -> None:
    """Random layouts of random stages of random programs, then more random steps around them."""
    dag = data.draw(compute_dags(max_ops=4))
    schedule = data.draw(schedules(dag.outputs, max_steps=3, tensorize=False))
    done = 0
    for stage in data.draw(st.permutations([s.id for s in schedule.tree.stages]))[:3]:
        node = schedule.tree[stage]
        if node.has_loops and len(node.spatial):
            done += try_step(schedule, TransformLayout(stage, data.draw(layout_mappings(node)), data.draw(PADS)))
    assume(done)
    assert_schedule_correct(schedule, dag.tensors, compiled=data.draw(st.integers(0, 5)) == 0)
