"""Properties 30, 31 and 34 for the programs of plans with their sizes open, and for programs between them and the plans."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.auto_scheduler import default_schedule
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.lower.phase0.infer_bound import infer_bound
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule.trace import Trace
from tensorexpr.spaces import default_schedule as planned
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.structural import structural_equal
from tensorexpr.tune.features import FEATURE_NAMES, extract
from tensorexpr.tune.features.nest import nests
from tensorexpr.tune.population import sample
from tensorexpr.tune.space import Sketch
from tests.programs import matmul, matmul_add, softmax
from tests.property.test_search_space import own_leaf_extents

MACHINE = Target("llvm -num-cores=4")


def convolution(channels: int, plane: int, filters: int, kernel: int, stride: int = 1, padding: int = 1, dilation: int = 1) -> list[Tensor]:
    """A padded convolution with relu."""
    x = te.placeholder((1, channels, plane, plane), name="X")
    w = te.placeholder((filters, channels, kernel, kernel), name="W")
    return [x, w, topi.nn.relu(topi.nn.conv2d(x, w, stride, padding, dilation))]


def depthwise(stride: int) -> list[Tensor]:
    """A convolution of each channel by itself."""
    x, w = te.placeholder((1, 2, 9, 17), name="X"), te.placeholder((2, 1, 3, 3), name="W")
    return [x, w, topi.nn.depthwise_conv2d_nchw(x, w, stride, 1, 1)]


def transposed_convolution() -> list[Tensor]:
    """Results between the pixels of the data."""
    x, w = te.placeholder((1, 2, 2, 2), name="X"), te.placeholder((2, 16, 4, 4), name="W")
    return [x, w, topi.nn.conv2d_transpose_nchw(x, w, (2, 2), (1, 1), "float32", (0, 0))]


def batched() -> list[Tensor]:
    """Products of several matrices."""
    x, y = te.placeholder((2, 9, 5), name="X"), te.placeholder((2, 5, 37), name="Y")
    return [x, y, topi.nn.batch_matmul(x, y, transpose_b=False)]


def unary(shape: tuple[int, ...], what: str) -> list[Tensor]:
    """One tensor in, one out."""
    x = te.placeholder(shape, name="X")
    made = {"transpose": lambda: topi.transpose(x), "rows": lambda: topi.sum(x, 1), "columns": lambda: topi.sum(x, 0)}
    return [x, made[what]() if what in made else topi.sum(x)]


PROGRAMS = {
    "product": matmul_add(11, 37, 5),
    "one_vector": matmul(9, 16, 8),
    "batched": batched(),
    "padded": convolution(17, 3, 16, 3),
    "strided": convolution(2, 7, 16, 3, stride=2),
    "dilated": convolution(2, 5, 16, 3, padding=2, dilation=2),
    "pixels": convolution(5, 5, 11, 1, padding=0),
    "depthwise": depthwise(1),
    "strided_depthwise": depthwise(2),
    "transposed": transposed_convolution(),
    "softmax": softmax(8, 50),
    "transpose": unary((21, 70), "transpose"),
    "row_sums": unary((5, 300), "rows"),
    "column_sums": unary((50, 37), "columns"),
    "sum": unary((21, 40), "all"),
}


def sketches_of(args: list[Tensor], target: Target = MACHINE) -> list[Sketch]:
    """The design spaces that plans made."""
    dag = ComputeDAG(args)
    return [s for s in generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target)) if ":Plan" in s.name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_30_sampled_candidates_are_legal_and_right(name: str) -> None:
    args = PROGRAMS[name]
    dag = ComputeDAG(args)
    rng = np.random.default_rng(7)
    sketches = [sketch for sketch in sketches_of(args) if not sketch.name.endswith("+Serial")]
    assert sketches
    for sketch in sketches:
        rows = sample(sketch, 2, rng)
        valid = extract(sketch, inline_stages(sketch.tree), rows, MACHINE).valid
        for row in rows[valid][:1] if valid.any() else rows[:1]:
            schedule, _ = dag.schedule(sketch.trace_of(row))
            assert_schedule_correct(schedule, args, phases=(0,))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_preferred_program_is_the_plan(name: str) -> None:
    args = PROGRAMS[name]
    dag = ComputeDAG(args)
    sketch = sketches_of(args)[0]
    assert sketch.name == "sketch0:Plan"
    assert sketch.preferred_row is not None
    schedules = (dag.schedule(sketch.trace_of(sketch.preferred_row))[0], planned(args, MACHINE))
    first, second = (lower(schedule, args, upto=0)["main"] for schedule in schedules)
    assert structural_equal(first, second)


@pytest.mark.parametrize("name", PROGRAMS)
def test_31_a_trace_from_json_is_the_same(name: str) -> None:
    rng = np.random.default_rng(8)
    for sketch in sketches_of(PROGRAMS[name]):
        trace = sketch.trace_of(sample(sketch, 1, rng)[0])
        assert Trace.from_json(json.loads(json.dumps(trace.to_json()))) == trace


@pytest.mark.parametrize("cpu", ["haswell", "znver5"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_34_features_are_finite_and_the_plan_may_be_built(name: str, cpu: str) -> None:
    target = Target(f"llvm -mcpu={cpu} -num-cores=4")
    for sketch in sketches_of(PROGRAMS[name], target):
        rows = np.concatenate([np.array([sketch.preferred_row], np.int64), sample(sketch, 50, np.random.default_rng(2))])
        made = extract(sketch, inline_stages(sketch.tree), rows, target)
        assert made.features.shape == (51, len(FEATURE_NAMES))
        assert np.isfinite(made.features).all()
        assert (made.cycles > 0).all()
        assert made.valid[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_schedule_is_right(name: str) -> None:
    assert_schedule_correct(default_schedule(PROGRAMS[name], MACHINE), PROGRAMS[name], phases=(0,))


@pytest.mark.parametrize("name", PROGRAMS)
def test_extents_of_the_arrays_are_those_of_bound_inference(name: str) -> None:
    """A tile inside of a panel computes one panel, not one and a part of the next."""
    dag = ComputeDAG(PROGRAMS[name])
    sketch = sketches_of(PROGRAMS[name])[0]
    row = np.array([sketch.preferred_row], np.int64)
    built = nests(sketch, inline_stages(sketch.tree), row)
    tree = dag.schedule(sketch.trace_of(row[0]))[0].tree
    domains = infer_bound(tree, inline_stages(tree), Analyzer())
    for nest in built:
        exact = {axis: as_int(extent) or 0 for axis, extent in domains[nest.stage.id].extents.items()}
        own = [int(loop.extent[0]) for loop in nest.loops if loop.own]
        assert own == own_leaf_extents(tree[nest.stage.id], exact), nest.stage.name
