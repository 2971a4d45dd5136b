"""What a sampled tile refuses, one test for each message."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tests.programs import matmul_add

# On an axis of 8 iterations.
TRACES: dict[str, tuple[list[Any], str]] = {
    "no sizes": (["sample_tile", 0, [], None], r"sample_tile of 'i' takes ascending sizes from 1 to 8, not \[\]"),
    "sizes out of order": (["sample_tile", 0, [4, 2], None], r"ascending sizes from 1 to 8, not \[4, 2\]"),
    "a size twice": (["sample_tile", 0, [2, 2], None], "ascending sizes"),
    "a size of nothing": (["sample_tile", 0, [0, 2], None], "ascending sizes"),
    "a size beyond the axis": (["sample_tile", 0, [4, 9], None], r"from 1 to 8, not \[4, 9\]"),
    "another size": (["sample_tile", 0, [2, 3], 4], "4 is no tile of 'i'; sizes: 2, 3"),
    "no axis": (["sample_tile", 7, [2], None], "no axis number 7 to sample_tile"),
}


def stage_and_trace(step: list[Any], *before: list[Any]) -> tuple[Schedule, Trace]:
    """A schedule and a trace with the step on its output."""
    s = create_schedule(matmul_add(8, 6, 4)[-1].op)
    out = next(stage.id for stage in s.tree.stages if stage.is_output)
    return s, Trace.from_json([[name, out, *rest] for name, *rest in (*before, step)])


@pytest.mark.parametrize("name", TRACES)
def test_refused(name: str) -> None:
    step, message = TRACES[name]
    s, trace = stage_and_trace(step)
    with pytest.raises(ScheduleError, match=message):
        Schedule(s.outputs, trace)


def test_a_part_of_a_split_has_no_tile() -> None:
    s, trace = stage_and_trace(["sample_tile", 2, [2], None], ["split", 0, [None, 2]])
    with pytest.raises(ScheduleError, match=r"needs a root axis of constant extent, not 'i\.outer'"):
        Schedule(s.outputs, trace)


@pytest.mark.parametrize("fields", [["i", [2], None], [0, 2, None], [0, [2], "2"], [0, [2]]])
def test_json_of_another_shape(fields: list[Any]) -> None:
    with pytest.raises(RecordError, match="step 'sample_tile'"):
        stage_and_trace(["sample_tile", *fields])


def test_a_size_that_does_not_divide_is_fine() -> None:
    s, trace = stage_and_trace(["balanced_split", 0, [None, [0, 0]]], ["sample_tile", 0, [3, 5], 3])
    lines = Schedule(s.outputs, trace).as_python()
    assert "factor=3, balanced=True" in str(lines)
