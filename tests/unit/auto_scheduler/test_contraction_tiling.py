"""Register tiles: which plans there are, what a sketch of one looks like, and which tiles may be built."""

from __future__ import annotations

import numpy as np
import pytest

import tensorexpr
from tensorexpr import te
from tensorexpr.auto_scheduler import LayoutRewriteOption
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.schedule import Schedule
from tensorexpr.schedule.steps import BalancedSplit, CacheRead, SampleCategorical, SampleTile, TransformLayout
from tensorexpr.schedule.tree import LoopKind
from tensorexpr.spaces.contraction_plan import Order, Pack, Plan, searched_plans
from tensorexpr.spaces.contractions import operands_of
from tensorexpr.spaces.sizes import balanced_rows, tile_vectors
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tune.features import extract
from tensorexpr.tune.population import sample
from tensorexpr.tune.space import Sketch
from tests.programs import conv_relu, matmul_add

AVX512 = Target("llvm -mcpu=znver5 -num-cores=2")


def tile_sketches(args: list[Tensor], target: Target = AVX512) -> list[Sketch]:
    """The sketches with register tiles."""
    dag = ComputeDAG(args)
    return [s for s in generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target)) if "Tile(" in s.name]


def plans_of(args: list[Tensor], name: str) -> list[Plan]:
    """The plans for one stage."""
    tree = ComputeDAG(args).initial_tree
    return searched_plans(tree, next(stage for stage in tree.stages if stage.name == name), AVX512, caller_packs=False)


def test_a_product_has_its_columns_in_the_lanes_in_two_orders_and_three_ways_to_pack() -> None:
    plans = plans_of(matmul_add(1009, 1009, 1009), "matmul")
    assert {plan.contraction.column for plan in plans} == {1}
    assert [(plan.order is Order.ROWS, plan.pack) for plan in plans] == [
        (False, Pack.NONE),
        (True, Pack.NONE),
        (False, Pack.PANEL),
        (True, Pack.ROOT),
        (False, Pack.PANEL),
        (True, Pack.ROOT),
    ]


def test_panels_have_the_widths_that_waste_least() -> None:
    plans = plans_of(matmul_add(64, 64, 64), "matmul")
    assert [plan.tile.vectors for plan in plans if plan.pack is Pack.ROOT] == [4, 2]  # 48 columns would leave 32 of 96 empty


def test_a_window_over_pixels_offers_the_channels_as_lanes_too() -> None:
    plans = plans_of(conv_relu(64, 56, 64), "conv")
    assert {plan.contraction.column for plan in plans} == {0, 2}
    # The weights' channels are far apart; windows over pixels have no panel.
    assert all((plan.pack is Pack.NONE) == (plan.contraction.column == 2) for plan in plans)


def test_a_transposed_operand_must_be_packed() -> None:
    x, y = te.placeholder((6, 32, 20), name="X"), te.placeholder((6, 40, 20), name="Y")
    k = te.reduce_axis((0, 20), name="k")
    out = te.compute((6, 32, 40), lambda b, i, j: te.sum(x[b, i, k] * y[b, j, k], axis=k), name="out")
    plans = [plan for plan in plans_of([x, y, out], "out") if plan.contraction.column == 2]
    assert plans
    assert all(plan.contraction.batch == (0,) and plan.pack is Pack.PANEL and plan.is_transposed for plan in plans)


def test_operands_know_along_which_axis_they_lie() -> None:
    tree = ComputeDAG(conv_relu(4, 6, 8)).initial_tree
    conv = next(stage for stage in tree.stages if stage.name == "conv")
    pad, weights = operands_of(tree, conv)
    assert pad.lies_along(2)
    assert pad.has_windows(2)
    assert pad.index_of(2) is None
    assert not pad.moves_with(0)
    assert weights.index_of(0) == 0
    assert not weights.lies_along(0)
    assert weights.lies_along(5)


@pytest.mark.parametrize(("extent", "sizes"), [(1, (1,)), (5, (1, 2, 3, 5)), (17, (1, 2, 3, 4, 5, 6, 9, 17))])
def test_row_sizes_are_those_that_balanced_tiles_have(extent: int, sizes: tuple[int, ...]) -> None:
    assert tuple(sorted(balanced_rows(AVX512)(extent))) == sizes


def test_rows_leave_registers_for_a_vector_and_a_broadcast() -> None:
    assert max(balanced_rows(AVX512)(1009)) == 30
    assert max(balanced_rows(Target("llvm -mcpu=haswell"))(1009)) == 14


def test_sizes_need_not_divide_and_rows_are_balanced() -> None:
    sketch = tile_sketches(matmul_add(1009, 1009, 1009))[0]
    steps = [step for step in sketch.trace if isinstance(step, SampleTile)]
    assert {14, 13} <= {size for step in steps for size in step.sizes}
    assert sum(isinstance(step, BalancedSplit) for step in sketch.trace) == 1
    stage = next(s for s in sketch.tree.stages if s.name == "matmul")
    assert [stage.is_reduction(axis) for axis in stage.leaf] == [True, False, False, False]
    assert stage.mark(stage.leaf[-1]).kind is LoopKind.VECTORIZE


def test_each_panel_is_a_copy_in_a_layout() -> None:
    for sketch in tile_sketches(matmul_add(64, 64, 64)):
        copies = [step for step in sketch.trace if isinstance(step, CacheRead)]
        layouts = [step for step in sketch.trace if isinstance(step, TransformLayout)]
        assert len(copies) == len(layouts) == ("panel" in sketch.name or "packed" in sketch.name)


@pytest.mark.parametrize("cpu", ["znver3", "znver5"])
def test_panels_go_together_as_far_as_the_second_cache_holds_them(cpu: str) -> None:
    target, dag = Target(f"llvm -mcpu={cpu} -num-cores=2"), ComputeDAG(matmul_add(1024, 1024, 1024))
    sketches = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target))
    found = []
    for sketch in sketches:
        widths = [step.mapping[0][2] for step in sketch.trace if isinstance(step, TransformLayout)]
        if widths and "packed" not in sketch.name:
            *_, together = (step.candidates for step in sketch.trace if isinstance(step, SampleCategorical))
            found.append((together, [count * 1024 * 4 * widths[0] <= target.l2_cache_size_bytes for count in together]))
    assert all(together[0] == 1 and all(fits) for together, fits in found)
    assert max(together[-1] for together, _ in found) >= 4


def test_tiles_beyond_the_registers_may_not_be_built() -> None:
    sketch = tile_sketches(matmul_add(1009, 1009, 1009))[0]
    rows = np.unique(sample(sketch, 2000, np.random.default_rng(0)), axis=0)
    vectors, heights = (sketch.decisions[column].values[rows[:, column], 0] for column in (0, 1))
    valid = extract(sketch, inline_stages(sketch.tree), rows, AVX512).valid
    assert (valid == (heights * vectors + vectors + 1 <= 32)).all()
    assert valid.any()
    assert not valid.all()


@pytest.mark.parametrize("kind", ["narrow", "rows first", "given"])
def test_programs_of_all_structures_compute_the_same(kind: str) -> None:
    """Another axis in the lanes, tiles of rows outside, panels that the caller packs."""
    a, b = te.placeholder((3, 17, 9), name="A"), te.placeholder((9, 5 if kind == "narrow" else 21), name="B")
    k = te.reduce_axis((0, 9), name="k")
    free = {"layout_free_placeholders": [b]} if kind == "given" else {}
    c = te.compute((3, 17, b.shape[1]), lambda n, i, j: te.sum(a[n, i, k] * b[k, j], axis=k), name="C", attrs=free)
    dag, target = ComputeDAG([a, b, c]), Target("llvm -vector-width=128 -num-cores=2")
    option = LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED if free else LayoutRewriteOption.INSERT_TRANSFORM_STAGE
    made = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target, layout_rewrite=option))
    wanted = {"narrow": "Tile(i in lanes", "rows first": "Tile(j in lanes,n>i>j", "given": ",given"}[kind]
    found = [sketch for sketch in made if wanted in sketch.name and not sketch.name.endswith("+Serial")]
    assert found
    for sketch in found:
        trace = sketch.trace_of(sample(sketch, 1, np.random.default_rng(0))[0])
        with target:
            assert_schedule_correct(Schedule(dag.outputs, trace), [a, b, c], phases=(0,), compiled=sketch is found[0])


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
    made = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target))
    found = [sketch for sketch in made if any(isinstance(step, TransformLayout) for step in sketch.trace)]
    assert len(found) >= 3
    for sketch in (found[0], found[-1]):
        s, args = dag.schedule(sketch.trace_of([0] * len(sketch.decisions)))
        text = tensorexpr.build(s, args, target).get_source("asm")
        assert "vinsertps" not in text and "vunpcklps" in text, sketch.name
