"""Property 31: a trace replayed from JSON gives the same program, on an equal computation too."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.schedule import Schedule, Trace
from tensorexpr.te.serialize import dag_from_json, dag_to_json
from tensorexpr.testing.strategies import compute_dags, schedules
from tests.effort import share_of


@settings(max_examples=share_of(60), deadline=None, derandomize=True)
@given(st.data())
def test_31_replay_of_json_gives_the_same_tree(data: st.DataObject) -> None:
    dag = data.draw(compute_dags())
    schedule = data.draw(schedules(dag.outputs, argument_layouts=True))
    trace = Trace.from_json(json.loads(json.dumps(schedule.trace.to_json())))
    assert trace == schedule.trace
    again = Schedule(schedule.outputs, trace)
    assert str(again) == str(schedule)
    assert again.as_python() == schedule.as_python()


@settings(max_examples=share_of(30), deadline=None, derandomize=True)
@given(st.data())
def test_31_a_trace_fits_an_equal_program(data: st.DataObject) -> None:
    dag = data.draw(compute_dags())
    schedule = data.draw(schedules(dag.outputs, argument_layouts=True))
    tensors = dag_from_json(json.loads(json.dumps(dag_to_json(dag.tensors))))
    outputs = tuple(dict.fromkeys(t.op for t in tensors if t.op.input_tensors))
    again = Schedule(tuple(op for op in outputs if op.name in {o.name for o in dag.outputs}), schedule.trace)
    assert str(again) == str(schedule)
