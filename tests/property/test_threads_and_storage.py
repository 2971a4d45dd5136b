"""Virtual threads, double buffers and aligned storage change how a program runs and never what it computes."""

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.context import PassContext
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.schedule.steps import Bind, DoubleBuffer, StorageAlign
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.strategies import compute_dags, schedules
from tensorexpr.tir.function import IRModule
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.stmt import Allocate, For
from tensorexpr.tir.thread import HARDWARE_TAGS, VIRTUAL_TAGS, bound_tag
from tests.effort import share_of
from tests.unit.lower.builder import check_kept, pipeline_pass, statements

EXTENTS = st.sampled_from((1, 2, 3, 5, 7, 8, 12, 13))
FACTORS = st.sampled_from((1, 2, 3, 4, 5, 8))
TAGS = st.sampled_from(("vthread", "vthread.x", "cthread"))


@st.composite
def threaded_matmuls(draw: st.DrawFn) -> tuple[Schedule, list[Tensor]]:
    """A matmul in two levels of virtual threads, what it reads double buffered at a reduction loop, rows aligned."""
    n, m, k = draw(EXTENTS), draw(EXTENTS), draw(EXTENTS)
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = create_schedule(c.op)
    local = s.cache_write(c, "local")
    i, j = s[c].op.axis
    iv, ii = s[c].split(i, nparts=draw(FACTORS))
    jv, ji = s[c].split(j, nparts=draw(FACTORS))
    s[c].reorder(iv, jv, ii, ji)
    s[c].bind(iv, te.thread_axis(tag=draw(TAGS), name="ty"))
    s[c].bind(jv, te.thread_axis(tag=draw(TAGS), name="tx"))
    if draw(st.booleans()):
        s[c].vectorize(ji)
    s[local].compute_at(s[c], draw(st.sampled_from((iv, jv, ii))))
    ro, ri = s[local].split(s[local].op.reduce_axis[0], factor=draw(FACTORS))
    s[local].reorder(ro, ri, *local.op.axis)
    if draw(st.booleans()):
        s[local].bind(local.op.axis[1], te.thread_axis("vthread"))
    for tensor in draw(st.sampled_from(((a,), (b,), (a, b), ()))):
        copy = s.cache_read(tensor, draw(st.sampled_from(("local", "global"))), [local])
        s[copy].compute_at(s[local], draw(st.sampled_from((ro, ri))))
        if draw(st.booleans()):
            s[copy].double_buffer()
        if draw(st.booleans()):
            factor = draw(FACTORS)
            s[copy].storage_align(copy.op.axis[draw(st.integers(0, 1))], factor, draw(st.integers(0, factor - 1)))
    return s, [a, b, c]


@settings(max_examples=share_of(26), deadline=None, derandomize=True)
@given(threaded_matmuls(), st.integers(0, 3), st.sampled_from((0, 1, 2, 4)))
def test_10_threads_and_double_buffers(case: tuple[Schedule, list[Tensor]], native: int, split_loop: int) -> None:
    schedule, args = case
    with PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split_loop}}):
        assert_schedule_correct(schedule, args, compiled=native == 0)


@settings(max_examples=share_of(30), deadline=None, derandomize=True)
@given(threaded_matmuls())
def test_the_passes_alone_keep_the_meaning(case: tuple[Schedule, list[Tensor]]) -> None:
    schedule, args = case
    mod: IRModule = tvm.lower(schedule, args, upto=0)
    for one in map(pipeline_pass, ("StorageFlatten", "NarrowDataType", "Simplify")):
        mod = one(mod)
    for one in map(pipeline_pass, ("InjectDoubleBuffer", "VectorizeLoop", "InjectVirtualThread")):
        after = one(mod)
        check_kept(mod["main"], after["main"])
        mod = after
    assert not any(bound_tag(loop) in VIRTUAL_TAGS for loop in statements(mod["main"], For))
    assert not any(stmt.annotations for stmt in statements(mod["main"], Allocate))


@settings(max_examples=share_of(30), deadline=None, derandomize=True)
@given(threaded_matmuls())
def test_31_replay_of_json_and_python(case: tuple[Schedule, list[Tensor]]) -> None:
    schedule, args = case
    trace = Trace.from_json(json.loads(json.dumps(schedule.trace.to_json())))
    assert trace == schedule.trace
    assert str(Schedule(schedule.outputs, trace)) == str(schedule)
    replayed = create_schedule(args[-1].op)
    exec(schedule.as_python(), {"A": args[0], "B": args[1], "C": args[2], "s": replayed, "te": te})
    assert replayed.trace == schedule.trace


@settings(max_examples=share_of(25), deadline=None, derandomize=True)
@given(st.data())
def test_anywhere_in_a_program(data: st.DataObject) -> None:
    """Random schedules of random programs, then these primitives wherever they are allowed."""
    dag = data.draw(compute_dags(max_ops=3))
    schedule = data.draw(schedules(dag.outputs, max_steps=6))
    for stage in schedule.stages:
        if stage.leaf_iter_vars:
            leaf = schedule.tree[stage.id].leaf
            axis = data.draw(st.sampled_from(leaf))
            for step in (Bind(stage.id, axis, data.draw(TAGS), "t", None), DoubleBuffer(stage.id), StorageAlign(stage.id, 0, 3, 2)):
                trial = schedule.copy()
                before = str(trial)
                try:
                    trial.apply_step(step)
                    trial.explain()  # checks the tree
                except ScheduleError:
                    assert str(schedule) == before
                    continue
                schedule = trial
    assert_schedule_correct(schedule, dag.tensors, compiled=False)


@pytest.mark.parametrize("order", ["forward", "reverse", "shuffled"])
def test_a_grid_of_threads_is_interpreted(order: str) -> None:
    a = te.placeholder((12,), name="A")
    b = te.compute((12,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((12,), lambda i: b[i] * 2.0, name="C")
    s = create_schedule(c.op)
    block, thread = s[c].split(c.op.axis[0], factor=4)
    s[c].bind(block, te.thread_axis("blockIdx.x"))
    s[c].bind(thread, te.thread_axis((0, 4), "threadIdx.x"))
    s[b].compute_at(s[c], block)
    s[b].bind(b.op.axis[0], te.thread_axis((0, 4), "threadIdx.x"))
    values = np.arange(12, dtype=np.float32)
    for phase in range(4):
        out = np.zeros(12, np.float32)
        interpret(tvm.lower(s, [a, c], upto=phase)["main"], [values, out], parallel_order=cast(Any, order))
        np.testing.assert_array_equal(out, (values + 1) * 2)


@settings(max_examples=share_of(25), deadline=None, derandomize=True)
@given(st.data())
def test_grids_of_threads_in_every_phase(data: st.DataObject) -> None:
    """Loops bound to threads of a device, wherever that is allowed, are interpreted as parallel ones are: without a race."""
    dag = data.draw(compute_dags(max_ops=3))
    schedule = data.draw(schedules(dag.outputs, max_steps=6))
    for stage in schedule.stages:
        if stage.leaf_iter_vars:
            axis = data.draw(st.sampled_from(schedule.tree[stage.id].leaf))
            trial = schedule.copy()
            try:
                trial.apply_step(Bind(stage.id, axis, data.draw(st.sampled_from(HARDWARE_TAGS)), "t", None))
                tvm.lower(trial, dag.tensors, upto=0)
            except ScheduleError:
                continue
            schedule = trial
    assert_schedule_correct(schedule, dag.tensors, compiled=False)
