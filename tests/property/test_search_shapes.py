"""Properties 30, 31, 33 and 34 for register tiles, packed panels, reductions in lanes and over threads, programs of rows,
and for Ansor's own rules."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.auto_scheduler import default_schedule
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.default import rank
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.lower.phase0.infer_bound import infer_bound
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule.trace import Trace
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tir.structural import structural_equal
from tensorexpr.tune.features import FEATURE_NAMES, extract
from tensorexpr.tune.features.nest import nests
from tensorexpr.tune.population import sample
from tensorexpr.tune.space import Sketch
from tests.programs import conv_relu, matmul, matmul_add, softmax
from tests.property.test_search_space import own_leaf_extents

MACHINE = Target("llvm -num-cores=4")
NEW = ("Tile(", "Reduction")  # programs of plans alone have the same properties in test_plan_programs


def transposed_products() -> list[Tensor]:
    """A batch of products with a transposed operand."""
    x, y, k = te.placeholder((3, 7, 6), name="X"), te.placeholder((3, 21, 6), name="Y"), te.reduce_axis((0, 6), name="k")
    return [x, y, te.compute((3, 7, 21), lambda b, i, j: te.sum(x[b, i, k] * y[b, j, k], axis=k), name="out")]


def pixels() -> list[Tensor]:
    """A 1x1 convolution with relu."""
    x, w, k = te.placeholder((5, 7, 9), name="X"), te.placeholder((11, 5), name="W"), te.reduce_axis((0, 5), name="k")
    conv = te.compute((11, 7, 9), lambda o, i, j: te.sum(x[k, i, j] * w[o, k], axis=k), name="conv")
    return [x, w, topi.nn.relu(conv)]


def summed(rows: int, columns: int, axis: int | None) -> list[Tensor]:
    """A sum of a matrix."""
    x = te.placeholder((rows, columns), name="X")
    return [x, topi.sum(x, axis)]


def vector_product() -> list[Tensor]:
    """A matrix times a vector."""
    a, b, k = te.placeholder((9, 37), name="A"), te.placeholder((37,), name="b"), te.reduce_axis((0, 37), name="k")
    return [a, b, te.compute((9,), lambda i: te.sum(a[i, k] * b[k], axis=k), name="y")]


def sums_of_a_product() -> list[Tensor]:
    """A reduction behind a stage whose tile is open."""
    a, b, c = matmul(5, 20, 7)
    k = te.reduce_axis((0, 20), name="k")
    return [a, b, te.compute((5,), lambda i: te.max(c[i, k], axis=k), name="most")]


PROGRAMS = {
    "uneven": matmul_add(23, 37, 11),
    "one_row": matmul(1, 50, 13),
    "transposed": transposed_products(),
    "window": conv_relu(3, 7, 18),
    "pixels": pixels(),
    "vector": vector_product(),
    "behind": sums_of_a_product(),
}
ANSOR = {"narrow": matmul(3, 5, 40), "rows": softmax(2, 50), "sum": summed(1, 50, 1)}
CASES = [(name, args, False) for name, args in PROGRAMS.items()] + [(name, args, True) for name, args in ANSOR.items()]
IDS = [f"{'ansor-' if ansor else ''}{name}" for name, _, ansor in CASES]


def sketches_of(args: list[Tensor], ansor: bool) -> list[Sketch]:
    """The design spaces of a program that new rules made."""
    dag = ComputeDAG(args)
    found = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(MACHINE, only_ansor=ansor))
    parallel = [s for s in found if ansor or not s.name.endswith("+Serial")]
    return [s for s in parallel if ansor or any(word in s.name for word in NEW)] or parallel  # plans that are all of them


@pytest.mark.parametrize(("name", "args", "ansor"), CASES, ids=IDS)
def test_30_sampled_candidates_are_legal_and_right(name: str, args: list[Tensor], ansor: bool) -> None:
    dag = ComputeDAG(args)
    rng = np.random.default_rng(5)
    sketches = sketches_of(args, ansor)
    assert sketches
    for sketch in sketches:
        for row in sample(sketch, 2, rng):
            schedule, _ = dag.schedule(sketch.trace_of(row))
            assert_schedule_correct(schedule, args, phases=(0,))


def test_30_programs_on_one_thread_are_legal_and_right() -> None:
    args = matmul(3, 37, 5)
    dag = ComputeDAG(args)
    serial = [s for s in generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(MACHINE)) if s.name.endswith("+Serial")]
    assert serial
    for sketch in serial:
        schedule, _ = dag.schedule(sketch.trace_of(sample(sketch, 1, np.random.default_rng(3))[0]))
        assert_schedule_correct(schedule, args, phases=(0,))


@pytest.mark.parametrize("prefix", ["", "other_"])
def test_31_a_trace_from_json_makes_the_same_program_on_a_renamed_one(prefix: str) -> None:
    args, renamed = matmul_add(23, 37, 11), matmul_add(23, 37, 11, prefix)
    first, second = ComputeDAG(args), ComputeDAG(renamed)
    rng = np.random.default_rng(6)
    for sketch in sketches_of(args, ansor=False):
        trace = sketch.trace_of(sample(sketch, 1, rng)[0])
        again = Trace.from_json(json.loads(json.dumps(trace.to_json())))
        assert again == trace
        mods = [lower(dag.schedule(each)[0], dag.tensors, upto=0) for dag, each in ((first, trace), (second, again))]
        assert structural_equal(mods[0]["main"], mods[1]["main"])


def test_33_the_same_computation_has_the_same_ranking() -> None:
    first, second = (rank(ComputeDAG(matmul_add(50, 70, 30)), MACHINE, 4) for _ in range(2))
    assert first.candidates == second.candidates
    assert len(first.candidates) > 4


@pytest.mark.parametrize(("name", "args", "ansor"), CASES, ids=IDS)
def test_34_features_are_finite_and_of_one_shape(name: str, args: list[Tensor], ansor: bool) -> None:
    for sketch in sketches_of(args, ansor):
        rows = sample(sketch, 50, np.random.default_rng(2))
        made = extract(sketch, inline_stages(sketch.tree), rows, MACHINE)
        assert made.features.shape == (50, len(FEATURE_NAMES))
        assert np.isfinite(made.features).all()
        assert (made.cycles > 0).all()
        assert made.valid.shape == (50,)


@pytest.mark.parametrize(("name", "args", "ansor"), CASES, ids=IDS)
def test_extents_of_the_arrays_are_those_of_bound_inference(name: str, args: list[Tensor], ansor: bool) -> None:
    dag = ComputeDAG(args)
    for sketch in sketches_of(args, ansor):
        rows = sample(sketch, 3, np.random.default_rng(1))
        built = nests(sketch, inline_stages(sketch.tree), rows)
        for number, row in enumerate(rows):
            tree = dag.schedule(sketch.trace_of(row))[0].tree
            domains = infer_bound(tree, inline_stages(tree), Analyzer())
            for nest in built:
                exact = {axis: as_int(extent) or 0 for axis, extent in domains[nest.stage.id].extents.items()}
                own = [int(loop.extent[number]) for loop in nest.loops if loop.own]
                assert own == own_leaf_extents(tree[nest.stage.id], exact), f"{sketch.name}: {nest.stage.name}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_schedule_is_right_and_valid(name: str) -> None:
    assert_schedule_correct(default_schedule(PROGRAMS[name], MACHINE), PROGRAMS[name], phases=(0,))


def test_what_is_not_searched_has_the_plan_of_the_rules() -> None:
    """It kept its plain loops: a sum of 128 rows of 768, of any number of rows, in 92 us and 5 since (two cores of Zen 3)."""
    n = te.var("n")
    x = te.placeholder((n,), name="X")
    out = te.compute((n,), lambda i: x[i] + 1.0, name="out")
    schedule = default_schedule([x, out], MACHINE)
    assert "vectorize" in schedule.as_python()
    assert_schedule_correct(schedule, [x, out], sizes=[{n: size} for size in (0, 1, 19)])
