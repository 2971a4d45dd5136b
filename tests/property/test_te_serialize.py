"""Records: a computation survives the trip, and nothing else gets in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr.errors import RecordError
from tensorexpr.te.dag_text import format_dag
from tensorexpr.te.identity import dag_equal, dag_key
from tensorexpr.te.reference import evaluate
from tensorexpr.te.serialize import dag_from_json, dag_to_json, dumps, loads
from tensorexpr.testing import random_inputs
from tensorexpr.testing.strategies import DagCase, compute_dags
from tests.effort import share_of


@settings(max_examples=share_of(80), deadline=None, derandomize=True)
@given(compute_dags())
def test_round_trip_gives_an_equal_computation(case: DagCase) -> None:
    text = dumps(case.tensors)
    again = loads(text)
    assert dag_equal(case.tensors, again) and dag_key(case.tensors) == dag_key(again)
    assert format_dag(case.tensors) == format_dag(again) and dumps(again) == text
    inputs = random_inputs(case.results)
    arrays = {new: inputs[old] for old, new in zip(case.tensors, again, strict=True) if old in inputs}
    results = again[len(case.inputs) :]
    for a, b in zip(evaluate(case.results, inputs), evaluate(results, arrays), strict=True):
        assert a.tobytes() == b.tobytes()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 1 << 70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["Add", "Var", "float32", "s0"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["kind", "rows", "version", "ops"]) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=share_of(100), deadline=None, derandomize=True)
@given(JSON)
@example({"version": 1, "symbols": [], "ops": [], "outputs": [[0, 0]]})
@example({"version": 1, "symbols": [["Var", "n", "float32"]], "ops": [], "outputs": [[True, 0]]})
def test_other_json_is_refused(data: Any) -> None:
    with pytest.raises(RecordError):
        dag_from_json(data)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values inside."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(p for key, value in items for p in places(value, (*path, key)))]


@settings(max_examples=share_of(300), deadline=None, derandomize=True)
@given(st.data(), compute_dags(max_ops=2))
def test_mutated_records_are_refused_or_read_as_a_legal_computation(data: st.DataObject, case: DagCase) -> None:
    record = json.loads(dumps(case.tensors))
    for _ in range(data.draw(st.integers(1, 2))):
        options = places(record)[1:]
        if not options:
            break
        *path, last = options[data.draw(st.integers(0, len(options) - 1))]
        target = record
        for key in path:
            target = target[key]
        if data.draw(st.integers(0, 3)) == 0:
            del target[last]
        else:
            target[last] = data.draw(JSON)
    try:
        again = dag_from_json(record)
    except RecordError:
        return
    assert dag_equal(again, dag_from_json(json.loads(json.dumps(dag_to_json(again)))))


@settings(max_examples=share_of(60), deadline=None, derandomize=True)
@given(compute_dags(max_ops=1), st.integers(0, 400))
def test_torn_lines_are_refused(case: DagCase, cut: int) -> None:
    text = dumps(case.tensors)
    if cut < len(text):
        with pytest.raises(RecordError):
            loads(text[:cut])


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "1" * 5000, '{"version": NaN}', "", "null", '"' + "x" * (1 << 20) + '"', '{"version":1e999}']
)
def test_hostile_lines_are_refused(text: str) -> None:
    with pytest.raises(RecordError):
        loads(text)


def doubled(levels: int) -> Any:
    """A record whose expression has 2**levels nodes as a tree."""
    rows: list[Any] = [["IntImm", "int32", 0], ["Var", "i", "int32"], ["IntImm", "int32", 4], ["IterVar", 1, [0, 2], 0, ""]]
    rows += [["Add", number, number] for number in [1, *range(4, 3 + levels)]]
    compute = {"kind": "compute", "name": "c", "tag": "", "attrs": {}, "axis": [3], "body": [len(rows) - 1], "rows": rows}
    return {"version": 1, "symbols": [], "ops": [compute], "outputs": [[0, 0]]}


def test_explosive_sharing_is_refused() -> None:
    assert len(dag_from_json(doubled(10))) == 1
    with pytest.raises(RecordError):
        dag_from_json(doubled(60))
