"""Strided loads as transposes in registers: when they are made, and that they mean the same."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.testing import assert_schedule_correct
from tests.effort import share_of

AVX512 = "llvm -mcpu=skylake-avx512"


def transpose(rows: int, columns: int, block: int, lanes: int, dtype: str = "float32") -> tuple[te.Schedule, list[te.Tensor]]:
    """B[j, i] = A[i, j], `block` rows of B of `lanes` elements at a time."""
    a = te.placeholder((rows, columns), dtype, "A")
    b = te.compute((columns, rows), lambda i, j: a[j, i], name="B")
    s = te.create_schedule(b.op)
    i, j = b.op.axis
    io, ii = s[b].split(i, factor=block)
    jo, ji = s[b].split(j, factor=lanes)
    s[b].reorder(jo, io, ii, ji)
    s[b].vectorize(ji)
    s[b].unroll(ii)
    return s, [a, b]


def shuffles(s: te.Schedule, args: list[te.Tensor]) -> int:
    with tvm.Target(AVX512):
        return tvm.lower(s, args).script().count("T.Shuffle(")


@settings(deadline=None, derandomize=True, max_examples=share_of(40))
@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 40),
    block=st.sampled_from([1, 3, 4, 8, 16, 20]),
    lanes=st.sampled_from([2, 4, 5, 8, 13, 14, 16]),
    dtype=st.sampled_from(["float32", "int8", "float64"]),
)
@example(rows=16, columns=16, block=16, lanes=16, dtype="float32")
@example(rows=5, columns=4, block=3, lanes=5, dtype="float32")
@example(rows=30, columns=32, block=16, lanes=15, dtype="int8")
@example(rows=14, columns=32, block=16, lanes=14, dtype="float32")
@example(rows=24, columns=40, block=20, lanes=8, dtype="float64")
def test_every_block_is_transposed_right(rows: int, columns: int, block: int, lanes: int, dtype: str) -> None:
    assert_schedule_correct(*transpose(rows, columns, block, lanes, dtype))


def test_what_a_condition_guards_is_not_read_in_front_of_it() -> None:
    """Rows of 33 padded to 48: of the last block of 16 columns one is there, and the others lie in the next row or past the array."""
    a = te.placeholder((16, 33), "int32", "A")
    b = te.compute((48, 16), lambda i, j: te.if_then_else(i < 33, a[j, i], 0), name="B")
    s = te.create_schedule(b.op)
    i, j = b.op.axis
    _, ii = s[b].split(i, factor=16)
    s[b].vectorize(j)
    s[b].unroll(ii)
    assert_schedule_correct(s, [a, b])


@pytest.mark.parametrize(
    "block, lanes, expected",
    [(16, 16, 64), (16, 14, 64), (8, 16, 64 + 8), (8, 8, 24), (4, 16, 64 + 4), (3, 16, 0), (16, 3, 0)],
)
def test_rows_are_zipped_once_for_each_halving(block: int, lanes: int, expected: int) -> None:
    assert shuffles(*transpose(lanes * 2, block * 2, block, lanes)) == expected


def test_a_tile_of_accumulators_is_transposed_out_of_registers() -> None:
    """Channels as lanes inside, pixels as lanes outside: the tile never touches memory."""
    x, w = te.placeholder((20, 16), name="x"), te.placeholder((20, 16), name="w")
    k = te.reduce_axis((0, 20), name="k")
    y = te.compute((16, 16), lambda c, p: te.sum(x[k, p] * w[k, c], axis=k), name="y")
    s = te.create_schedule(y.op)
    tile = s.cache_write(y, "local")
    c, p = y.op.axis
    outer, c = s[y].split(c, nparts=1)
    s[y].vectorize(p)
    s[y].unroll(c)
    s[tile].compute_at(s[y], outer)
    p_in, c_in = s[tile].transform_layout(lambda c, p: [p, c])
    (step,) = s[tile].op.reduce_axis
    s[tile].reorder(step, p_in, c_in)
    s[tile].vectorize(c_in)
    s[tile].unroll(p_in)
    assert_schedule_correct(s, [x, w, y])
    with tvm.Target(AVX512):
        text = tvm.lower(s, [x, w, y]).script()
    assert 'T.allocate([16], "float32x16", "register")' in text
    assert text.count("T.Shuffle(") == 64


def test_arguments_that_may_overlap_are_not_read_too_early() -> None:
    """Each row of the result may be a column that is read next."""
    s, args = transpose(16, 16, 16, 16)
    assert shuffles(s, args) == 64
    with tvm.transform.PassContext(config={"tir.noalias": False}):
        assert shuffles(s, args) == 0


def test_a_buffer_that_the_run_writes_is_read_as_it_stands() -> None:
    a = te.placeholder((256,), name="A")
    b = te.compute((256,), lambda i: a[i] * 2.0, name="B")
    c = te.compute((16, 16), lambda i, j: b[j * 16 + i], name="C")
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    s[c].vectorize(j)
    s[c].unroll(i)
    assert_schedule_correct(s, [a, c])
    assert shuffles(s, [a, c]) == 64


def test_accumulators_at_a_stride_stay_registers() -> None:
    """The epilogue reads the tile as the reduction fills it, at a stride: both are the same registers."""
    x, w = te.placeholder((20, 4), name="x"), te.placeholder((16, 20), name="w")
    k = te.reduce_axis((0, 20), name="k")
    y = te.compute((16, 4), lambda c, p: te.sum(w[c, k] * x[k, p], axis=k), name="y")
    s = te.create_schedule(y.op)
    tile = s.cache_write(y, "local")
    outer, c = s[y].split(y.op.axis[0], nparts=1)
    s[tile].compute_at(s[y], outer)
    s[y].reorder(y.op.axis[1], c)
    s[y].vectorize(c)
    s[y].unroll(y.op.axis[1])
    (row, column), (step,) = s[tile].op.axis, s[tile].op.reduce_axis
    s[tile].reorder(step, column, row)
    s[tile].vectorize(row)
    s[tile].unroll(column)
    assert_schedule_correct(s, [x, w, y])
    with tvm.Target(AVX512):
        assert 'T.allocate([4], "float32x16", "register")' in tvm.lower(s, [x, w, y]).script()


def test_columns_of_an_odd_length_are_whole_registers_under_a_mask() -> None:
    """14 results of a tile at a time, with what follows them: nothing is done in vectors of 14 lanes."""
    a, bias, other = te.placeholder((14, 16), name="A"), te.placeholder((16,), name="bias"), te.placeholder((16, 14), name="other")
    b = te.compute((16, 14), lambda i, j: te.max(a[j, i] * other[i, j] + bias[i], te.const(0.0, "float32")), name="B")
    s = te.create_schedule(b.op)
    s[b].unroll(b.op.axis[0])
    s[b].vectorize(b.op.axis[1])
    assert_schedule_correct(s, [a, bias, other, b])
    with tvm.Target(AVX512):
        text = tvm.lower(s, [a, bias, other, b]).script()
    assert text.count("T.Ramp(0, 1, 16) < T.Broadcast(14, 16)") == 32
    assert "+ 14] =" not in text


def test_two_blocks_are_transposed_one_after_the_other() -> None:
    """The second block's rows are read after the first one's columns are stored."""
    s, args = transpose(16, 32, 32, 16)
    with tvm.Target(AVX512):
        lines = tvm.lower(s, args).script().splitlines()
    rows = [number for number, line in enumerate(lines) if line.strip().startswith("row")]
    first_store = next(number for number, line in enumerate(lines) if line.strip().startswith("B_1["))
    assert len(rows) == 32
    assert sum(number < first_store for number in rows) == 16


def test_shuffles_keep_to_blocks_of_128_bits() -> None:
    """Each takes the first or second half of every block of two rows, or every other block: no vector of indices is needed."""
    s, args = transpose(16, 16, 16, 16)
    with tvm.Target(AVX512):
        text = tvm.lower(s, args).script()
    orders = {line.split("], [")[1].split("]")[0] for line in text.splitlines() if "T.Shuffle(" in line}
    assert len(orders) == 6
    for order in orders:
        lanes = [int(lane) for lane in order.split(", ")]
        blocks = [lanes[start : start + 4] for start in range(0, 16, 4)]
        inside = all({lane % 16 // 4 for lane in block} == {number} for number, block in enumerate(blocks))
        assert inside or all(block == list(range(block[0], block[0] + 4)) and block[0] % 4 == 0 for block in blocks)
