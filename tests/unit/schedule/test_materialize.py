"""Parts of definitions that are stages of their own."""

from __future__ import annotations

import pytest

from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import create_schedule
from tensorexpr.schedule.steps.materialize import parts_of
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.arithmetic import as_int

A, B, D = te.placeholder((6, 9), name="A"), te.placeholder((9, 7), name="B"), te.placeholder((9,), name="D")


def scaled(first: int = 0) -> Tensor:
    k = te.reduce_axis((first, 9), name="k")
    return te.compute((6, 7), lambda i, j: te.sum(A[i, k] * D[k] * B[k, j], axis=k), name="C")


def texts(c: Tensor) -> list[str]:
    return [str(part) for part in parts_of(c.op)]


def test_parts_are_all_that_is_computed_of_elements() -> None:
    assert texts(scaled()) == ["A[i, k] * D[k] * B[k, j]", "A[i, k] * D[k]"]
    i_only = te.compute((6,), lambda i: A[i, 0] * 2.0 + A[i, 0] * 2.0 + 1.0, name="C")
    assert texts(i_only)[1:] == ["A[i, 0] * T.float32(2.0) + A[i, 0] * T.float32(2.0)", "A[i, 0] * T.float32(2.0)"]


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("where", ["root", "inline", "inside"])
def test_they_compute_the_same(first: int, part: int, where: str) -> None:
    c = scaled(first)
    s = create_schedule(c.op)
    made = s.materialize(c, part)
    assert [as_int(extent) for extent in made.shape] == ([6, 7, 9 - first], [6, 9 - first])[part]
    if where == "inline":
        s[made].compute_inline()
    elif where == "inside":
        s[made].compute_at(s[c], c.op.axis[0])
    assert_schedule_correct(s, [A, D, B, c])
    again = create_schedule(c.op)
    for step in type(s.trace).from_json(s.trace.to_json()):
        again.apply_step(step)
    assert str(again) == str(s) and f"C_part = s.materialize(C, {part})" in s.as_python()


def test_a_part_is_named_by_itself() -> None:
    c = scaled()
    s = create_schedule(c.op)
    s.materialize(c, parts_of(c.op)[1])
    assert "materialize(C, 1)" in s.as_python()
    with pytest.raises(ScheduleError, match=r"materialize of part 1; its parts are 0: C_part\[i, k\] \* B\[k, j\]"):
        s.materialize(c, 1)


def test_what_is_behind_a_condition_stays_there() -> None:
    c = te.compute((8,), lambda i: tir.if_then_else(i < 6, A[i, 0] * 2.0, 0.0) + 1.0, name="C")
    assert len(texts(c)) == 2 and texts(c)[1].startswith("T.if_then_else")
    s = create_schedule(c.op)
    s.materialize(c, 1)
    assert_schedule_correct(s, [A, c])


def test_loops_come_after_it() -> None:
    c = scaled()
    s = create_schedule(c.op)
    s[c].split(c.op.axis[0], factor=2)
    with pytest.raises(ScheduleError, match="materialize comes before split"):
        s.materialize(c, 0)
