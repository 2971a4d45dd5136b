"""The rule for dot-product instructions: where it applies, what its sketches are, and what the features make of them."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.auto_scheduler import ComputeDAG
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.lower.phase0.inline_stages import inline_stages
from tensorexpr.schedule.steps import CacheRead, Tensorize
from tensorexpr.spaces.contraction_plan import Pack, Plan, searched_plans
from tensorexpr.spaces.dot_products import has_whole_groups, instruction_for
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.features import extract
from tensorexpr.tune.population import sample
from tensorexpr.tune.space import Sketch

WITH = Target("llvm -mcpu=znver5 -num-cores=2")
WITHOUT = Target("llvm -mcpu=skylake-avx512 -mattr=-avx512bw -num-cores=2")


def product(
    left: str = "uint8", right: str = "int8", out: str = "int32", columns: int = 64, depth: int = 64, rows: int = 32
) -> list[Tensor]:
    """A matrix product of given types."""
    a, b = te.placeholder((rows, depth), left, name="A"), te.placeholder((depth, columns), right, name="B")
    k = te.reduce_axis((0, depth), name="k")
    return [a, b, te.compute((rows, columns), lambda i, j: te.sum(a[i, k].astype(out) * b[k, j].astype(out), axis=k), name="C")]


def tiles(tensors: list[Tensor], target: Target = WITH) -> list[Sketch]:
    """The rule's sketches."""
    dag = ComputeDAG(tensors)
    made = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target))
    found = [sketch for sketch in made if "Tile(" in sketch.name and not sketch.name.endswith("+Serial")]
    return [sketch for sketch in found if any(isinstance(step, Tensorize) for step in sketch.trace)]


def plans_of(tensors: list[Tensor]) -> list[Plan]:
    """The rule's plans for the last stage."""
    tree = ComputeDAG(tensors).initial_tree
    return searched_plans(tree, tree.stages[-1], WITH, caller_packs=False)


def test_each_width_of_panels_is_a_sketch_in_both_orders() -> None:
    words = [f"j in lanes,{order} x{width}" for width in (4, 2) for order in ("j>i,panel", "i>j,packed")]
    assert [plan.words for plan in plans_of(product())] == words
    # Those in panels are plans of the whole program too.
    assert [sketch.name.partition(":")[2] for sketch in tiles(product())] == [f"Tile({one})" for one in words if "packed" in one]


def test_panels_are_no_wider_than_the_result() -> None:
    assert {sketch.name[-4:] for sketch in tiles(product(columns=40))} == {" x1)", " x2)"}


@pytest.mark.parametrize(
    "tensors",
    [
        product("float32", "float32", "float32"),
        product("bfloat16", "bfloat16", "bfloat16"),
        product(columns=15, rows=15),
        product(depth=1),
    ],
    ids=["float32", "sums-of-bfloat16", "narrow", "shallow"],
)
def test_it_skips_what_the_instructions_cannot_do(tensors: list[Tensor]) -> None:
    assert tiles(tensors) == []


def test_it_skips_targets_without_the_feature() -> None:
    assert tiles(product(), WITHOUT) == []
    assert tiles(product("bfloat16", "bfloat16", "float32"), WITHOUT) == []


def test_the_unsigned_operand_is_broadcast_on_whichever_side_it_stands() -> None:
    a, b = te.placeholder((64, 32), "int8", name="A"), te.placeholder((32, 48), "uint8", name="B")
    k = te.reduce_axis((0, 32), name="k")
    body = te.compute((64, 48), lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k), name="C")
    assert all("i in lanes" in sketch.name for sketch in tiles([a, b, body]))


@pytest.mark.parametrize(
    "cpu, left, right, name",
    [
        ("znver5", "uint8", "int8", "dot_16x4_vnni"),
        ("znver5", "int8", "int8", "dot_16x2_int8_int8"),
        ("znver5 -vector-width=256", "uint8", "int8", "dot_8x4_vnni"),
        ("alderlake", "uint8", "int8", "dot_8x4_vnni"),
        ("haswell", "uint8", "int8", "dot_8x2_uint8_int8"),
        ("x86-64-v2", "int8", "uint8", "dot_4x2_int8_uint8"),
        ("skylake-avx512", "int16", "int16", "dot_16x2_int16"),
        ("neoverse-n1", "int8", "int8", "dot_4x4_sdot"),
        ("neoverse-n1", "uint8", "uint8", "dot_4x4_udot"),
    ],
)
def test_each_vector_unit_has_its_instruction(cpu: str, left: str, right: str, name: str) -> None:
    platform = "aarch64-unknown-linux-gnu" if cpu == "neoverse-n1" else "x86_64-unknown-linux-gnu"
    found = instruction_for(left, right, "int32", Target(f"llvm -mtriple={platform} -mcpu={cpu}"))
    assert found is not None and found.intrinsic == name


def test_neon_has_none_for_bytes_of_both_kinds() -> None:
    assert instruction_for("uint8", "int8", "int32", Target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1")) is None


def test_panels_that_lie_packed_are_read_where_they_are() -> None:
    data, weight = te.placeholder((1, 4, 8, 8, 4), "uint8", name="A"), te.placeholder((2, 4, 3, 3, 16, 4), "int8", name="W")
    conv = topi.nn.conv2d_NCHWc_int8(data, weight, 1, 0, 1, "NCHW4c", "NCHW16c", "int32")
    (sketch,) = tiles([data, weight, conv])
    assert not any(isinstance(step, CacheRead) for step in sketch.trace)
    assert any(isinstance(step, Tensorize) for step in sketch.trace)


def test_whole_groups_side_by_side_are_read_where_they_lie() -> None:
    def are_whole(depth: int) -> set[bool]:
        return {has_whole_groups(plan.contraction, plan.dot.group) for plan in plans_of(product(depth=depth)) if plan.dot is not None}

    assert are_whole(64) == {True}
    assert are_whole(63) == {False}


def test_no_panel_is_packed_for_each_row_of_a_batch() -> None:
    a, b = te.placeholder((3, 32, 64), "uint8", name="A"), te.placeholder((3, 64, 48), "int8", name="B")
    k = te.reduce_axis((0, 64), name="k")
    c = te.compute((3, 32, 48), lambda n, i, j: te.sum(a[n, i, k].astype("int32") * b[n, k, j].astype("int32"), axis=k), name="C")
    found = plans_of([a, b, c])
    assert found and {plan.pack for plan in found} == {Pack.PANEL}


def test_features_count_instructions_and_registers() -> None:
    sketch = next(sketch for sketch in tiles(product(columns=128, depth=256, rows=512)) if "packed x4" in sketch.name)
    scalar = next(
        sketch
        for sketch in generate_sketches(sketch.outputs, sketch.initial, RuleOptions(WITHOUT))
        if "Tile(" in sketch.name and "packed" in sketch.name
    )
    rng = np.random.default_rng(0)
    made = extract(sketch, inline_stages(sketch.tree), rows := sample(sketch, 64, rng), WITH)
    other = extract(scalar, inline_stages(scalar.tree), sample(scalar, 256, rng), WITH)
    assert made.cycles[made.valid].min() < other.cycles[other.valid].min() / 2
    sizes = sketch.decisions[0].values[rows[:, 0], 0] if sketch.decisions[0].count > 1 else sketch.decisions[1].values[rows[:, 1], 0]
    assert made.valid[sizes <= 6].all()  # 6 rows of 4 vectors, 4 vectors and a broadcast
    assert not made.valid[sizes >= 8].any()
