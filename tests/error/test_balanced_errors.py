"""One test per thing that a balanced split refuses, with what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.schedule.steps import BalancedSplit
from tensorexpr.te.tensor import Tensor


def program(extent: Any = 12) -> tuple[Schedule, Tensor]:
    """One loop."""
    a = te.placeholder((extent,), name="A")
    b = te.compute((extent,), lambda i: a[i] + 1.0, name="B")
    return create_schedule(b.op), b


REFUSED: dict[str, tuple[Callable[[Schedule, Tensor], object], str]] = {
    "neither": (lambda s, b: s[b].split(b.op.axis[0], balanced=True), "In schedule for B: split takes exactly one of factor and nparts"),
    "zero": (
        lambda s, b: s[b].split(b.op.axis[0], factor=0, balanced=True),
        "In schedule for B: split of 'i' by 0; a factor is an integer of at least 1",
    ),
    "three parts": (
        lambda s, b: s.apply_step(BalancedSplit(s[b].id, 0, (None, 2, 2))),
        "In schedule for B: a balanced split makes two parts, got 3; split one of the parts again",
    ),
    "two factors": (
        lambda s, b: s.apply_step(BalancedSplit(s[b].id, 0, (4, 3))),
        "In schedule for B: split needs all extents but one, got (4, 3)",
    ),
    "no stage": (lambda s, b: s.apply_step(BalancedSplit(7, 0, (None, 2, 2))), "In schedule for 7: a balanced split makes two parts"),
    "placeholder": (lambda s, b: s.apply_step(BalancedSplit(0, 0, (None, 2))), "split: A is a placeholder and has no loops"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    s, b = program()
    request, message = REFUSED[name]
    with pytest.raises(ScheduleError) as caught:
        request(s, b)
    assert message in str(caught.value)
    assert len(s.trace) == 0


def test_an_extent_that_is_no_constant() -> None:
    s, b = program(te.var("n"))
    with pytest.raises(ScheduleError) as caught:
        s[b].split(b.op.axis[0], factor=4, balanced=True)
    assert str(caught.value) == (
        "In schedule for B: a balanced split of 'i' needs a constant extent, not n: the sizes of the tiles follow from it; "
        "split it without balanced, whose guard serves every size"
    )
    _, inner = s[b].split(b.op.axis[0], factor=10)
    s[b].split(inner, factor=4, balanced=True)  # what a split leaves may be constant


@pytest.mark.parametrize("step", [["balanced_split", 1, 0], ["balanced_split", 1, 0, [4]], ["balanced_split", 1, 0, [None, "4"]]])
def test_json_that_is_no_balanced_split(step: list[Any]) -> None:
    with pytest.raises(RecordError, match="step 'balanced_split'"):
        Trace.from_json([step])
