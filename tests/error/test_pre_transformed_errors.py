"""One test per thing that pre_transformed and the options of layouts refuse, with what they say."""

from __future__ import annotations

import pytest

from tensorexpr import te
from tensorexpr.auto_scheduler import ComputeDAG, SearchTask
from tensorexpr.errors import ScheduleError, TuningError
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor


def program() -> tuple[Schedule, Tensor, Tensor, Tensor]:
    """An input, a stage on it, a reader of both."""
    a = te.placeholder((6, 10), name="A")
    b = te.compute((6, 10), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((6, 10), lambda i, j: b[i, j] * a[i, j], name="C")
    return create_schedule(c.op), a, b, c


def refused(schedule: Schedule, stage: Tensor) -> str:
    """What the step says."""
    trace = schedule.trace
    with pytest.raises(ScheduleError) as caught:
        schedule[stage].pre_transformed()
    assert schedule.trace == trace
    return str(caught.value)


def test_the_input_itself() -> None:
    s, a, _, _ = program()
    assert "A is a placeholder and has no loops" in refused(s, a)


def test_a_computed_stage() -> None:
    s, _, b, _ = program()
    assert "takes a copy that cache_read made of an input, but it is computed from the elements that it reads" in refused(s, b)


def test_a_stage_of_several_reads() -> None:
    s, _, _, c = program()
    assert "but it reads several elements for each of its own" in refused(s, c)


def test_a_copy_of_a_computed_stage() -> None:
    s, _, b, c = program()
    assert "but it reads B, which is computed" in refused(s, s.cache_read(b, "global", [c]))


def test_an_input_that_others_read() -> None:
    s, a, b, _ = program()
    message = refused(s, s.cache_read(a, "global", [b]))
    assert "but C reads A in the layout it was declared with; let all of them read the copy" in message


def test_a_transpose_is_no_copy() -> None:
    a = te.placeholder((6, 10), name="A")
    b = te.compute((10, 6), lambda i, j: a[j, i], name="B")
    c = te.compute((10, 6), lambda i, j: b[i, j] * 2.0, name="C")
    assert "it is computed from the elements that it reads" in refused(create_schedule(c.op), b)


def test_a_copy_that_is_an_output() -> None:
    a = te.placeholder((6, 10), name="A")
    b = te.compute((6, 10), lambda i, j: a[i, j], name="B")
    assert "but it is an output" in refused(create_schedule(b.op), b)


def test_an_inlined_copy() -> None:
    s, a, b, c = program()
    copy = s.cache_read(a, "global", [b, c])
    s[copy].compute_inline()
    assert "pre_transformed needs loops, but the stage is inlined" in refused(s, copy)


def test_loops_of_what_the_caller_passes() -> None:
    s, a, b, c = program()
    copy = s.cache_read(a, "global", [b, c])
    axis = copy.op.axis[0]
    s[copy].pre_transformed()
    with pytest.raises(ScheduleError, match="no axis 'ax0' to split"):
        s[copy].split(axis, 2)


def test_the_layout_of_what_is_no_input() -> None:
    s, _, b, _ = program()
    with pytest.raises(ScheduleError, match="layout_of takes an input or output of the schedule, not B; inputs: A"):
        s.layout_of(b)


def test_an_unknown_option() -> None:
    s, a, _, c = program()
    with pytest.raises(TuningError, match=r"SearchTask: layout_rewrite_option is 3; it is one of 0 \(NO_REWRITE\), 1 \(INSERT_"):
        SearchTask(compute_dag=[a, c], layout_rewrite_option=3)
    with pytest.raises(TuningError, match="apply_steps_from_state: layout_rewrite_option is True"):
        ComputeDAG([a, c]).apply_steps_from_state(s.trace, layout_rewrite=True)
