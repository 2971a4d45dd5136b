"""Register tiles: which plans there are, what a sketch of one looks like, and which tiles may be built."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr
from tensorexpr import te
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.schedule.steps import BalancedSplit, CacheRead, SampleTile, TransformLayout
from tensorexpr.schedule.tree import LoopKind
from tensorexpr.spaces.operands import operands_of
from tensorexpr.spaces.register_plan import Pack, RegisterPlan, register_plans
from tensorexpr.spaces.sizes import balanced_rows, tile_vectors
from tensorexpr.spaces.state import SketchState
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.features import extract
from tensorexpr.tune.population import sample
from tensorexpr.tune.space import Sketch
from tests.programs import conv_relu, matmul_add

AVX512 = Target("llvm -mcpu=znver5 -num-cores=2")


def register_sketches(args: list[Tensor]) -> list[Sketch]:
    """The sketches with register tiles."""
    dag = ComputeDAG(args)
    return [s for s in generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(AVX512)) if "RegisterTile" in s.name]


def plans_of(args: list[Tensor], name: str) -> list[RegisterPlan]:
    """The plans for one stage."""
    tree = ComputeDAG(args).initial_tree
    stage = next(stage for stage in tree.stages if stage.name == name)
    return register_plans(SketchState(tree), stage, AVX512, False)


def test_a_product_has_its_columns_in_the_lanes_in_two_orders_and_three_ways_to_pack() -> None:
    plans = plans_of(matmul_add(1009, 1009, 1009), "matmul")
    assert {plan.vector for plan in plans} == {1}
    assert [(plan.outer, plan.pack) for plan in plans] == [
        ((1, 0), Pack.NONE),
        ((0, 1), Pack.NONE),
        ((1, 0), Pack.PANEL),
        ((0, 1), Pack.ROOT),
        ((0, 1), Pack.ROOT),
    ]


def test_panels_have_the_widths_that_waste_least() -> None:
    plans = plans_of(matmul_add(64, 64, 64), "matmul")
    assert [plan.vectors for plan in plans if plan.pack is Pack.ROOT] == [2, 4]  # 48 columns would leave 32 of 96 empty


def test_a_window_over_pixels_offers_the_channels_as_lanes_too() -> None:
    plans = plans_of(conv_relu(64, 56, 64), "conv")
    assert {plan.vector for plan in plans} == {0, 2}
    assert all(plan.pack is not Pack.NONE for plan in plans if plan.vector == 0)  # the weights' channels are far apart


def test_the_longest_reduction_runs_innermost() -> None:
    plans = plans_of(conv_relu(64, 56, 64), "conv")
    assert {plan.reduction for plan in plans} == {(4, 5, 3)}


def test_a_transposed_operand_must_be_packed() -> None:
    x, y = te.placeholder((6, 32, 20), name="X"), te.placeholder((6, 40, 20), name="Y")
    k = te.reduce_axis((0, 20), name="k")
    out = te.compute((6, 32, 40), lambda b, i, j: te.sum(x[b, i, k] * y[b, j, k], axis=k), name="out")
    plans = [plan for plan in plans_of([x, y, out], "out") if plan.vector == 2]
    assert plans
    assert all(plan.batch == (0,) and plan.pack is Pack.PANEL and plan.operand == 1 for plan in plans)


def test_operands_know_along_which_axis_they_lie() -> None:
    tree = ComputeDAG(conv_relu(4, 6, 8)).initial_tree
    conv = next(stage for stage in tree.stages if stage.name == "conv")
    pad, weights = operands_of(tree, conv)
    assert pad.is_contiguous(2)
    assert pad.has_windows(2)
    assert pad.index_of(2) is None
    assert not pad.moves_with(0)
    assert weights.index_of(0) == 0
    assert not weights.is_contiguous(0)
    assert weights.is_contiguous(5)


@pytest.mark.parametrize(("extent", "sizes"), [(1, (1,)), (5, (1, 2, 3, 5)), (17, (1, 2, 3, 4, 5, 6, 9, 17))])
def test_row_sizes_are_those_that_balanced_tiles_have(extent: int, sizes: tuple[int, ...]) -> None:
    assert tuple(sorted(balanced_rows(AVX512)(extent))) == sizes


def test_rows_leave_registers_for_a_vector_and_a_broadcast() -> None:
    assert max(balanced_rows(AVX512)(1009)) == 30
    assert max(balanced_rows(Target("llvm -mcpu=haswell"))(1009)) == 14


def test_sizes_need_not_divide_and_rows_are_balanced() -> None:
    sketch = next(s for s in register_sketches(matmul_add(1009, 1009, 1009)) if s.name.endswith("j>i)"))
    steps = [step for step in sketch.trace if isinstance(step, SampleTile)]
    assert {14, 13} <= {size for step in steps for size in step.sizes}
    assert sum(isinstance(step, BalancedSplit) for step in sketch.trace) == 1
    stage = next(s for s in sketch.tree.stages if s.name == "matmul")
    assert [stage.is_reduction(axis) for axis in stage.leaf] == [True, False, False]
    assert stage.mark(stage.leaf[-1]).kind is LoopKind.VECTORIZE


def test_a_panel_is_copied_at_its_own_loop_and_packed_panels_before_everything() -> None:
    for sketch in register_sketches(matmul_add(64, 64, 64)):
        copies = [step for step in sketch.trace if isinstance(step, CacheRead)]
        layouts = [step for step in sketch.trace if isinstance(step, TransformLayout)]
        assert len(copies) == ("panel" in sketch.name or "packed" in sketch.name)
        assert len(layouts) == ("packed" in sketch.name)


def test_tiles_beyond_the_registers_may_not_be_built() -> None:
    sketch = next(s for s in register_sketches(matmul_add(1009, 1009, 1009)) if s.name.endswith("j>i)"))
    rows = np.unique(sample(sketch, 2000, np.random.default_rng(0)), axis=0)
    vectors, heights = (sketch.decisions[column].values[rows[:, column], 0] for column in (0, 1))
    vectors = -(-vectors // 16)
    valid = extract(sketch, inline_stages(sketch.tree), rows, AVX512).valid
    assert (valid == (heights * vectors + vectors + 1 <= 32)).all()
    assert valid.any()
    assert not valid.all()


@pytest.mark.parametrize(("cpu", "expected"), [("znver5", (2, 3, 4)), ("haswell", (2, 3)), ("apple-m1", (2, 3, 4))])
def test_widths_of_tiles_are_those_that_are_not_bound_by_loads(cpu: str, expected: tuple[int, ...]) -> None:
    assert (
        tile_vectors(Target(f"llvm -mcpu={cpu} -mtriple={'aarch64' if cpu.startswith('apple') else 'x86_64'}-unknown-linux-gnu"))
        == expected
    )


@pytest.mark.parametrize("cpu", ["znver5", "haswell"])
def test_a_panel_of_a_transposed_operand_is_transposed_in_registers(cpu: str) -> None:
    """Whatever the lanes of a vector: elements that are inserted one by one would cost as much as the products."""
    a, b, k = te.placeholder((16, 32), name="A"), te.placeholder((64, 32), name="B"), te.reduce_axis((0, 32), name="k")
    dag = ComputeDAG([a, b, te.compute((16, 64), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")])
    target = Target(f"llvm -mcpu={cpu} -num-cores=2")
    found = [s for s in generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target)) if ",packed" in s.name or ",panel" in s.name]
    assert len(found) >= 3
    for sketch in found[:2]:
        s, args = dag.schedule(sketch.trace_of([0] * len(sketch.decisions)))
        text = tensorexpr.build(s, args, target).get_source("asm")
        assert "vinsertps" not in text and "vunpcklps" in text, sketch.name
