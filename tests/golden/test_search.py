"""The sketches of register tiles: the trace with its decisions as JSON, and as Python lines."""

from __future__ import annotations

import json

import pytest

from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tests.conftest import Golden
from tests.programs import conv_relu, matmul_add, softmax

PROGRAMS: dict[str, tuple[list[Tensor], str]] = {
    "tile": (matmul_add(1009, 1009, 1009), "i>j)"),
    "panel": (matmul_add(1009, 1009, 1009), ":Plan"),
    "packed": (matmul_add(1009, 1009, 1009), "i>j,packed x2)"),
    "channels": (conv_relu(64, 56, 64), "i>j>o,packed x2)"),
    "rows": (softmax(64, 1000), ":Plan"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_trace_of_the_search(name: str, golden: Golden) -> None:
    args, wanted = PROGRAMS[name]
    dag = ComputeDAG(args)
    sketches = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(Target("llvm -mcpu=znver5 -num-cores=2")))
    sketch = next(sketch for sketch in sketches if sketch.name.endswith(wanted))
    trace = sketch.trace_of([decision.count // 2 for decision in sketch.decisions])
    steps = "\n".join(json.dumps(step) for step in trace.to_json())
    golden(f"search/{name}.txt", f"{steps}\n\n" + "\n".join(dag.schedule(trace)[0].as_python().splitlines()) + "\n")
