"""The key of a program holds the whole program: what is rebuilt from the key alone gives the same code."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorexpr.codegen.emit import emit_module
from tensorexpr.lower.pipeline import lower
from tensorexpr.runtime import program_key
from tensorexpr.schedule import Schedule, Trace
from tensorexpr.target import Target
from tensorexpr.te.serialize import dag_from_json
from tensorexpr.testing.strategies import compute_dags, schedules
from tests.effort import share_of

HERE = Target("llvm")


def code(schedule: Schedule, args: Any) -> str:
    """The LLVM IR text of a schedule."""
    return emit_module({"main": lower(schedule, args, "main")["main"]}, HERE).text


@settings(max_examples=share_of(50), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_program_rebuilt_from_its_key_gives_the_same_code(monkeypatch: pytest.MonkeyPatch, data: st.DataObject) -> None:
    monkeypatch.setenv("TENSOREXPR_CACHE", "1")
    monkeypatch.delenv("TENSOREXPR_VERIFY", raising=False)
    monkeypatch.setattr(program_key, "_source_digest", lambda: "settled")
    dag = data.draw(compute_dags())
    schedule = data.draw(schedules(dag.outputs, tensorize=False))
    key = program_key.program_key(schedule, dag.tensors, "main", None, HERE)
    assert key is not None
    described = json.loads(key.partition(b"\n")[2])
    tensors = dag_from_json(described["dag"])
    outputs, args = tensors[: described["outputs"]], tensors[described["outputs"] :]
    again = Schedule(tuple(tensor.op for tensor in outputs), Trace.from_json(described["steps"]))
    assert code(again, args) == code(schedule, dag.tensors)
    assert program_key.program_key(again, args, "main", None, HERE) == key
