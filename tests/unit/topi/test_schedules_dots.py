"""Default schedules of products of few rows along the sum: right on awkward sizes, in tiles that registers hold, and copied nowhere."""

from __future__ import annotations

import pytest

from tensorexpr import te, topi
from tensorexpr.schedule.tree import At
from tensorexpr.spaces.dot_tiles import dot_tiles
from tensorexpr.spaces.explain import explain_default
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.machine_code import assembly, hot_loop
from tensorexpr.topi.schedules import default_schedule

# Four lanes and 32 registers: sums of 33 terms are long already.
NARROW = Target("llvm -vector-width=128 -num-cores=2")
AVX2 = Target("llvm -mcpu=znver3 -num-cores=2")


def linear(rows: int, columns: int, terms: int, dtype: str = "float32", batch: int = 0) -> list[Tensor]:
    lead = (batch,) if batch else ()
    x, w = te.placeholder((*lead, rows, terms), name="X"), te.placeholder((*lead, columns, terms), dtype, name="W")
    k = te.reduce_axis((0, terms), "k")
    out = te.compute((*lead, rows, columns), lambda *i: te.sum(x(*i[:-1], k) * w(*i[:-2], i[-1], k).astype("float32"), axis=k), name="Y")
    return [x, w, out]


def tiles(args: list[Tensor], target: Target = AVX2) -> tuple[int, int] | None:
    s = te.create_schedule(args[-1].op)
    found = dot_tiles(s.tree, s.tree[s[args[-1]].id], target)
    return (found[0].rows, found[0].streams) if found else None


@pytest.mark.parametrize(("rows", "columns", "terms"), [(2, 7, 33), (3, 10, 40), (4, 9, 35), (5, 3, 64), (9, 31, 37), (50, 3, 33)])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_sums_of_any_size(rows: int, columns: int, terms: int, dtype: str) -> None:
    args = linear(rows, columns, terms, dtype)
    assert tiles(args, NARROW) is not None
    assert_schedule_correct(default_schedule(args, NARROW), args, phases=(2,))


def test_one_row_of_bytes_and_matrices_of_a_batch() -> None:
    for args in (linear(1, 20, 36, "int8"), linear(3, 9, 34, batch=4)):
        assert tiles(args, NARROW) is not None
        assert_schedule_correct(default_schedule(args, NARROW), args, phases=(2,))


@pytest.mark.parametrize("by_rows", [True, False])
def test_what_follows_is_computed_with_the_tile(by_rows: bool) -> None:
    x, w, out = linear(3, 14, 40)
    bias = te.placeholder((14,), name="B")
    relu = topi.nn.relu(topi.add(out, bias) if by_rows else topi.multiply(out, 2.0))
    args = [x, w, *([bias] if by_rows else []), relu]
    s = default_schedule(args, NARROW)
    assert isinstance(s.tree[s[out].id].attach, At)
    assert_schedule_correct(s, args, phases=(2,))
    assert "tiles of dot products" in explain_default(args, NARROW)


def test_other_sums_than_products() -> None:
    x, w, k = te.placeholder((3, 40), name="X"), te.placeholder((17, 40), name="W"), te.reduce_axis((0, 40), "k")
    least = te.compute((3, 17), lambda i, j: te.min(te.abs(x[i, k] - w[j, k]), axis=k), name="Y")
    assert tiles([x, w, least], NARROW) is not None
    assert_schedule_correct(default_schedule([x, w, least], NARROW), [x, w, least], phases=(2,))


def test_the_tile_fills_the_registers() -> None:
    assert tiles(linear(4, 512, 512)) == tiles(linear(16, 512, 512)) == (4, 3)
    assert tiles(linear(1, 512, 512, "int8")) == (1, 8)
    args = linear(4, 512, 512)
    loop = hot_loop(assembly(default_schedule(args, AVX2), args, AVX2))
    assert loop is not None and (loop.multiply_adds, loop.loads, loop.spills) == (48, 28, 0), "four steps of a tile"


@pytest.mark.parametrize("cpu", ["skylake-avx512", "haswell", "x86-64-v2", "neoverse-n1"])
def test_no_cpu_spills(cpu: str) -> None:
    machine = "-mtriple=aarch64-linux-gnu " if cpu == "neoverse-n1" else ""
    args, target = linear(4, 512, 512), Target(f"llvm {machine}-mcpu={cpu} -num-cores=2")
    loop = hot_loop(assembly(default_schedule(args, target), args, target))
    assert loop is not None and loop.multiply_adds >= 8 and loop.spills == 0


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (linear(1, 512, 512), "one row of floats waits for memory"),
        (linear(64, 512, 512), "panels pay"),
        (linear(4, 512, 40), "a short sum"),
    ],
)
def test_what_other_rules_have(args: list[Tensor], why: str) -> None:
    assert tiles(args) is None, why


def test_rows_along_the_columns_are_left_to_panels() -> None:
    x, w, k = te.placeholder((4, 512), name="X"), te.placeholder((512, 300), name="W"), te.reduce_axis((0, 512), "k")
    assert tiles([x, w, te.compute((4, 300), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k))]) is None
