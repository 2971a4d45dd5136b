"""Reductions in lanes and over threads, and programs of rows: when the rules fire and what they make."""

from __future__ import annotations

import pytest

from tensorexpr import te, tir, topi
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.schedule.steps import RFactor
from tensorexpr.schedule.tree import At, Inline, LoopKind, Root
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.space import Sketch
from tests.programs import matmul, softmax

OPTIONS = RuleOptions(Target("llvm -mcpu=znver5 -num-cores=4"))


def sketches_of(args: list[Tensor]) -> list[Sketch]:
    """The design spaces of a program, without those on one thread."""
    dag = ComputeDAG(args)
    found = generate_sketches(dag.outputs, dag.initial_tree, OPTIONS)
    return [sketch for sketch in found if not sketch.name.endswith("+Serial")]


def summed(rows: int, columns: int, axis: int | None) -> list[Tensor]:
    """A sum of a matrix."""
    x = te.placeholder((rows, columns), name="X")
    return [x, topi.sum(x, axis)]


def sums_of_rows_of_a_product() -> list[Tensor]:
    """A reduction whose input another rule tiles."""
    a, b, c = matmul(64, 64, 64)
    k = te.reduce_axis((0, 64), name="k")
    return [a, b, te.compute((64,), lambda i: te.sum(c[i, k], axis=k), name="total")]


def test_softmax_is_a_program_of_rows() -> None:
    sketch = sketches_of(softmax(64, 256))[0]
    out = next(s for s in sketch.tree.stages if s.is_output)
    inner = [s for s in sketch.tree.stages if not s.is_placeholder and not s.is_output and not isinstance(s.attach, Inline)]
    partial = [s for s in inner if s.name.endswith(".rf")]
    assert len(partial) == 2  # the partial results of the maximum and of the sum, each at its reduction's loop
    assert {s.attach for s in inner if s not in partial} == {At(out.id, out.leaf[0])}
    assert out.mark(out.leaf[0]).kind is LoopKind.PARALLEL
    for stage in (*inner, out):
        assert any(stage.mark(axis).kind is LoopKind.VECTORIZE for axis in stage.leaf), stage.name


def test_stages_that_are_read_across_rows_share_no_loop() -> None:
    x = te.placeholder((32, 64), name="X")
    k = te.reduce_axis((0, 64), name="k")
    total = te.compute((32,), lambda i: te.sum(x[i, k], axis=k), name="total")
    out = te.compute((32, 64), lambda i, j: x[i, j] - total[31 - i], name="out")
    stages = sketches_of([x, out])[0].tree.stages
    assert all(isinstance(stage.attach, Root) for stage in stages if stage.name == "total")


@pytest.mark.parametrize(("args", "threads"), [(summed(64, 4096, 1), 0), (summed(4096, 64, 0), 1), (summed(512, 512, None), 1)])
def test_a_sum_has_one_space_and_knows_what_to_try_first(args: list[Tensor], threads: int) -> None:
    """Few long sums are cut over the threads: partial results at the root."""
    (sketch,) = sketches_of(args)
    assert sketch.preferred_row is not None
    assert len(sketch.decisions) >= 1
    assert sum(stage.name.endswith(".rf") and isinstance(stage.attach, Root) for stage in sketch.tree.stages) == threads


def test_a_sum_behind_another_stage_has_the_same_loops() -> None:
    """The rule works on one stage of a program whose others have open sizes."""
    found = [s for s in sketches_of(sums_of_rows_of_a_product()) if "Reduction" in s.name]
    assert len(found) > 1
    for sketch in found:
        total = next(s for s in sketch.tree.stages if s.is_output)
        assert total.mark(total.reduction[0]).kind is LoopKind.VECTORIZE
        assert sketch.preferred_row is None  # nobody prefers a size of the product's tiles there


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
    (sketch,) = sketches_of([x, te.compute((100, 64), lambda i, j: x[j, i], name="out")])
    out = next(s for s in sketch.tree.stages if s.is_output)
    assert [out.mark(axis).kind for axis in out.leaf[-2:]] == [LoopKind.UNROLL, LoopKind.VECTORIZE]


def test_what_can_not_be_regrouped_has_no_lanes() -> None:
    x = te.placeholder((8, 64), name="X")
    k = te.reduce_axis((0, 64), name="k")
    last = te.comm_reducer(lambda a, b: b, lambda dtype: tir.const(0, dtype), name="last")
    for args in ([x, te.compute((8,), lambda i: last(x[i, k], axis=k), name="out")], summed(64, 8, 1)):  # and a short sum
        for sketch in sketches_of(args):
            assert not any(isinstance(step, RFactor) for step in sketch.trace)
