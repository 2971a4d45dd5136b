"""Groups of stages: what belongs to them, where their stages go, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.schedule.tree import At
from tensorexpr.te import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tests.scan_programs import cumulative_sum

Stages = tuple[Schedule, Tensor, Tensor, Tensor, Tensor, Tensor]


def line() -> Stages:
    """A -> B -> C -> D -> E, element by element."""
    a = te.placeholder((6, 8), name="A")
    b = te.compute((6, 8), lambda i, j: a[i, j] + 1.0, "B")
    c = te.compute((6, 8), lambda i, j: b[i, j] * 2.0, "C")
    d = te.compute((6, 8), lambda i, j: c[i, j] - 3.0, "D")
    e = te.compute((6, 8), lambda i, j: d[i, j] * 0.5, "E")
    return create_schedule(e.op), a, b, c, d, e


def names(stages: Any) -> list[str]:
    return [stage.op.name for stage in stages]


def test_members_lie_between_inputs_and_outputs() -> None:
    s, a, b, c, d, _ = line()
    assert names(s.create_group(outputs=d, inputs=a).stages) == ["B", "C", "D"]
    assert names(s.create_group(outputs=[d], inputs=[b.op], include_inputs=False).stages) == ["C", "D"]
    assert names(s.create_group(outputs=c, inputs=c, include_inputs=True).stages) == ["C"]


def test_what_depends_on_no_input_stays_outside() -> None:
    a, other = te.placeholder((4,), name="A"), te.placeholder((4,), name="other")
    b = te.compute((4,), lambda i: a[i] + 1.0, "B")
    side = te.compute((4,), lambda i: other[i] * 2.0, "side")
    c = te.compute((4,), lambda i: b[i] + side[i], "C")
    s = create_schedule(te.compute((4,), lambda i: c[i] + 1.0, "D").op)
    assert names(s.create_group(outputs=c, inputs=a).stages) == ["B", "C"]


def test_groups_nest() -> None:
    s, a, b, c, d, e = line()
    outer = s.create_group(outputs=d, inputs=a)
    inner = s.create_group(outputs=c, inputs=b)
    assert inner.group == outer
    assert outer.group is None
    assert (s[c].group, s[b].group, s[e].group) == (inner, outer, None)
    assert s.groups == [outer, inner]


def test_compute_at_moves_what_was_left_at_the_root() -> None:
    s, a, _, c, d, e = line()
    group = s.create_group(outputs=d, inputs=a)
    s[c].compute_at(s[d], d.op.axis[1])
    group.compute_at(s[e], e.op.axis[0])
    assert [stage.attach_stage.op.name if stage.attach_stage else None for stage in s.stages] == [None, "E", "D", "E", None]
    assert (group.attach_stage.op.name if group.attach_stage else None, group.attach_ivar) == ("E", e.op.axis[0])
    assert_schedule_correct(s, [a, e])
    group.compute_root()
    assert [stage.attach_type for stage in s.stages] == [1, 1, 4, 1, 1]
    assert group.attach_stage is None
    assert group.attach_ivar is None
    assert_schedule_correct(s, [a, e], phases=(0,), compiled=False)


def test_views_of_one_stage_or_group_are_equal() -> None:
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1, name="B")
    c = te.compute((8,), lambda i: b[i] * 2, name="C")
    s = te.create_schedule(c.op)
    group = s.create_group(outputs=b, inputs=a)
    group.compute_at(s[c], c.op.axis[0])
    assert group.attach_stage == s[c] and s[c].same_as(s[c]) and s[b] != s[c]
    assert s[b].group == group and {s[c]: 1}[s[c]] == 1
    assert s[c] != te.create_schedule(c.op)[c]
    assert repr(s[c].leaf_iter_vars) == '[T.iter_var(i, T.Range(0, 8), "DataPar", "")]'


def test_compute_root_of_a_member_goes_to_the_group() -> None:
    s, a, b, c, d, e = line()
    s.create_group(outputs=d, inputs=a).compute_at(s[e], e.op.axis[0])
    s[b].compute_at(s[c], c.op.axis[1])
    s[b].compute_root()
    assert s[b].attach_ivar is e.op.axis[0]


def test_new_stages_belong_to_the_group_of_the_old() -> None:
    s, a, _, _, d, e = line()
    group = s.create_group(outputs=d, inputs=a)
    group.compute_at(s[e], e.op.axis[0])
    local = s.cache_write(d, "local")
    assert s[local].group == group
    assert s[local].attach_ivar is e.op.axis[0]
    assert_schedule_correct(s, [a, e])


def test_inner_groups_go_where_the_outer_is() -> None:
    s, a, b, c, d, e = line()
    outer = s.create_group(outputs=d, inputs=a)
    inner = s.create_group(outputs=c, inputs=b)
    inner.compute_at(s[d], d.op.axis[1])
    outer.compute_at(s[e], e.op.axis[0])
    assert s[c].attach_ivar is d.op.axis[1]
    inner.compute_root()
    assert s[c].attach_ivar is e.op.axis[0]
    assert_schedule_correct(s, [a, e], phases=(0,), compiled=False)


def test_json_and_python() -> None:
    s, a, b, c, d, e = line()
    s.create_group(outputs=d, inputs=a).compute_at(s[e], e.op.axis[1])
    s.groups[0].compute_root()
    assert Trace.from_json(s.trace.to_json()) == s.trace
    written = s.as_python()
    assert "group_0 = s.create_group(outputs=[D], inputs=[A], include_inputs=False)" in written
    again = create_schedule(e.op)
    scope: dict[str, Any] = {"s": again, "A": a, "B": b, "C": c, "D": d, "E": e}
    for text in written.splitlines():
        exec(text, scope)
    assert again.trace == s.trace


ERRORS: dict[str, tuple[Callable[..., Any], str]] = {
    "empty": (lambda s, a, b, c, d, e: s.create_group(outputs=b, inputs=d), "nothing is computed between the inputs D and the outputs B"),
    "overlap": (
        lambda s, a, b, c, d, e: (s.create_group(outputs=c, inputs=a), s.create_group(outputs=d, inputs=b)),
        "C is in group 0 already, which neither holds the new group nor lies in it; groups are nested or apart",
    ),
    "own member": (
        lambda s, a, b, c, d, e: s.create_group(outputs=d, inputs=a).compute_at(s[d], d.op.axis[0]),
        "In schedule for D: group 0 can't be computed at it, as it is a member itself",
    ),
    "no stage": (
        lambda s, a, b, c, d, e: s.create_group(outputs=d, inputs=a).compute_at(e, None),
        "group 0: compute_at takes a stage such as",
    ),
    "output": (
        lambda s, a, b, c, d, e: s.create_group(outputs=e, inputs=a).compute_at(s[d], d.op.axis[0]),
        "can't be computed at it|can't move an output",
    ),
    "unknown group": (
        lambda s, a, b, c, d, e: Schedule(s.outputs, Trace.from_json([["group_compute_root", 2]])),
        "the schedule has no group 2; it has 0",
    ),
    "unknown stage": (
        lambda s, a, b, c, d, e: Schedule(s.outputs, Trace.from_json([["create_group", [77], [0], False]])),
        "create_group: the schedule has no stage 77; stages: A, B",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    apply, message = ERRORS[name]
    stages = line()
    with pytest.raises(ScheduleError, match=message):
        apply(*stages)


def test_an_update_stays_where_it_is() -> None:
    x, sums = cumulative_sum()
    s = create_schedule(sums.op)
    kept, update = sums.op.update[0].op.input_tensors[0], sums.op.update[0]
    group = s.create_group(outputs=kept, inputs=sums.op.state_placeholder)
    group.compute_at(s[update], update.op.axis[1])
    assert_schedule_correct(s, [x, sums], phases=(0,), compiled=False)
    group.compute_root()
    assert s[kept].attach_ivar is sums.op.scan_axis


def test_a_stage_of_a_step_goes_home_into_the_loop_over_time() -> None:
    *args, result = cumulative_sum()
    kept = next(stage for stage in te.create_schedule(result.op).stages if stage.op.name == "kept").op
    s = te.create_schedule(result.op)
    before = s.tree.find(kept)
    assert before is not None and isinstance(before.attach, At)
    s[kept].compute_inline()
    s[kept].compute_root()
    after = s.tree.find(kept)
    assert after is not None and after.attach == before.attach
    s.cache_read(kept.output(0), "local", [s.tree.consumers(after)[0].origin])
    assert all(isinstance(stage.attach, At) for stage in s.tree.stages if stage.name.startswith("kept"))
    assert_schedule_correct(s, [*args, result])
