"""Tasks of networks, and networks built by the records of their tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import auto_scheduler, relax, relay
from tensorexpr.errors import TuningError, TypeMismatchError
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.plain_context import context_to_json
from tensorexpr.relax import op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.kernel_worker import KernelService
from tensorexpr.te.serialize import dag_to_json
from tensorexpr.tune.measure.protocol import Frame

from .test_simplify import graph, weights

TARGET = tvm.target.Target("llvm -num-cores 2")


def network() -> tvm.IRModule:
    """Two products of one computation, one of another, a row of sums; of small numbers, as a softmax of large ones has only errors."""
    rng = np.random.default_rng(0)

    def small(rows: int, columns: int) -> Any:
        return relax.const((rng.uniform(0.2, 1, (rows, columns)) / rows).astype("float32"))

    def body(x: Any) -> Any:
        y = op.nn.relu(op.matmul(op.nn.relu(op.matmul(x, small(16, 16))), small(16, 16)))
        return op.nn.softmax(op.matmul(y, small(16, 8)))

    made: tvm.IRModule = graph(body, (4, 16))
    return made


def test_each_computation_is_a_task_with_its_count(tmp_path: Path) -> None:
    log = tmp_path / "dags.json"
    tasks, counts = auto_scheduler.extract_tasks(network(), None, TARGET, dump_workload_to_dag_log=log)
    assert {task.desc: count for task, count in zip(tasks, counts, strict=True)} == {"fused_matmul_relu": 2, "matmul1": 1}
    assert all(task.layout_rewrite_option == auto_scheduler.LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED for task in tasks)
    assert [json.loads(line)["workload_key"] for line in log.read_text().splitlines()] == [task.workload_key for task in tasks]
    _, every = auto_scheduler.extract_tasks([network(), network()], [None, None], TARGET, include_simple_tasks=True)
    assert sorted(every) == [2, 2, 4]
    with pytest.raises(TuningError, match="one target"):
        auto_scheduler.extract_tasks(network(), None, TARGET, other_targets=["llvm"])
    with pytest.raises(TypeMismatchError, match="not int"):
        auto_scheduler.extract_tasks(3, None, TARGET)


def test_a_relay_network_has_the_tasks_of_its_graph() -> None:
    x, w = relay.var("x", shape=(4, 16)), relay.var("w", shape=(8, 16))
    func = relay.Function((x, w), relay.nn.relu(relay.nn.dense(x, w)))
    value = np.ones((8, 16), "float32")
    (task,), _ = auto_scheduler.extract_tasks(tvm.IRModule.from_expr(func), {"w": value}, TARGET)
    assert "packed" in task.workload_key
    (task,), _ = auto_scheduler.extract_tasks(func, None, TARGET)  # a weight that comes with each call isn't packed when it is built
    assert "packed" not in task.workload_key


def tiled(task: auto_scheduler.SearchTask, factor: int) -> Any:
    """A record of a program that rules don't make, as a log has it."""
    state = task.compute_dag.get_init_state()
    stage = next(number for number, one in enumerate(state.stages) if one.op.name == "matmul")
    state.split(stage, state[stage].iters[1], [factor])
    result = auto_scheduler.MeasureResult((1e-6,), auto_scheduler.MeasureErrorNo.NO_ERROR, "", 0.1, 1.0, True)
    return auto_scheduler.MeasureInput(task, state), result


def test_a_build_runs_the_programs_of_records(tmp_path: Path) -> None:
    mod, log = network(), tmp_path / "log.json"
    tasks, _ = auto_scheduler.extract_tasks(mod, None, TARGET)
    made = [tiled(task, 8 if number else 4) for number, task in enumerate(tasks)]
    auto_scheduler.save_records(log, [inp for inp, _ in made], [res for _, res in made])
    x = np.random.default_rng(0).standard_normal((4, 16)).astype("float32")
    with auto_scheduler.ApplyHistoryBest(str(log)), tvm.transform.PassContext(config={"relax.build.processes": 1}):
        built = relax.build(mod, TARGET)
    assert sorted(built.origins.values()) == ["record", "record", "rule"]
    np.testing.assert_allclose(relax.VirtualMachine(built)["main"](x).numpy(), Evaluator(mod)("main", x), rtol=1e-4)
    # The kernels of records are kept under other keys than those by rules.
    assert set(relax.build(mod, TARGET).origins.values()) == {"rule"}


def test_workers_take_the_programs_of_records() -> None:
    (task,), _ = auto_scheduler.extract_tasks(graph(lambda x: op.matmul(x, weights(16, 8)), (4, 16)), None, TARGET)
    service, steps = KernelService(), tiled(task, 4)[0].trace.to_json()
    service.target(Frame({"type": "target", "target": TARGET.resolved().export(), "context": context_to_json(PassContext())}))
    computation = json.dumps(dag_to_json(task.compute_dag.tensors)).encode()
    header = {"type": "kernel", "symbol": "f", "constants": [1], "regions": []}
    found = [service.kernel(Frame({**header, "recorded": one}, (computation,))).header["kernel"]["origin"] for one in (steps, None)]
    assert found == ["record", "rule"]


def test_a_record_that_does_not_fit_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    mod = graph(lambda x: op.matmul(x, weights(16, 8)), (4, 16))
    (task,), _ = auto_scheduler.extract_tasks(mod, None, TARGET)
    (other,), _ = auto_scheduler.extract_tasks(graph(lambda x: op.nn.relu(op.matmul(x, weights(16, 8))), (4, 16)), None, TARGET)
    state = other.compute_dag.get_init_state()
    state.split(3, state[3].iters[1], [4])  # the ReLU, which the task hasn't
    with auto_scheduler.ApplyHistoryBest([]) as best:
        best.update(TARGET, task.workload_key, state)
        built = relax.build(mod, TARGET)
    assert list(built.origins.values()) == ["rule"] and "does not fit" in caplog.text
