"""Recurrences: random ones under random schedules agree with the reference evaluator, and that one with NumPy."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.schedule import Schedule, Trace
from tensorexpr.te.identity import dag_equal
from tensorexpr.te.operation import PlaceholderOp
from tensorexpr.te.reference import evaluate
from tensorexpr.te.serialize import dag_from_json, dag_to_json
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.strategies import compute_dags, schedules
from tests.effort import share_of
from tests.scan_programs import PROGRAMS

LAYERS = ("scan", "scan", "scan", "binary", "unary_float", "transpose")


def _scans(max_ops: int = 2) -> Any:
    return compute_dags(max_ops=max_ops, layers=LAYERS)


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(st.data())
def test_random_recurrences_under_random_schedules(data: st.DataObject) -> None:
    dag = data.draw(_scans())
    schedule = data.draw(schedules(dag.outputs, max_steps=12))
    assert_schedule_correct(schedule, dag.tensors)


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(st.data())
def test_json_and_python_of_random_recurrences(data: st.DataObject) -> None:
    dag = data.draw(_scans())
    assert dag_equal(dag_from_json(json.loads(json.dumps(dag_to_json(dag.tensors)))), dag.tensors)
    schedule = data.draw(schedules(dag.outputs))
    again = Schedule(schedule.outputs, Trace.from_json(json.loads(json.dumps(schedule.trace.to_json()))))
    assert str(again) == str(schedule)
    assert again.explain() == schedule.explain()


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=4, deadline=None, derandomize=True)
@given(data=st.data())
def test_known_recurrences_under_random_schedules(name: str, data: st.DataObject) -> None:
    tensors = PROGRAMS[name]()
    outputs = tuple(dict.fromkeys(t.op for t in tensors if not isinstance(t.op, PlaceholderOp)))
    schedule = data.draw(schedules(outputs, max_steps=12))
    assert_schedule_correct(schedule, tensors)


@settings(max_examples=share_of(30), deadline=None, derandomize=True)
@given(st.integers(1, 9), st.integers(1, 3), st.lists(st.integers(-3, 3), min_size=1, max_size=3), st.integers(0, 1000))
def test_linear_recurrences_by_hand(steps: int, width: int, coefficients: list[int], seed: int) -> None:
    rows = len(coefficients)
    steps += rows
    state = te.placeholder((steps, width), "int64", "state")
    first = te.placeholder((rows, width), "int64", "first")

    def step(t: Any, i: Any) -> Any:
        terms = [state[t - lag, i] * c for lag, c in enumerate(coefficients, start=1)]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    made = te.scan(first, te.compute((steps, width), step, "update"), state)
    start = np.random.default_rng(seed).integers(-5, 5, (rows, width))
    expected = list(start)
    for _ in range(steps - rows):
        expected.append(sum(c * expected[-lag] for lag, c in enumerate(coefficients, start=1)))
    np.testing.assert_array_equal(evaluate([made], {first: start})[0], np.stack(expected))
