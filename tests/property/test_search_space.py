"""Properties 30 and 34: every sampled candidate is legal and right, and features are finite; the numbers they are made of
are those of the lowered program."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.lower.phase0.infer_bound import infer_bound
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.schedule import create_schedule
from tensorexpr.schedule.steps import BalancedSplit, SampleCategorical
from tensorexpr.schedule.tree import FuseRelation, StageNode
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tune.features import FEATURE_NAMES, extract
from tensorexpr.tune.features.nest import nests
from tensorexpr.tune.population import sample
from tensorexpr.tune.space import Sketch
from tests.programs import chain, conv_relu, matmul, matmul_add, softmax

PROGRAMS = {
    "matmul_add": matmul_add(16, 24, 12),
    "matmul": matmul(8, 20, 15),
    "primes": matmul_add(7, 13, 5),
    "conv_relu": conv_relu(),
    "softmax": softmax(),
    "chain": chain(),
    "ones": matmul_add(1, 1, 1),
}


def sketches_of(args: list[Tensor], target: str = "llvm") -> list[Sketch]:
    """The design spaces of a program on this machine, but for those on one thread."""
    dag = ComputeDAG(args)
    found = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(Target(target)))
    return [sketch for sketch in found if not sketch.name.endswith("+Serial")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_30_sampled_candidates_are_legal_and_right(name: str) -> None:
    args = PROGRAMS[name]
    dag = ComputeDAG(args)
    rng = np.random.default_rng(0)
    for sketch in sketches_of(args):
        for row in sample(sketch, 1, rng):
            schedule, _ = dag.schedule(sketch.trace_of(row))
            assert_schedule_correct(schedule, args, phases=(0,))


def own_leaf_extents(stage: StageNode, extents: dict[int, int]) -> list[int]:
    """The extents of a stage's loops with fused loops taken apart."""

    def expanded(axis: int) -> list[int]:
        for relation in stage.relations:
            if isinstance(relation, FuseRelation) and relation.fused == axis:
                return [extent for part in relation.parts for extent in expanded(part)]
        return [extents[axis]]

    return [extent for axis in stage.leaf for extent in expanded(axis)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_extents_of_the_arrays_are_those_of_bound_inference(name: str) -> None:
    args = PROGRAMS[name]
    dag = ComputeDAG(args)
    # No vector is longer than an axis of the programs: bound inference counts the lanes of such a one in some places and not in others.
    for sketch in sketches_of(args, "llvm -vector-width=256"):
        rows = sample(sketch, 5, np.random.default_rng(1))
        built = nests(sketch, inline_stages(sketch.tree), rows)
        for number, row in enumerate(rows):
            tree = dag.schedule(sketch.trace_of(row))[0].tree
            domains = infer_bound(tree, inline_stages(tree), Analyzer())
            for nest in built:
                domain = domains[nest.stage.id]
                exact = {axis: as_int(extent) for axis, extent in domain.extents.items()}
                wanted = own_leaf_extents(tree[nest.stage.id], {axis: value or 0 for axis, value in exact.items()})
                assert [int(loop.extent[number]) for loop in nest.loops if loop.own] == wanted, nest.stage.name


@pytest.mark.parametrize("name", PROGRAMS)
def test_34_features_are_finite_and_of_one_shape(name: str) -> None:
    for sketch in sketches_of(PROGRAMS[name]):
        rows = sample(sketch, 50, np.random.default_rng(2))
        made = extract(sketch, inline_stages(sketch.tree), rows, Target("llvm"))
        assert made.features.shape == (50, len(FEATURE_NAMES))
        assert np.isfinite(made.features).all()
        assert (made.cycles > 0).all()


def test_extents_of_balanced_tiles_of_open_size() -> None:
    """A sketch of our own: 23 rows in tiles of at most 3, 4 or 5, and 7 of them."""
    args = matmul(23, 14, 3)
    start = create_schedule(args[-1].op)
    initial = start.tree
    stage = start[args[-1]].id
    steps = (SampleCategorical((3, 4, 5)), BalancedSplit(stage, 0, (None, (0, 0))), BalancedSplit(stage, 1, (7, None)))
    for step in steps:
        start.apply_step(step)
    sketch = Sketch("tiles", start.outputs, initial, start.trace)
    rows = np.array([[0], [1], [2]])
    (nest,) = nests(sketch, inline_stages(sketch.tree), rows)
    assert [loop.extent.tolist() for loop in nest.loops] == [[8, 6, 5], [3, 4, 5], [7, 7, 7], [2, 2, 2], [3, 3, 3]]
