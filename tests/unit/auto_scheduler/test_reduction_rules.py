"""Reductions in lanes and over threads, and programs of rows: when the rules fire and what they make."""

from __future__ import annotations

import pytest

from tensorexpr import te, tir, topi
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.reductions import lane_axis, lane_sizes
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.schedule.steps import RFactor
from tensorexpr.schedule.tree import At, LoopKind, Root
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.space import Sketch
from tests.programs import matmul_add, softmax

OPTIONS = RuleOptions(Target("llvm -mcpu=znver5 -num-cores=4"))


def sketches_of(args: list[Tensor]) -> list[Sketch]:
    """The design spaces of a program, without those on one thread and those of plans."""
    dag = ComputeDAG(args)
    found = generate_sketches(dag.outputs, dag.initial_tree, OPTIONS)
    return [sketch for sketch in found if not sketch.name.endswith("+Serial") and ":Plan" not in sketch.name]


def summed(rows: int, columns: int, axis: int | None) -> list[Tensor]:
    """A sum of a matrix."""
    x = te.placeholder((rows, columns), name="X")
    return [x, topi.sum(x, axis)]


def names(args: list[Tensor]) -> list[str]:
    """The rules of each sketch."""
    return [sketch.name.partition(":")[2] for sketch in sketches_of(args)]


def test_softmax_is_a_program_of_rows() -> None:
    sketch = next(s for s in sketches_of(softmax(64, 256)) if s.name.endswith(":RowProgram"))
    out = next(s for s in sketch.tree.stages if s.is_output)
    inner = [s for s in sketch.tree.stages if not s.is_placeholder and not s.is_output]
    assert len(inner) == 5  # the maximum, the exponentials, the sum, and partial results of both reductions
    assert {s.attach for s in inner} == {At(out.id, out.leaf[0])}
    assert out.mark(out.leaf[0]).kind is LoopKind.PARALLEL
    for stage in (*inner, out):
        assert any(stage.mark(axis).kind is LoopKind.VECTORIZE for axis in stage.leaf), stage.name


def test_a_product_is_no_program_of_rows() -> None:
    assert "RowProgram" not in names(matmul_add(64, 64, 64))


def test_stages_that_are_read_across_rows_share_no_loop() -> None:
    x = te.placeholder((32, 64), name="X")
    k = te.reduce_axis((0, 64), name="k")
    total = te.compute((32,), lambda i: te.sum(x[i, k], axis=k), name="total")
    out = te.compute((32, 64), lambda i, j: x[i, j] - total[31 - i], name="out")
    assert "RowProgram" not in names([x, out])


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (summed(64, 4096, 1), ["ReduceOverLanes"]),
        (summed(4096, 64, 0), ["ReduceOverThreads", "Plain"]),
        (summed(512, 512, None), ["ReduceOverThreads", "ReduceOverLanes"]),
        (summed(2, 4096, 1), ["ReduceOverThreads", "ReduceOverLanes"]),
    ],
    ids=["rows", "columns", "all", "two rows"],
)
def test_which_rules_a_sum_meets(args: list[Tensor], expected: list[str]) -> None:
    assert names(args) == expected


def test_the_lanes_are_combined_by_a_vectorised_reduction() -> None:
    (sketch,) = sketches_of(summed(64, 4096, 1))
    total = next(s for s in sketch.tree.stages if s.is_output)
    partial = next(s for s in sketch.tree.stages if s.name.endswith(".rf"))
    assert total.mark(total.reduction[0]).kind is LoopKind.VECTORIZE
    assert partial.mark(partial.leaf[-1]).kind is LoopKind.VECTORIZE
    assert isinstance(partial.attach, At)


def test_threads_reduce_parts_and_lanes_reduce_those() -> None:
    sketch = sketches_of(summed(512, 512, None))[0]
    assert sum(isinstance(step, RFactor) for step in sketch.trace) == 2
    parts = next(s for s in sketch.tree.stages if s.name.endswith(".rf"))
    assert isinstance(parts.attach, Root)
    assert parts.mark(parts.leaf[0]).kind is LoopKind.PARALLEL


def test_a_transpose_is_done_in_blocks() -> None:
    x = te.placeholder((64, 100), name="X")
    found = sketches_of([x, te.compute((100, 64), lambda i, j: x[j, i], name="out")])
    assert [sketch.name.partition(":")[2] for sketch in found] == ["Blocks", "Plain"]
    out = next(s for s in found[0].tree.stages if s.is_output)
    assert [out.mark(axis).kind for axis in out.leaf[-2:]] == [LoopKind.UNROLL, LoopKind.VECTORIZE]
    assert names([x, te.compute((64, 100), lambda i, j: x[i, j], name="copy")]) == ["Plain"]


def test_a_short_sum_has_no_lanes() -> None:
    tree = ComputeDAG(summed(64, 8, 1)).initial_tree
    assert lane_axis(tree, tree[1], OPTIONS) is None


def test_what_can_not_be_regrouped_has_no_lanes() -> None:
    x = te.placeholder((8, 64), name="X")
    k = te.reduce_axis((0, 64), name="k")
    last = te.comm_reducer(lambda a, b: b, lambda dtype: tir.const(0, dtype), name="last")
    tree = ComputeDAG([x, te.compute((8,), lambda i: last(x[i, k], axis=k), name="out")]).initial_tree
    assert lane_axis(tree, tree[1], OPTIONS) is None


@pytest.mark.parametrize(("extent", "sizes"), [(16, (16,)), (100, (16, 32, 64)), (4096, (16, 32, 64, 128))])
def test_accumulators_are_whole_registers_that_the_axis_fills(extent: int, sizes: tuple[int, ...]) -> None:
    assert lane_sizes(extent, 16) == sizes
