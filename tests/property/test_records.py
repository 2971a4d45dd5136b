"""Records: any record survives its line; hostile lines raise RecordError only, soon and within bounds."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr.errors import RecordError
from tensorexpr.schedule.steps import Annotate, Fuse, Reorder, Split
from tensorexpr.schedule.trace import Trace
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo
from tensorexpr.tune.records import Record, parse_record
from tensorexpr.tune.records.schema import MAX_LINE_BYTES
from tests.effort import share_of

small = st.integers(0, 100)
texts = st.text(st.characters(codec="utf-8"), max_size=50)
steps = st.one_of(
    st.builds(Split, small, small, st.tuples(st.none(), st.integers(1, 64))),
    st.builds(Fuse, small, st.lists(small, min_size=1, max_size=4).map(tuple)),
    st.builds(Reorder, small, st.lists(small, max_size=6).map(tuple)),
    st.builds(Annotate, small, small, st.sampled_from(["parallel", "vectorize", "unroll"])),
)
seconds = st.floats(1e-9, FAILED_COST)
records = st.builds(
    lambda failed, **fields: Record(**{**fields, **failed}),
    failed=st.one_of(
        st.fixed_dictionaries({"error_no": st.just(MeasureErrorNo.NO_ERROR), "verified": st.booleans()}),
        st.fixed_dictionaries({"error_no": st.sampled_from(list(MeasureErrorNo)[1:]), "verified": st.just(False)}),
    ),
    workload_key=texts,
    dag_hash=st.text("0123456789abcdef", min_size=8, max_size=64),
    target=texts,
    num_threads=st.integers(1, 256),
    trace=st.lists(steps, max_size=6).map(lambda made: Trace(tuple(made))),
    costs=st.lists(seconds, min_size=1, max_size=4).map(tuple),
    error_msg=texts,
    all_cost=seconds,
    timestamp=seconds,
    policy=st.dictionaries(texts, st.none() | st.booleans() | st.integers(-(2**30), 2**30) | seconds | texts, max_size=4),
    spills=small,
    ir_lines=small,
)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)


@settings(deadline=None, derandomize=True, max_examples=share_of(200))
@given(records)
def test_any_record_survives_its_line(record: Record) -> None:
    line = record.dumps()
    assert "\n" not in line
    assert parse_record(line) == record


@settings(deadline=None, derandomize=True, max_examples=share_of(400))
@given(records, st.data())
def test_mutated_lines_raise_record_errors_only(record: Record, data: st.DataObject) -> None:
    damaged = bytearray(record.dumps().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        match data.draw(st.sampled_from(["replace", "delete", "insert", "cut"])):
            case "replace":
                damaged[at] = data.draw(st.integers(0, 255))
            case "delete":
                del damaged[at : at + data.draw(st.integers(1, 5))]
            case "insert":
                damaged[at:at] = data.draw(st.binary(min_size=1, max_size=5))
            case "cut":
                del damaged[at:]
        if not damaged:
            break
    with contextlib.suppress(RecordError):
        parse_record(bytes(damaged)).dumps()


@settings(deadline=None, derandomize=True, max_examples=share_of(250))
@given(records, json_values, st.data())
def test_any_value_in_any_field_is_accepted_or_a_record_error(record: Record, value: Any, data: st.DataObject) -> None:
    content = record.to_json()
    content[data.draw(st.sampled_from(sorted(content)))] = value
    try:
        made = parse_record(json.dumps(content))
    except RecordError:
        return
    assert parse_record(made.dumps()) == made


@settings(deadline=None, derandomize=True, max_examples=share_of(300))
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200), json_values.map(json.dumps)))
@example("[" * 100_000)
@example('{"a":' * 100_000)
@example(b"\xef\xbb\xbf{}")
@example("1" + "0" * 5000)
def test_arbitrary_lines_raise_record_errors_only(line: str | bytes) -> None:
    with pytest.raises(RecordError):
        parse_record(line)


def filled(piece: str, start: str, end: str) -> str:
    """A line of nearly the largest size, made of one piece again and again."""
    return start + piece * ((MAX_LINE_BYTES - len(start) - len(end)) // len(piece) - 1) + end


HOSTILE = {
    "empty lists": filled("[],", '{"trace": [', "0]}"),
    "empty objects": filled("{},", '{"policy": [', "0]}"),
    "numbers": filled("1,", '{"costs": [', "0]}"),
    "deep": filled("[", '{"trace": ', ""),
    "one key": filled('"a":1,', "{", '"b":1}'),
    "keys": "{" + ",".join(f'"{n}":0' for n in range(90_000)) + ',"5":1}',
    "escapes": filled("\\ud800", '{"target": "', '"}'),
    "digits": filled("9", '{"version": ', "}"),
    "fraction": filled("9", '{"version": 0.', "}"),
    "steps": filled('["split",1,1,[null,1]],', '{"trace": [', "0]}"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_lines_stay_within_100_megabytes(name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(RecordError):
            parse_record(HOSTILE[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 << 20
