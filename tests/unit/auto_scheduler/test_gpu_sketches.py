"""Sketches for GPUs: what they draw keeps within a chip's limits, what is counted of programs is what an emulator counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import auto_scheduler, te, topi
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.errors import TuningError
from tensorexpr.spaces.default import default_schedule
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.ptx import emulator
from tensorexpr.tir.analysis import verify_gpu_code
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tune.cost_model import rank_correlation
from tensorexpr.tune.features.device import DEVICE_FEATURE_NAMES
from tensorexpr.tune.space import Sketch

TARGET = Target("cuda -arch=sm_80")
LIMITS = {"max_threads_per_block": 1024, "max_shared_memory_per_block": 48 << 10, "max_vthread": 8, "max_vector_bytes": 16}


def inputs(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [te.placeholder(shape, name="ABC"[number]) for number, shape in enumerate(shapes)]


def product(n: int, m: int, k: int) -> list[Tensor]:
    a, b = inputs((n, k), (k, m))
    return [a, b, topi.nn.relu(topi.matmul(a, b))]


def convolution() -> list[Tensor]:
    a, b = inputs((1, 16, 28, 28), (32, 16, 3, 3))
    return [a, b, topi.nn.conv2d_nchw(a, b, 1, 1, 1)]


def one(define: Callable[[Tensor], Tensor], *shape: int) -> list[Tensor]:
    (a,) = inputs(shape)
    return [a, define(a)]


CASES: dict[str, Callable[[], list[Tensor]]] = {
    "product": lambda: product(256, 256, 64),
    "large product": lambda: product(2048, 2048, 1024),
    "convolution": convolution,
    "sums of rows": lambda: one(lambda a: topi.sum(a, 1), 64, 1024),
    "sums of columns": lambda: one(lambda a: topi.sum(a, 0), 64, 1024),
    "softmax": lambda: one(topi.nn.softmax, 64, 256),
    "elementwise": lambda: one(topi.nn.relu, 64, 1000),
}


def sketches_of(tensors: list[Tensor], target: Target = TARGET) -> tuple[ComputeDAG, list[Sketch]]:
    dag = ComputeDAG(tensors)
    return dag, generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target))


def column(features: Any, name: str) -> Any:
    """A feature of the heaviest kernel, unscaled."""
    return 2.0 ** features[:, DEVICE_FEATURE_NAMES.index(f"k0.{name}")] - 1


@pytest.mark.parametrize("name", CASES)
def test_most_draws_keep_within_the_limits(name: str) -> None:
    dag, sketches = sketches_of(CASES[name]())
    random, drawn, valid, checked = np.random.default_rng(0), 0, 0, []
    for sketch in sketches:
        rows = sketch.sample(500, random)
        within = sketch.features(rows, TARGET).valid
        drawn, valid = drawn + len(rows), valid + int(within.sum())
        # what the search builds is one of these
        checked += [sketch.trace_of(row) for row in random.permutation(rows[within])[: 1 if name == "large product" else 2]]
    assert valid >= 0.9 * drawn
    fitting = 0
    for trace in checked:
        schedule, args = dag.schedule(trace)
        with TARGET:
            lowered = tvm.lower(schedule, args)
        fitting += verify_gpu_code(lowered["main"], LIMITS)
    assert fitting == len(checked)


@pytest.mark.parametrize("name", ["product", "convolution", "sums of rows", "softmax", "elementwise"])
def test_the_first_program_is_the_schedule_by_rules(name: str) -> None:
    tensors = CASES[name]()
    dag, sketches = sketches_of(tensors)
    assert sketches[0].preferred_row is not None
    schedule, _ = dag.schedule(sketches[0].trace_of(sketches[0].preferred_row))
    assert schedule.as_python() == default_schedule(dag.tensors, TARGET).as_python()


# Programs in which every thread has something to do.
@pytest.mark.parametrize(
    ("tensors", "number"),
    [
        (product(32, 64, 16), 0),
        (one(topi.nn.relu, 32, 64), 0),
        (one(topi.transpose, 64, 64), 0),
        (one(lambda a: topi.sum(a, 1), 8, 512), 0),
        (one(lambda a: topi.sum(a, 0), 8, 512), 0),
        (one(lambda a: topi.sum(a, 1), 64, 64), 1),
    ],
)
def test_what_is_counted_is_what_an_emulator_counts(tensors: list[Tensor], number: int) -> None:
    dag, sketches = sketches_of(tensors)
    sketch = sketches[number]
    rows = sketch.sample(64, np.random.default_rng(1))
    made = sketch.features(rows, TARGET)
    for row in np.flatnonzero(made.valid)[:1]:
        schedule, args = dag.schedule(sketch.trace_of(rows[row]))
        module: Any = tvm.build(schedule, args, target=TARGET)
        device = emulator()
        module(*(tvm.nd.array(np.ones([as_int(extent) or 0 for extent in arg.shape], "float32"), device) for arg in args))
        blocks, warps = column(made.features, "blocks")[row], np.ceil(column(made.features, "threads")[row] / 32)
        counted = {name: column(made.features, name)[row] * blocks * warps for name in ("sectors", "bank_conflicts")}
        assert device.counters.global_transactions == pytest.approx(
            counted["sectors"], rel=0.15 if "transpose" in tensors[-1].op.name else 1e-6
        )
        assert device.counters.bank_conflicts == pytest.approx(counted["bank_conflicts"])


def test_registers_and_shared_memory_of_a_large_product() -> None:
    _, sketches = sketches_of(product(4096, 4096, 4096))
    made = sketches[0].features(np.array([sketches[0].preferred_row]), TARGET)
    assert made.valid.all()
    # 64 sums, 32 and 8 values of the operands, and what addresses take: ptxas counts 128
    assert column(made.features, "registers")[0] == pytest.approx(128)
    assert column(made.features, "spilled")[0] == pytest.approx(0)
    copies = max(2 if stage.double_buffer is True else max(1, int(stage.double_buffer)) for stage in sketches[0].tree.stages)
    assert column(made.features, "shared_bytes")[0] == pytest.approx(18432 * copies)
    assert column(made.features, "resident")[0] == pytest.approx(2)


def test_the_prior_prefers_what_is_coalesced() -> None:
    """A thread for each row reads across memory, threads that share a row read along it."""
    _, sketches = sketches_of(one(lambda a: topi.sum(a, 1), 4096, 1024))
    costs = [sketch.features(sketch.sample(50, np.random.default_rng(0)), TARGET).cycles for sketch in sketches]
    assert costs[0].max() < costs[1].min()
    # elementwise: single elements take more requests than vectors
    _, (plan, *_) = sketches_of(one(topi.nn.relu, 1024, 1024))
    rows = plan.sample(500, np.random.default_rng(0))
    made = plan.features(rows, TARGET)
    wide = np.array([plan.decisions[0].values[row[0], 0] for row in rows])
    assert rank_correlation(-made.cycles[wide > 0], wide) > 0


def test_hardware_params_are_limits_of_the_draws() -> None:
    params = auto_scheduler.HardwareParams(
        num_cores=-1, vector_unit_bytes=16, cache_line_bytes=64, max_threads_per_block=128, max_shared_memory_per_block=8192,
        max_local_memory_per_block=(1 << 31) - 1, max_vthread_extent=4, warp_size=32,
    )  # fmt: skip
    task = auto_scheduler.SearchTask(compute_dag=product(256, 256, 64), target=TARGET, hardware_params=params)
    _, sketches = sketches_of(product(256, 256, 64), task.target)
    for sketch in sketches:
        made = sketch.features(sketch.sample(300, np.random.default_rng(0)), task.target)
        assert made.valid.any()
        for name, most in (("threads", 128), ("shared_bytes", 8192), ("virtual", 4)):
            assert column(made.features, name)[made.valid].max() <= most + 0.5
    assert task.hardware_params.max_threads_per_block == 128
    assert auto_scheduler.SearchTask.deserialize(task.serialize()).hardware_params.max_vthread_extent == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_cores": 4}, "num_cores is 4, but programs for cuda don't depend on it"),
        ({"max_threads_per_block": 2048}, "max_threads_per_block is 2048, but .* has 1024"),
        ({"warp_size": 16}, "warp_size is 16, but .* has 32"),
    ],
)
def test_hardware_params_that_no_program_follows(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TuningError, match=message):
        auto_scheduler.SearchTask(compute_dag=one(topi.nn.relu, 8), target=TARGET, hardware_params=auto_scheduler.HardwareParams(**given))


def test_rules_of_the_paper_are_for_cpus() -> None:
    task = auto_scheduler.SearchTask(compute_dag=one(topi.nn.relu, 8), target=TARGET)
    with pytest.raises(TuningError, match="leave the parameter out"):
        auto_scheduler.SketchPolicy(task, params={"rules": "ansor"}).generate_sketches()


def test_programs_are_ranked_without_measuring() -> None:
    task = auto_scheduler.SearchTask(compute_dag=product(256, 256, 64), target=TARGET)
    ranked = auto_scheduler.SketchPolicy(task).evolutionary_search((), 4)
    assert len(ranked) == 4
