"""Default schedules of matrix products: every branch on sizes that fit and sizes that don't, and registers that hold the tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr
from tensorexpr import te, topi
from tensorexpr.schedule import create_schedule
from tensorexpr.schedule.tree import Inline
from tensorexpr.spaces import contraction_plan
from tensorexpr.spaces.contraction_plan import Order, Pack, contraction_plans
from tensorexpr.spaces.contractions import Contraction, Refused, contraction_of
from tensorexpr.spaces.explain import explain_default
from tensorexpr.spaces.stages import result_of
from tensorexpr.spaces.tile_cycles import Shape, ranked_tiles
from tensorexpr.target import Target, machine
from tensorexpr.target.machine import machine_of
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.topi.schedules import default_schedule
from tests.effort import share_of

# Four lanes and 32 registers: sizes below 40 already make several panels with a tail.
NARROW = Target("llvm -vector-width=128 -num-cores=2")
HOST = Target("llvm -num-cores=3")
Tensors = list[Tensor]


def matmul(m: int, n: int, k: int, a_transposed: bool = False, b_transposed: bool = False, dtype: str = "float32") -> Tensors:
    a = te.placeholder((k, m) if a_transposed else (m, k), dtype, name="A")
    b = te.placeholder((n, k) if b_transposed else (k, n), dtype, name="B")
    return [a, b, topi.nn.matmul(a, b, transpose_a=a_transposed, transpose_b=b_transposed)]


def batched(m: int, n: int, k: int, batch: int = 3, one: int = 3) -> Tensors:
    """`one`: the extent of the batch of the first operand."""
    a, b = te.placeholder((one, m, k), name="A"), te.placeholder((batch, n, k), name="B")
    return [a, b, topi.nn.batch_matmul(a, b)]


def dense(m: int, n: int, k: int, activation: Callable[[Tensor], Tensor] = topi.nn.relu) -> Tensors:
    data, weight, bias = te.placeholder((m, k), name="data"), te.placeholder((n, k), name="weight"), te.placeholder((n,), name="bias")
    return [data, weight, bias, activation(topi.nn.dense(data, weight, bias))]


def rows_of_rows(m: int, n: int, k: int) -> Tensors:
    """Three axes of rows and none of batch: [2, 3, m, k] times [k, n]."""
    a, b = te.placeholder((2, 3, m, k), name="A"), te.placeholder((k, n), name="B")
    return [a, b, topi.nn.matmul(a, b)]


def two_sums(m: int, n: int, k: int) -> Tensors:
    """Two summed axes, in another order in either operand."""
    a, b = te.placeholder((m, 3, k), name="A"), te.placeholder((k, 3, n), name="B")
    p, q = te.reduce_axis((0, 3), name="p"), te.reduce_axis((0, k), name="q")
    return [a, b, te.compute((m, n), lambda i, j: te.sum(a[i, p, q] * b[q, p, j], axis=[p, q]), name="C")]


def through_transposes(m: int, n: int, k: int) -> Tensors:
    """Both operands are transposed by stages of their own."""
    x, y = te.placeholder((m, 3, k), name="X"), te.placeholder((n, 3, k), name="Y")
    a, b = te.compute((3, m, k), lambda h, i, d: x[i, h, d], name="A"), te.compute((3, k, n), lambda h, d, j: y[j, h, d], name="B")
    d = te.reduce_axis((0, k), name="d")
    return [x, y, te.compute((3, m, n), lambda h, i, j: te.sum(a[h, i, d] * b[h, d, j], axis=d), name="C")]


def scores(m: int, n: int, k: int) -> Tensors:
    """A product that several stages read."""
    a, b = te.placeholder((2, m, k), name="A"), te.placeholder((2, n, k), name="B")
    return [a, b, topi.nn.softmax(topi.nn.batch_matmul(a, b))]


def small_numbers(m: int, n: int, k: int, left: str, right: str, out: str, transposed: bool = False) -> Tensors:
    """With `transposed` both operands are."""
    a, b = (
        te.placeholder((k, m) if transposed else (m, k), left, name="A"),
        te.placeholder((n, k) if transposed else (k, n), right, name="B"),
    )
    return [a, b, topi.nn.matmul(a, b, out_dtype=out, transpose_a=transposed, transpose_b=transposed)]


PROGRAMS: dict[str, Callable[[int, int, int], Tensors]] = {
    "plain": matmul,
    "transposed left": lambda m, n, k: matmul(m, n, k, True),
    "transposed right": lambda m, n, k: matmul(m, n, k, False, True),
    "both transposed": lambda m, n, k: matmul(m, n, k, True, True),
    "double": lambda m, n, k: matmul(m, n, k, dtype="float64"),
    "integers": lambda m, n, k: matmul(m, n, k, dtype="int32"),
    "batched": batched,
    "one left operand": lambda m, n, k: batched(m, n, k, 2, 1),
    "batch of one": lambda m, n, k: batched(m, n, k, 1, 1),
    "dense": dense,
    "dense alone": lambda m, n, k: dense(m, n, k, lambda x: x),
    "dense, tanh": lambda m, n, k: dense(m, n, k, topi.tanh),
    "halves": lambda m, n, k: matmul(m, n, k, dtype="float16"),
    "rows of rows": rows_of_rows,
    "two sums": two_sums,
    "through transposes": through_transposes,
    "scores": scores,
}
BYTES, HALVES = ("uint8", "int8", "int32"), ("bfloat16", "bfloat16", "float32")
DOTS = Target("llvm -mcpu=znver5 -num-cores=2")
SIZES = [(4, 8, 8), (13, 19, 7), (7, 5, 1), (1, 9, 5), (5, 1, 7)]


def check(tensors: Tensors, target: Target, compiled: bool, phases: tuple[int, ...] = (0, 3)) -> None:
    with target:
        assert_schedule_correct(default_schedule(tensors, target), tensors, phases=phases, compiled=compiled)


def plan_of(tensors: Tensors, target: Target = NARROW) -> Any:
    s = create_schedule(tensors[-1].op)
    for stage in s.tree.in_order():
        found = contraction_of(s.tree, stage)
        if isinstance(found, Contraction):
            return next(iter(contraction_plans(found, target)), None)
    return None


@pytest.mark.parametrize("name", PROGRAMS)
def test_sizes_that_fit_and_that_do_not(name: str) -> None:
    for m, n, k in SIZES:
        check(PROGRAMS[name](m, n, k), NARROW, compiled=m == 13)


@pytest.mark.parametrize("name", PROGRAMS)
def test_packed_panels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a row were a page: every panel that is read twice is packed."""
    monkeypatch.setattr(contraction_plan, "_WORTH_A_COPY", 1)
    monkeypatch.setattr(machine, "machine_of", lambda target, cores: replace(machine_of(target, cores), page_bytes=1, translations=0))
    tensors = PROGRAMS[name](9, 19, 5)
    assert plan_of(tensors).pack is not Pack.NONE
    check(tensors, NARROW, compiled=True, phases=(3,))


@pytest.mark.parametrize("name", PROGRAMS)
def test_sums_in_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a second cache of half a kilobyte."""
    monkeypatch.setattr(contraction_plan, "_WORTH_A_COPY", 1)
    small = Target(f"{NARROW} -l2=512/8")
    tensors = PROGRAMS[name](7, 13, 17)
    assert (plan_of(tensors, small).block > 0) == (name != "two sums")
    check(tensors, small, compiled=True, phases=(0,))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("m, n, k", [(33, 19, 7), (17, 40, 9)])
def test_blocks_of_the_sum_around_all_tiles(name: str, m: int, n: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a row were a page and two of them were translated at once: 3 or 4 blocks, of which the last one is shorter."""
    monkeypatch.setattr(machine, "machine_of", lambda target, cores: replace(machine_of(target, cores), page_bytes=1, translations=2))
    monkeypatch.setattr(contraction_plan, "_WORTH_A_COPY", 10_000)
    tensors = PROGRAMS[name](m, n, k)
    plan = plan_of(tensors)
    # panels that are transposed or summed over two axes are copied
    assert plan.pack is not Pack.NONE or (plan.parts > 0) == (name not in ("two sums", "scores"))
    check(tensors, NARROW, compiled=True, phases=(0,))


def test_few_rows_and_many_pages_go_block_by_block() -> None:
    found = plan_of(matmul(40, 1024, 1024), HOST)
    assert found.parts == HOST.num_cores and found.block == HOST.machine.translations and found.pack is Pack.NONE
    # sums and rows of the operand stay in the second cache
    far = plan_of(matmul(40, 1 << 16, 1024), HOST)
    width = -(-(1 << 16) // far.parts)
    assert far.parts % HOST.num_cores == 0 and 2 * 4 * width * (40 + far.block) <= HOST.l2_cache_size_bytes
    for tensors in (matmul(64, 1024, 1024), matmul(24, 1024, 100), matmul(24, 64, 1024)):
        assert not plan_of(tensors, HOST).parts  # enough rows for copies; few steps; few pages


@pytest.mark.parametrize("rows", [2, 8, 24])
def test_of_few_rows_blocks_are_as_many_as_prefetchers_follow(rows: int) -> None:
    """4 x 2048 x 2048 took 1.46 ms with a panel after the other, 0.37 since; 16 rows 2.07 and 1.5 (two cores of Zen 3)."""
    found = plan_of(matmul(rows, 2048, 2048), HOST)
    width = 2048 // found.parts
    assert found.block == 8 and found.parts % HOST.num_cores == 0 and 4 * rows * width <= HOST.machine.caches[0].size


def test_blocks_are_whole_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contraction_plan, "_WORTH_A_COPY", 1)
    small = Target(f"{DOTS} -l2=512/8")
    found = plan_of(small_numbers(8, 16, 40, *BYTES), small)
    assert found.dot is not None and found.block == 8  # 16 bytes wide and 512 / 2 in all: at most 16, and 16 and 12 don't divide 40
    check(small_numbers(8, 16, 40, *BYTES), small, compiled=False)


@settings(max_examples=share_of(12), deadline=None, derandomize=True)
@given(st.sampled_from(sorted(PROGRAMS)), st.integers(1, 21), st.integers(1, 40), st.integers(1, 9), st.sampled_from((NARROW, HOST)))
def test_any_size(name: str, m: int, n: int, k: int, target: Target) -> None:
    check(PROGRAMS[name](m, n, k), target, compiled=(m + n + k) % 4 == 0, phases=(3,))


@pytest.mark.parametrize("types", [BYTES, HALVES, ("int8", "uint8", "int32"), ("int8", "int8", "int32")])
@pytest.mark.parametrize("transposed", [False, True])
def test_small_numbers(types: tuple[str, str, str], transposed: bool) -> None:
    here = Target("llvm -num-cores=2")
    native = {"avx512vnni", "avx512bf16"} <= here.features
    for m, n, k in ((5, 33, 8), (7, 5, 6), (4, 20, 7), (2, 16, 3)):
        # What LLVM writes for another CPU may have instructions that this one lacks, whatever its dot products.
        check(small_numbers(m, n, k, *types, transposed), here if native else DOTS, compiled=native and m in (4, 5))


@pytest.mark.parametrize(
    "types, k, cpu, name",
    [
        (BYTES, 64, "znver5", "dot_16x4_vnni"),
        (HALVES, 64, "znver5", "dot_16x2_avx512_bf16"),
        (BYTES, 63, "znver5", "dot_16x4_vnni"),  # groups are padded
        (BYTES, 3, "znver5", None),
        (HALVES, 64, "skylake-avx512", None),
        (("int8", "int8", "int32"), 64, "znver5", "dot_16x2_int8_int8"),
        (BYTES, 64, "alderlake", "dot_8x4_vnni"),
        (BYTES, 63, "haswell", "dot_8x2_uint8_int8"),
        (("uint8", "int8", "float32"), 64, "znver5", None),
    ],
)
def test_small_numbers_by_dot_products(types: tuple[str, str, str], k: int, cpu: str, name: str | None) -> None:
    found = plan_of(small_numbers(64, 64, k, *types), Target(f"llvm -mcpu={cpu} -num-cores=2"))
    assert (None if found.dot is None else found.dot.intrinsic) == name


def test_panels_are_packed_where_that_pays() -> None:
    assert plan_of(matmul(128, 512, 64)).pack is Pack.NONE  # few pages
    assert not plan_of(matmul(16, 4096, 640)).pack is not Pack.NONE  # few rows
    skylake = Target("llvm -mcpu=skylake-avx512 -num-cores=2")  # a second level of 32 sets of 16 ways for rows of 2 KB
    assert [plan_of(matmul(128, 512, depth), skylake).pack for depth in (512, 640)] == [Pack.NONE, Pack.PANEL]
    assert plan_of(matmul(256, 512, 640)).pack is not Pack.NONE and plan_of(matmul(64, 1024, 640)).pack is not Pack.NONE
    zen3 = Target("llvm -mcpu=znver3 -num-cores=2")  # rows of 3 KB share 64 sets of 8 ways, those of 2560 bytes 128
    assert [plan_of(matmul(128, size, size), zen3).pack for size in (768, 640)] == [Pack.PANEL, Pack.NONE]
    transposed = plan_of(matmul(32, 32, 64, b_transposed=True))
    assert transposed.pack is not Pack.NONE and transposed.is_transposed


def test_small_products_stay_on_one_core() -> None:
    assert not plan_of(matmul(8, 8, 8)).parallel
    assert plan_of(matmul(256, 256, 256)).parallel


def test_a_narrow_result_is_cut_by_rows() -> None:
    found = plan_of(matmul(512, 16, 512), Target("llvm -mcpu=znver5 -num-cores=2"))
    assert found.tile.chunks == 2 and found.tile.vectors == 1


@pytest.mark.parametrize("m, n, k", [(1, 64, 64), (64, 1, 64), (3, 64, 64), (0, 64, 64), (64, 0, 64), (64, 64, 0)])
def test_what_is_no_tile_is_left_to_sums(m: int, n: int, k: int) -> None:
    assert plan_of(matmul(m, n, k, b_transposed=True)) is None


def product_in(tensors: Tensors) -> Contraction | Refused:
    s = create_schedule(tensors[-1].op)
    return contraction_of(s.tree, s.tree[s[tensors[-1]].id])


def test_contractions_are_told_by_their_indices() -> None:
    found = product_in(two_sums(4, 5, 6))
    assert isinstance(found, Contraction) and found.names(*found.summed) == "p, q"
    assert found.right.step(found.summed[1]) == 4 * 3 * 5 and found.right.lies_along(found.column)
    a, b = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 4), name="k")
    others = {
        "the axis j indexes all factors": te.compute((8, 8), lambda i, j: te.sum(a[i, j] * b[k, j], axis=k)),
        "k doesn't index both": te.compute((8, 8), lambda i, j: te.sum(a[i, 0] * b[k, j], axis=k)),
        "it reads one tensor": te.compute((8, 8), lambda i, j: te.sum(b[k, j], axis=k)),
        "no axis indexes A alone": te.compute((8,), lambda j: te.sum(a[0, k] * b[k, j], axis=k)),
        "has no index that is j alone": te.compute((4, 4), lambda i, j: te.sum(a[i, k] * b[j + k, j], axis=k)),
    }
    for words, result in others.items():
        found = product_in([a, b, result])
        assert isinstance(found, Refused) and words in found.reason
        seen = explain_default([a, b, result], NARROW)
        assert words in seen or "window" in seen


UNUSUAL: dict[str, Callable[[Tensor, Tensor, Tensor, Any], Callable[..., Any]]] = {
    "a tensor times itself": lambda a, b, c, k: lambda i, j: te.sum(a[i, k] * a[k, j], axis=k),
    "a tensor times its transpose": lambda a, b, c, k: lambda i, j: te.sum(a[i, k] * a[j, k], axis=k),
    "its transpose first": lambda a, b, c, k: lambda i, j: te.sum(a[j, k] * a[i, k], axis=k),
    "windows of rows": lambda a, b, c, k: lambda i, j: te.sum(a[i + k, k] * b[k, j], axis=k),
    "sums": lambda a, b, c, k: lambda i, j: te.sum(a[i, k] + b[k, j], axis=k),
    "the largest of sums": lambda a, b, c, k: lambda i, j: te.max(a[i, k] + b[k, j], axis=k),
    "a factor": lambda a, b, c, k: lambda i, j: te.sum(a[i, k] * b[k, j] * 2.0, axis=k),
    "three factors": lambda a, b, c, k: lambda i, j: te.sum(a[i, k] * c[k] * b[j, k], axis=k),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_any_contraction_gets_tiles(name: str) -> None:
    a, b, c = te.placeholder((21, 21), name="A"), te.placeholder((21, 21), name="B"), te.placeholder((21,), name="S")
    k = te.reduce_axis((0, 7), name="k")
    out = te.compute((9, 19), UNUSUAL[name](a, b, c, k), name="C")
    inputs = [tensor for tensor in (a, b, c) if any(tensor.op is read.op for read in out.op.input_tensors)]
    assert plan_of([*inputs, out]) is not None
    check([*inputs, out], NARROW, compiled=True)


def test_what_the_rules_see_is_explained() -> None:
    assert explain_default(matmul(8, 16, 8), NARROW).endswith("a contraction: rows i, columns j, summed over k")
    assert "too few rows" in explain_default(matmul(1, 64, 64, b_transposed=True), NARROW)
    x, w = te.placeholder((1, 8, 9, 9), name="X"), te.placeholder((8, 8, 3, 3), name="W")
    assert "a convolution: tiles of pixels" in explain_default([x, w, topi.nn.conv2d(x, w, 1, 1, 1)], NARROW)
    assert "a window written out" in explain_default([x, topi.nn.pool2d(x, (3, 3), (1, 1), (1, 1), (0, 0, 0, 0), "max")], NARROW)
    assert "row by row, along ax0 of T_softmax_norm" in explain_default([x, topi.nn.softmax(te.placeholder((64, 8), name="Y"))], NARROW)
    assert explain_default([x, topi.nn.relu(x)], NARROW).startswith("nothing is reduced")


def test_what_follows_is_computed_on_the_tile() -> None:
    tensors = dense(32, 32, 32)
    s = default_schedule(tensors, NARROW)
    waiting = [stage for stage in s.tree.in_order() if not stage.is_placeholder and not isinstance(stage.attach, Inline)]
    assert len(waiting) == 3  # panel, tile, result
    attention = scores(8, 8, 8)
    s = create_schedule(attention[-1].op)
    (stage,) = (stage for stage in s.tree.in_order() if isinstance(contraction_of(s.tree, stage), Contraction))
    assert result_of(s, stage) is stage.origin.output(0)  # the largest and the exponentials read it


def shape(**changed: Any) -> Shape:
    known: dict[str, Any] = {"batch": 1, "rows": 960, "columns": 960, "depth": 960, "repeats": 1, "lanes": 16}
    return Shape(**{**known, "row_bytes": 3840, "packing": 0.0, "aligned": True, **changed})


ZEN3 = Target("llvm -mcpu=znver3 -num-cores=2")


@pytest.mark.parametrize(("rows", "columns", "by_rows"), [(700, 128, True), (48, 128, False), (700, 700, False)])
def test_cores_have_rows_each_where_parts_of_rows_would_be_short(rows: int, columns: int, by_rows: bool) -> None:
    """Two cores that write 256 bytes each of the same rows take lines from each other; what stays in their caches isn't fetched."""
    plan = plan_of(matmul(rows, columns, 600), ZEN3)
    assert plan.parallel and plan.order is Order.CHUNKS
    assert (plan.tile.chunks == 2) == by_rows


@pytest.mark.parametrize(
    ("m", "n", "k", "order"),
    [
        (39520, 167, 256, Order.ROWS),  # panels stay in the second level, rows come from memory
        (46464, 201, 16, Order.ROWS),  # ... and rows of the result go there
        (8192, 768, 768, Order.ROWS),  # panels come from the third level, rows from memory
        (2048, 2048, 2048, Order.CHUNKS),  # as much of either
        (3000, 1000, 100, Order.CHUNKS),  # either from the third level
        (1000, 64, 64, Order.CHUNKS),  # all stays near
        (20000, 16, 512, Order.CHUNKS),  # one panel: its tiles read each row once
    ],
)
def test_rows_are_outside_where_they_are_much_more_than_panels(m: int, n: int, k: int, order: Order) -> None:
    plan = plan_of(matmul(m, n, k), ZEN3)
    assert plan.order is order and (order is Order.CHUNKS or plan.pack is Pack.ROOT)


@pytest.mark.parametrize("tensors", [matmul(60, 19, 7), dense(59, 19, 7), rows_of_rows(11, 19, 7)])
def test_rows_outside_of_panels_are_right(tensors: Tensors, monkeypatch: pytest.MonkeyPatch) -> None:
    """With caches so small that these products have rows outside."""
    monkeypatch.setattr(contraction_plan, "_PARALLEL_STEPS", 1)
    small = Target(f"{NARROW} -l2=2K/8")
    assert plan_of(tensors, small).order is Order.ROWS
    check(tensors, small, compiled=True)


def test_rows_of_two_panels_have_addresses_of_their_own() -> None:
    """Of 14 rows in two panels; tiles of few rows, or of a whole part of a panel, are counted as before."""
    target = Target("llvm -mcpu=icelake-server -num-cores=2")
    whole, panels = (ranked_tiles(shape(rows=512, columns=784, panel=panel), target, 1) for panel in (0, 32))
    cycles = [{tile.vectors: tile for tile in tiles}[2] for tiles in (whole, panels)]
    assert cycles[0].rows == 14 and cycles[1].cycles > cycles[0].cycles
    assert panels[0].rows <= 10 or 32 % panels[0].rows == 0


@settings(max_examples=share_of(60), deadline=None, derandomize=True)
@given(st.integers(1, 100), st.integers(1, 200), st.sampled_from((64, 2048, 4096, 4100)), st.sampled_from(("znver5", "haswell")))
def test_tiles_fit_the_registers_and_the_rows_the_cache(rows: int, columns: int, row_bytes: int, cpu: str) -> None:
    target = Target(f"llvm -mcpu={cpu} -num-cores=2")
    found = ranked_tiles(shape(rows=rows, columns=columns, row_bytes=row_bytes), target, 2)[0]
    assert found.rows * found.vectors + found.vectors + 1 <= target.vector_registers
    assert 1 <= found.rows <= min(rows, target.machine.caches[0].rows(row_bytes)) and 1 <= found.chunks <= rows


def test_rows_a_page_apart_share_a_set_of_the_cache() -> None:
    cache = Target("llvm -l1d=32K/8").machine.caches[0]
    assert [cache.rows(size) for size in (8192, 4096, 2048, 4100)] == [8, 8, 16, 512]


@pytest.mark.parametrize("batch, rows, columns", [(1, 8, 48), (3, 64, 64), (1, 96, 16), (2, 90, 100)])
def test_shares_are_equal(batch: int, rows: int, columns: int) -> None:
    found = ranked_tiles(shape(batch=batch, rows=rows, columns=columns, depth=512), Target("llvm -mcpu=znver5"), 3)[0]
    panels = -(-columns // (16 * found.vectors))
    assert batch * panels * found.chunks % 3 == 0


# Of a named CPU: how LLVM orders loads, and so what it moves to the stack, depends on the CPU that it tunes for.
@pytest.mark.parametrize("target", [DOTS, Target("llvm -mcpu=znver3 -vector-width=128 -num-cores=2")], ids=["32_registers", "16_registers"])
@pytest.mark.parametrize(
    "tensors",
    [matmul(64, 64, 64), matmul(96, 100, 40, b_transposed=True), matmul(200, 1030, 100), batched(32, 64, 32), matmul(40, 47, 33)],
    ids=["plain", "transposed", "packed", "batched", "narrow"],
)
def test_loops_have_no_spills(tensors: Tensors, target: Target) -> None:
    built = tensorexpr.build(default_schedule(tensors, target), tensors, target)
    assert built.spills.total == 0


@pytest.mark.parametrize("types", [BYTES, HALVES])
def test_loops_of_dot_products_have_no_spills(types: tuple[str, str, str]) -> None:
    tensors = small_numbers(64, 100, 64, *types)
    built = tensorexpr.build(default_schedule(tensors, DOTS), tensors, DOTS)
    assert built.spills.total == 0 and built.get_source("asm").count("vpdpbusd" if types is BYTES else "vdpbf16ps") >= 16


@pytest.mark.parametrize("m, n, k", [(0, 5, 5), (5, 0, 5), (5, 5, 0)])
def test_nothing_to_do(m: int, n: int, k: int) -> None:
    check(matmul(m, n, k), NARROW, compiled=True)


@pytest.mark.parametrize("left, right", [("uint8", "int8"), ("int8", "int8"), ("int8", "uint8"), ("int16", "int16")])
@pytest.mark.parametrize("text", ["llvm -num-cores=2", "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64-v2 -num-cores=1"])
def test_products_of_small_integers_are_exact_at_their_limits(text: str, left: str, right: str) -> None:
    """Where `pmaddubsw` would saturate; sums that leave 32 bits wrap."""
    target = Target(text)
    if not target.runs_here:
        target = Target("llvm -num-cores=1")
    a, b = te.placeholder((7, 19), left, name="A"), te.placeholder((19, 37), right, name="B")
    k = te.reduce_axis((0, 19), name="k")
    c = te.compute((7, 37), lambda i, j: te.sum(a[i, k].astype("int32") * b[k, j].astype("int32"), axis=k), name="C")
    s = default_schedule([a, b, c], target)
    assert "tensorize" in s.as_python() or target.arch == "aarch64"
    random, limits = np.random.default_rng(0), [np.iinfo(dtype) for dtype in (left, right)]
    x, y = (
        random.choice([limit.min, limit.min + 1, limit.max], shape).astype(dtype)
        for limit, shape, dtype in zip(limits, ((7, 19), (19, 37)), (left, right), strict=True)
    )
    found = np.empty((7, 37), np.int32)
    tensorexpr.build(s, [a, b, c], target)(x, y, found)
    np.testing.assert_array_equal(found, (x.astype(np.int64) @ y.astype(np.int64)).astype(np.int32))
