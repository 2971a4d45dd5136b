"""Safety of what is loaded: lines of foreign logs, broken in any way, give a RecordError or a legal program; never anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr.auto_scheduler import ComputeDAG
from tensorexpr.auto_scheduler.measure_record import load_record_from_string
from tensorexpr.errors import RecordError
from tensorexpr.schedule.legality import check_tree
from tensorexpr.schedule.trace import Trace
from tests.effort import share_of

GOLDEN = Path(__file__).parents[1] / "golden" / "records" / "v06.json"
LINES = [line for line in GOLDEN.read_text().splitlines() if not line.startswith(("#", " "))]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 1 << 70),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(-1, 9), max_size=4),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a JSON value."""
    found: list[tuple[Any, Any]] = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found.append((value, key))
        found.extend(places(item))
    return found


def check(text: str) -> None:
    try:
        record = load_record_from_string(text)
    except RecordError:
        return
    check_tree(record.trace.apply(ComputeDAG(record.workload_key).initial_tree))
    assert Trace.from_json(record.trace.to_json()) == record.trace


@settings(deadline=None, derandomize=True, max_examples=share_of(150))
@given(st.data())
def test_a_changed_value_is_refused_or_still_a_legal_program(data: st.DataObject) -> None:
    line = json.loads(data.draw(st.sampled_from(LINES)))
    container, key = data.draw(st.sampled_from(places(line)))
    container[key] = data.draw(VALUES)
    check(json.dumps(line))


@settings(deadline=None, derandomize=True, max_examples=share_of(60))
@given(st.sampled_from(LINES), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=3))
def test_steps_in_another_order_are_refused_or_still_a_legal_program(text: str, swaps: list[tuple[int, int]]) -> None:
    line = json.loads(text)
    steps = line["i"][1][1]
    for a, b in swaps:
        a, b = a % len(steps), b % len(steps)
        steps[a], steps[b] = steps[b], steps[a]
    check(json.dumps(line))


@settings(deadline=None, derandomize=True, max_examples=share_of(60))
@given(st.sampled_from(LINES), st.integers(0, 2000), st.binary(max_size=6))
def test_torn_and_changed_bytes_are_refused_or_read(text: str, place: int, put: bytes) -> None:
    data = text.encode()
    place %= len(data)
    broken = data[:place] + put + data[place + len(put) :]
    check(broken.decode("utf-8", "replace"))
    check(text[:place])
