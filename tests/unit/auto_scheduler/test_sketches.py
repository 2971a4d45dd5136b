"""Sketch generation: which rules fire where."""

from __future__ import annotations

from collections import Counter
from math import prod

import pytest

from tensorexpr import te
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.schedule.tree import At, Inline, LoopKind
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.arithmetic import as_int
from tensorexpr.tune.space import Sketch
from tests.programs import conv_relu, matmul, matmul_add, softmax


def sketches_of(args: list[Tensor]) -> list[Sketch]:
    """The design spaces of a program, without those on one thread."""
    return [sketch for sketch in all_sketches_of(args) if not sketch.name.endswith("+Serial")]


def all_sketches_of(args: list[Tensor], cores: int = 4) -> list[Sketch]:
    """The design spaces of a program, those of plans left out: they have tests of their own."""
    dag = ComputeDAG(args)
    found = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(Target(f"llvm -num-cores={cores}")))
    return [sketch for sketch in found if ":Plan" not in sketch.name]


def rules(sketches: list[Sketch]) -> Counter[str]:
    """How many sketches each combination of rules made."""
    return Counter(sketch.name.partition(":")[2] for sketch in sketches)


def test_a_multiplication_with_an_elementwise_consumer_is_fused_at_two_levels_or_not() -> None:
    found = rules(sketches_of(matmul_add(64, 64, 64)))
    assert {name: count for name, count in found.items() if "Tile(" not in name} == {
        "MultiLevelTilingWithFusion": 2,
        "MultiLevelTiling": 1,
    }


def test_little_work_may_stay_on_one_thread() -> None:
    found = [sketch.name.partition(":")[2] for sketch in all_sketches_of(matmul(64, 64, 64))]
    parallel = [name for name in found if not name.endswith("+Serial")]
    assert found == [*parallel, *(f"{name}+Serial" for name in parallel)]
    for sketch in all_sketches_of(matmul(64, 64, 64)):
        kinds = {stage.mark(axis).kind for stage in sketch.tree.stages for axis in stage.leaf}
        assert (LoopKind.PARALLEL in kinds) != sketch.name.endswith("+Serial")
    for args, cores in ((matmul(128, 128, 128), 4), (matmul(64, 64, 64), 1)):
        assert not any(sketch.name.endswith("+Serial") for sketch in all_sketches_of(args, cores))


def test_a_multiplication_alone_gets_a_cache_stage() -> None:
    found = rules(sketches_of(matmul(64, 64, 64)))
    assert found["AddCacheWrite+MultiLevelTilingWithFusion"] == 2
    assert found["MultiLevelTiling"] == 1


def test_the_tile_structure_is_spatial_spatial_reduce_spatial_reduce_spatial() -> None:
    sketch = next(s for s in sketches_of(matmul_add(64, 64, 64)) if s.name.endswith(":MultiLevelTiling"))
    stage = next(s for s in sketch.tree.stages if s.name == "matmul")
    kinds = "".join("R" if stage.is_reduction(axis) else "S" for axis in stage.leaf)
    assert kinds == "S" + "SS" + "R" + "SS" + "R" + "SS"  # the outermost level is one fused loop
    assert stage.mark(stage.leaf[0]).kind is LoopKind.PARALLEL
    assert stage.mark(stage.leaf[-1]).kind is LoopKind.VECTORIZE


def test_an_elementwise_producer_is_inlined() -> None:
    a = te.placeholder((16, 16), name="A")
    twice = te.compute((16, 16), lambda i, j: a[i, j] * 2.0, name="twice")
    out = te.compute((16, 16), lambda i, j: twice[i, j] + 1.0, name="out")
    dag = ComputeDAG([a, out])
    (sketch,) = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(Target("llvm -num-cores=1")))
    assert isinstance(next(s for s in sketch.tree.stages if s.name == "twice").attach, Inline)


def test_a_padding_with_a_branch_is_not_inlined() -> None:
    for sketch in sketches_of(conv_relu()):
        stages = {stage.name: stage for stage in sketch.tree.stages}
        assert not isinstance(stages["pad"].attach, (Inline, At))


@pytest.mark.parametrize("args", [softmax(256, 256), conv_relu(), matmul(64, 64, 64)])
def test_every_stage_at_the_root_that_is_worth_it_is_parallel(args: list[Tensor]) -> None:
    """Threads cost more than they save where a stage has few elements."""
    for sketch in sketches_of(args):
        for stage in sketch.tree.stages:
            if not stage.is_placeholder and not isinstance(stage.attach, (Inline, At)):
                work = prod(as_int(extent) or 1 for extent in stage.origin.output_shape(0)) * (64 if len(stage.reduction) else 1)
                assert work < 1 << 15 or any(stage.mark(axis).kind is LoopKind.PARALLEL for axis in stage.leaf), stage.name
