"""Kernels of graphs by the logs of AutoTVM's tasks: which operator a kernel is, and which records it follows."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import autotvm, relax, relay
from tensorexpr.autotvm.graph_tuner import DPTuner, PBQPTuner
from tensorexpr.autotvm.measure.measure import MeasureInput, MeasureResult
from tensorexpr.driver import tvmc
from tensorexpr.driver.tvmc import compiler
from tensorexpr.driver.tvmc.model import TVMCException, TVMCModel
from tensorexpr.errors import TuningError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.network_tasks import fused_graph, network_graph
from tensorexpr.relax.template_records import workloads_of
from tensorexpr.relax.tensor_function import plain_tensors
from tensorexpr.tir.function import PrimFunc

TARGET = "llvm -num-cores 2"
RNG = np.random.default_rng(0)


def weight(*shape: int) -> Any:
    return relay.const(RNG.standard_normal(shape).astype("float32"))


def network() -> Any:
    """Convolutions with strides, borders and dilation, one of each channel, products, each with something behind it."""
    x = relay.var("x", shape=(1, 8, 9, 7))
    y = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, weight(16, 8, 3, 3), strides=(2, 1), padding=(1, 0, 0, 1)), weight(16)))
    y = relay.nn.conv2d(y, weight(16, 1, 3, 3), padding=(1, 1), groups=16, channels=16, kernel_size=(3, 3))
    y = relay.nn.relu(relay.nn.conv2d(y, weight(24, 16, 1, 1)))
    y = relay.nn.conv2d(y, weight(8, 24, 3, 3), padding=(2, 2), dilation=(2, 2))
    y = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(y)), weight(12, 8))
    return tvm.IRModule.from_expr(relay.Function((x,), relay.tanh(y)))


MOD = network()
TASKS = autotvm.task.extract_from_program(MOD["main"], {}, TARGET)


def records(**sizes: int) -> list[Any]:
    """A configuration of each task, as if measured: the first whose splits have these innermost sizes, where there is one."""
    made = []
    for task in TASKS:
        places = []
        for name, space in task.config_space.space_map.items():
            fitting = [n for n, one in enumerate(space.entities) if name in sizes and getattr(one, "size", [0])[-1] == sizes[name]]
            places.append(fitting[0] if fitting else 0)
        config = task.config_space.get(task.config_space.knob2point(places))
        made.append((MeasureInput(task.target, task, config), MeasureResult((1e-3,), 0, 1.0, 0.0)))
    return made


def run(executable: Any) -> Any:
    x = np.random.default_rng(1).standard_normal((1, 8, 9, 7)).astype("float32")
    return relax.VirtualMachine(executable)["main"](x).numpy(), Evaluator(network_graph(MOD))("main", x)


def test_kernels_are_the_tasks_of_the_graph() -> None:
    kernels = [func for func in fused_graph(MOD).functions.values() if isinstance(func, PrimFunc)]
    found = []
    for func in kernels:
        try:
            found += list(workloads_of(plain_tensors(func)))
        except tvm.errors.ScheduleError:
            continue
    assert set(found) == {task.workload for task in TASKS} and len(found) == len(TASKS) == 6


@pytest.mark.parametrize("layout", [[], [relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "HWIO"]})]])
def test_kernels_follow_records_in_any_layout(layout: list[Any]) -> None:
    mod: Any = tvm.transform.Sequential(layout)(MOD)
    with autotvm.apply_history_best(records(tile_oc=8, tile_ow=2, tile_ic=4, tile_x=4)):
        executable = relax.build(network_graph(mod), TARGET)
    assert sum(origin == "record" for origin in executable.origins.values()) == 5
    found, expected = run(executable)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_tuners_of_layouts_choose_the_best_records(tmp_path: Path) -> None:
    slow, fast = records(tile_oc=4), records(tile_oc=8)
    pairs = [(one, MeasureResult((5e-3,), 0, 1.0, 0.0)) for one, _ in slow] + fast
    for made in (DPTuner, PBQPTuner):
        tuner = made(MOD["main"], {"x": (1, 8, 9, 7)}, pairs, [relay.op.get("nn.conv2d")], TARGET)
        tuner.benchmark_layout_transform(min_exec_num=1)
        tuner.run()
        assert [str(one.config) for one, _ in tuner.get_optimal_records()] == [str(one.config) for one, _ in fast[:4]]
    tuner.write_opt_sch2record_file(str(tmp_path / "graph.log"))
    with autotvm.apply_graph_best(str(tmp_path / "graph.log")):
        executable = relax.build(network_graph(MOD), TARGET)
    assert sum(origin == "record" for origin in executable.origins.values()) == 4
    with pytest.raises(TuningError, match="no input 'data'; it has x"):
        DPTuner(MOD["main"], {"data": (1, 8, 9, 7)}, pairs, ["nn.conv2d"], TARGET)
    with pytest.raises(TuningError, match=r"x is \(1, 8, 9, 8\), and \(1, 8, 9, 7\) in the graph"):
        DPTuner(MOD["main"], {"x": (1, 8, 9, 8)}, pairs, ["nn.conv2d"], TARGET)


def test_what_does_not_fit_is_said_and_left_out(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    config = autotvm.task.space.ConfigEntity(0, None, {"tile_oc": autotvm.task.space.SplitEntity([-1, 999])})
    with autotvm.task.ApplyConfig(config), caplog.at_level(logging.WARNING):
        executable = relax.build(network_graph(MOD), TARGET)
    assert "tile_oc is [-1, 999] in the log, which isn't among the kernel's" in caplog.text
    assert set(executable.origins.values()) == {"rule"}
    with open(tmp_path / "autotvm.log", "w") as log:
        log.writelines(autotvm.record.encode(*pair) + "\n" for pair in records())
    assert len(compiler._records(tmp_path / "autotvm.log")) == len(TASKS)
    x = relay.var("x", shape=(3, 5))
    other = TVMCModel(tvm.IRModule.from_expr(relay.Function((x,), relay.nn.dense(x, weight(2, 5)))))
    with pytest.raises(TVMCException, match=r"autotvm.log: of its 6 workloads none is a kernel of this network \(.*matmul"):
        tvmc.compile(other, TARGET, tuning_records=tmp_path / "autotvm.log", package_path=tmp_path / "other.so")
    (tmp_path / "other.log").write_bytes(b"\xff neither")
    with pytest.raises(TVMCException, match=r"other.log holds no records"):
        compiler._records(tmp_path / "other.log")
