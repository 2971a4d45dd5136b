"""Loads at small strides and under conditions: what they become, and that they read the same."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.testing import assert_schedule_correct
from tensorexpr.testing.machine_code import assembly
from tests.effort import share_of

AVX512 = "llvm -mcpu=skylake-avx512"
Program = tuple[te.Schedule, list[te.Tensor]]


def strided(size: int, lanes: int, stride: int, offset: int, dtype: str = "float32") -> Program:
    """B[i] = A[i * stride + offset], zero outside of A."""
    a = te.placeholder((size,), dtype, "A")
    count = max(1, size // stride)

    def element(i: te.Var) -> te.PrimExpr:
        place = i * stride + offset
        return te.if_then_else(te.all(place >= 0, place < size), a[place], te.const(0, dtype))

    b = te.compute((count,), element, name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(b.op.axis[0], factor=lanes)
    s[b].vectorize(inner)
    return s, [a, b]


def rows(height: int, width: int, shift: int) -> Program:
    """B[i, j] = A[i + shift, j], zero outside of A: all lanes are read, or none."""
    a = te.placeholder((height, width), name="A")
    b = te.compute(
        (height, width),
        lambda i, j: te.if_then_else(te.all(i + shift >= 0, i + shift < height), a[i + shift, j], te.const(0.0, "float32")),
        name="B",
    )
    s = te.create_schedule(b.op)
    _, inner = s[b].split(b.op.axis[1], factor=16)
    s[b].vectorize(inner)
    return s, [a, b]


@settings(deadline=None, derandomize=True, max_examples=share_of(60))
@given(
    size=st.integers(1, 150),
    lanes=st.sampled_from([2, 4, 7, 8, 14, 16, 32]),
    stride=st.integers(2, 5),
    offset=st.integers(-6, 6),
    dtype=st.sampled_from(["float32", "int8", "float64"]),
)
@example(size=112, lanes=16, stride=2, offset=-1, dtype="float32")
@example(size=33, lanes=16, stride=2, offset=1, dtype="float32")
@example(size=64, lanes=16, stride=4, offset=3, dtype="int8")
def test_every_lane_is_picked_right(size: int, lanes: int, stride: int, offset: int, dtype: str) -> None:
    assert_schedule_correct(*strided(size, lanes, stride, offset, dtype), phases=(2,))


@settings(deadline=None, derandomize=True, max_examples=share_of(20))
@given(height=st.integers(1, 5), width=st.integers(1, 40), shift=st.integers(-2, 2))
def test_rows_outside_are_zero(height: int, width: int, shift: int) -> None:
    assert_schedule_correct(*rows(height, width, shift), phases=(2,))


def test_neighbours_are_loaded_at_once_and_picked_apart() -> None:
    script = tvm.lower(*strided(256, 16, 2, 0)).script()
    assert "T.Shuffle(" in script and ", 2, 16)" not in script


def test_strides_that_are_too_long_stay() -> None:
    assert "T.Shuffle(" not in tvm.lower(*strided(400, 16, 5, 0)).script()


@pytest.mark.parametrize("shift", [-1, 1])
def test_a_condition_of_all_lanes_is_a_mask(shift: int) -> None:
    s, args = rows(8, 32, shift)
    with tvm.Target(AVX512):
        script = tvm.lower(s, args, simple_mode=True).script()
    assert "predicate=" in script and "if_then_else" not in script


def test_a_masked_strided_load_is_masked_between_its_lanes() -> None:
    s, args = strided(112, 16, 2, -1)
    text = tvm.build(s, args, AVX512).get_source("ll")
    assert "gather" not in text and "llvm.masked.load" in text


def test_only_the_vector_at_the_edge_is_masked() -> None:
    """B[i] = A[2i - 1]: only the first lane can be outside, so the loads from the second vector on are plain, and no zero is selected."""
    s, args = strided(112, 16, 2, -1)
    asm = assembly(s, args, tvm.Target(AVX512))
    loads = [line for line in asm.splitlines() if "%zmm" in line and "(%r" in line and not line.rstrip().endswith(")")]
    assert sum("{%k" in line for line in loads) == 1 < len(loads), asm
    assert not any("vpermt2ps" in line and "{%k" in line for line in asm.splitlines()), asm


def test_what_nobody_wrote_is_not_read() -> None:
    """Rows of two elements, three apart: the third is padding."""
    a = te.placeholder((17, 2), "float64", "A")
    b = te.compute((17, 2), lambda i, j: a[i, j] + 1.0, name="B")
    s = te.create_schedule(b.op)
    local = s.cache_read(a, "local", [b])
    s[local].storage_align(local.op.axis[0], 4, 3)
    s[b].vectorize(b.op.axis[0])
    assert_schedule_correct(s, [a, b])


def interleaved(count: int, parts: int, lanes: int, shift: int, part: str) -> Program:
    """B[i] = A[(i + shift) % parts, (i + shift) // parts]; `part`: "all" of them, or a "first" one and zero."""
    a = te.placeholder((parts, (count + shift) // parts + 1), name="A")

    def element(i: te.Var) -> te.PrimExpr:
        row, column = (i + shift) % parts, (i + shift) // parts
        return a[row, column] if part == "all" else te.if_then_else(row < 1, a[row, column], te.const(0.0, "float32"))

    b = te.compute((count,), element, name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(b.op.axis[0], factor=lanes)
    s[b].vectorize(inner)
    return s, [a, b]


@settings(deadline=None, derandomize=True, max_examples=share_of(60))
@given(
    count=st.integers(1, 100),
    parts=st.integers(1, 5),
    lanes=st.sampled_from([2, 4, 6, 8, 15, 16, 32]),
    shift=st.integers(0, 5),
    part=st.sampled_from(["all", "first"]),
)
@example(count=56, parts=2, lanes=16, shift=1, part="first")
@example(count=100, parts=3, lanes=15, shift=1, part="all")
def test_lanes_of_a_few_pieces_are_picked_right(count: int, parts: int, lanes: int, shift: int, part: str) -> None:
    assert_schedule_correct(*interleaved(count, parts, lanes, shift, part), phases=(2,))


def test_pieces_are_loaded_and_zipped() -> None:
    text = tvm.build(*interleaved(256, 2, 32, 0, "all"), AVX512).get_source("ll")
    assert "gather" not in text and "shufflevector" in text
    assert "gather" not in tvm.build(*interleaved(256, 2, 32, 1, "first"), AVX512).get_source("ll")


def test_repeated_neighbours_are_loaded_once() -> None:
    """B[i, j] = A[i // 2, j // 2], as nearest neighbours are enlarged."""
    a = te.placeholder((8, 16), name="A")
    b = te.compute((16, 32), lambda i, j: a[i // 2, j // 2], name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[1])
    assert "gather" not in tvm.build(s, [a, b], AVX512).get_source("ll")
    assert_schedule_correct(s, [a, b])
