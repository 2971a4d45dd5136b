"""Networks as tasks of meta_schedule: their functions, a search of all of them, and builds with what it found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import relax, relay
from tensorexpr.contrib import graph_executor
from tensorexpr.errors import TuningError, TypeMismatchError
from tensorexpr.meta_schedule.database import MemoryDatabase, TuningRecord
from tensorexpr.schedule.blocks import Schedule
from tests.meta_schedule_programs import NoBuild, Pretended

TARGET = "llvm -num-cores 2"
X = np.linspace(-1, 1, 8).astype("float32").reshape(2, 4)
WEIGHTS = {name: np.full((4, 4), value, "float32") for name, value in (("v", 0.5), ("w", 0.25))}


def network() -> tvm.IRModule:
    """Two dense layers of the same sizes, and a softmax."""
    x, v, w = relay.var("x", shape=(2, 4)), relay.var("v", shape=(4, 4)), relay.var("w", shape=(4, 4))
    layers = relay.nn.relu(relay.nn.dense(relay.nn.relu(relay.nn.dense(x, v)), w))
    return tvm.IRModule.from_expr(relay.Function((x, v, w), relay.nn.softmax(layers)))


def test_equal_functions_are_one_task() -> None:
    tasks = ms.relay_integration.extract_tasks(network(), TARGET, WEIGHTS)
    assert {one.task_name: one.weight for one in tasks} == {"fused_matmul_relu": 2, "softmax": 1}
    for one in tasks:
        (mod,) = one.dispatched
        assert (
            [var.name_hint for var in mod.get_global_vars()] == ["main"] and "main" in one.mod and one.target == tvm.target.Target(TARGET)
        )
    contexts, weights = ms.relay_integration.extracted_tasks_to_tune_contexts(tasks, "unused", seed=1)
    assert [one.task_name for one in contexts] == [one.task_name for one in tasks] and weights == [float(one.weight) for one in tasks]
    graph = relax.transform.Normalize()(relay.Function.module_to_graph(network()))
    assert [one.task_name for one in ms.relax_integration.extract_tasks(graph, TARGET, WEIGHTS)] == [one.task_name for one in tasks]
    with pytest.raises(TypeMismatchError, match="not int"):
        ms.relax_integration.extract_tasks(3, TARGET)


def ran(lib: Any) -> Any:
    net = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    net.run(x=X)
    return net.get_output(0).numpy()


def test_a_build_has_the_schedules_of_the_database() -> None:
    database = MemoryDatabase()
    (dense,) = (one for one in ms.relay_integration.extract_tasks(network(), TARGET, WEIGHTS) if one.weight == 2)
    (mod,) = dense.dispatched
    sch = Schedule(mod)
    (block, *_) = sch.get_child_blocks(sch.get_block("root"))
    sch.parallel(sch.get_loops(block)[0])
    workload = database.commit_workload(mod)
    trace: Any = sch.trace
    database.commit_tuning_record(TuningRecord(trace, workload, [1e-6], tvm.target.Target(TARGET), ms.ArgInfo.from_entry_func(mod)))
    plain = ran(relay.build(network(), TARGET, params=WEIGHTS))
    lib = ms.relay_integration.compile_relay(database, network(), TARGET, WEIGHTS)
    assert dict(lib.module.origins) == {"fused_matmul_relu": "record", "softmax": "rule"}
    np.testing.assert_allclose(ran(lib), plain, rtol=1e-5, atol=1e-6)
    machine = relax.VirtualMachine(ms.relay_integration.compile_relay(database, network(), TARGET, WEIGHTS, backend="vm"))
    np.testing.assert_allclose(machine["main"](X).numpy(), plain, rtol=1e-5, atol=1e-6)
    with pytest.warns(UserWarning, match="no record of softmax"):
        ms.relax_integration.compile_relax(database, network(), TARGET, WEIGHTS, enable_warning=True)
    with pytest.raises(TuningError, match='it is "graph" or "vm"'):
        ms.relay_integration.compile_relay(database, network(), TARGET, WEIGHTS, backend="aot")


def test_a_search_of_all_tasks(tmp_path: Path) -> None:
    database = ms.relay_integration.tune_relay(network(), WEIGHTS, TARGET, str(tmp_path), 2, num_trials_per_iter=1, seed=0)
    assert {record.workload.mod for record in database.get_all_tuning_records()} and (tmp_path / "database_tuning_record.json").exists()
    lib = ms.relay_integration.compile_relay(database, network(), TARGET, WEIGHTS)
    assert "record" in lib.module.origins.values()
    np.testing.assert_allclose(ran(lib), ran(relay.build(network(), TARGET, params=WEIGHTS)), rtol=1e-5, atol=1e-6)
    with pytest.raises(TuningError, match="nothing to tune: of functions of known sizes there are"):
        ms.relax_integration.tune_relax(network(), WEIGHTS, TARGET, str(tmp_path), 2, op_names=["conv"])


def test_as_the_releases_of_2022_say_it(tmp_path: Path) -> None:
    config = ms.TuneConfig(max_trials_global=4, num_trials_per_iter=2, strategy="replay-trace")
    options: dict[str, Any] = {"builder": NoBuild(), "runner": Pretended(), "seed": 1}
    assert ms.relay_integration.extract_task_from_relay is ms.extract_task_from_relay
    tasks = ms.extract_task_from_relay(network(), TARGET, WEIGHTS)
    wanted = {"fused_matmul_relu": "record", "softmax": "record"}
    for place, arguments in enumerate(((config, str(tmp_path / "0")), (TARGET, config, str(tmp_path / "1")))):
        database = ms.tune.tune_extracted_tasks(tasks, *arguments, **options)
        assert (tmp_path / str(place) / "database_workload.json").exists()
        lib = ms.relay_integration.compile_relay(database, network(), TARGET, WEIGHTS)
        assert dict(lib.module.origins) == wanted
    lib = ms.tune_relay(network(), WEIGHTS, TARGET, config=config, work_dir=str(tmp_path / "2"), **options)
    assert dict(lib.module.origins) == wanted
    np.testing.assert_allclose(ran(lib), ran(relay.build(network(), TARGET, params=WEIGHTS)), rtol=1e-5, atol=1e-6)
    asked: list[str] = []

    def rules() -> list[Any]:
        asked.append("rules")
        return []

    ms.tune_extracted_tasks(tasks[:1], config, str(tmp_path / "3"), sch_rules=rules, **options)
    assert asked
    with pytest.raises(TuningError, match=r"how much to search: pass config=ms.TuneConfig"):
        ms.tune_extracted_tasks(tasks, work_dir=str(tmp_path))
    with pytest.raises(TuningError, match="needs work_dir and max_trials_global, or config"):
        ms.tune_relay(network(), WEIGHTS, TARGET)
