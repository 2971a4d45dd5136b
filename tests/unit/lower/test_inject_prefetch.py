"""inject_prefetch: one call per cache line of what a later iteration reads, and nobody takes it for a read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.pipeline import lower
from tensorexpr.lower.rebuild import walk_statements
from tensorexpr.runtime.build import build
from tensorexpr.schedule import create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.expr import BufferLoad, Call
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.stmt import AttrStmt, Evaluate, For


def sums(rows: int, columns: int, dtype: str = "float32", offset: int = 2, loop: int = 0) -> tuple[Any, list[Tensor]]:
    """Row sums that prefetch `offset` iterations ahead."""
    a = te.placeholder((rows, columns), dtype, name="A")
    k = te.reduce_axis((0, columns), name="k")
    b = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = create_schedule(b.op)
    s[b].prefetch(a, (*b.op.axis, k)[loop], offset)
    return s, [a, b]


def calls(func: PrimFunc) -> list[str]:
    """The elements that are prefetched, as text."""
    found = []
    for stmt in walk_statements(func.body):
        if isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == "tir.prefetch":
            assert isinstance(stmt.value.args[0], BufferLoad)
            found.append(str(stmt.value.args[0]))
    return found


def calls_without_loops(s: Any, args: list[Tensor]) -> list[str]:
    """The calls of the lowered function, where small loops over lines are written out."""
    return calls(lower(s, args)["main"])


@pytest.mark.parametrize(
    ("columns", "dtype", "count"),
    ((1, "float32", 1), (2, "float32", 2), (16, "float32", 1), (17, "float32", 2), (18, "float32", 3), (64, "int8", 1), (48, "int8", 2)),
)
def test_one_call_per_line_that_a_row_may_touch(columns: int, dtype: str, count: int) -> None:
    s, args = sums(8, columns, dtype)
    assert len(calls_without_loops(s, args)) == count


def test_the_box_is_that_of_a_later_iteration() -> None:
    s, args = sums(8, 20, offset=3)
    assert calls_without_loops(s, args) == ["A[i * 20 + 60]", "A[i * 20 + 16 + 60]", "A[i * 20 + 32 + 60]"]


def test_an_inner_loop_moves_along_the_row() -> None:
    s, args = sums(8, 20, offset=16, loop=1)
    assert calls_without_loops(s, args) == ["A[i * 20 + k + 16]"]


@pytest.mark.parametrize(("shape", "count"), (((4, 4), 1), ((16, 2), 2), ((3, 16), 3), ((3, 15), 4)))
def test_rows_that_lie_side_by_side_are_one(shape: tuple[int, int], count: int) -> None:
    a = te.placeholder((6, *shape), name="A")
    r, k = te.reduce_axis((0, shape[0]), "r"), te.reduce_axis((0, shape[1]), "k")
    b = te.compute((6,), lambda i: te.sum(a[i, r, k], axis=[r, k]), name="B")
    s = create_schedule(b.op)
    s[b].prefetch(a, b.op.axis[0], 1)
    assert len(calls_without_loops(s, [a, b])) == count


def test_a_part_of_each_row_is_fetched_row_by_row() -> None:
    a = te.placeholder((6, 3, 16), name="A")
    r, k = te.reduce_axis((0, 3), "r"), te.reduce_axis((0, 2), "k")
    b = te.compute((6,), lambda i: te.sum(a[i, r, k], axis=[r, k]), name="B")
    s = create_schedule(b.op)
    s[b].prefetch(a, b.op.axis[0], 1)
    assert len(calls_without_loops(s, [a, b])) == 3


def test_long_rows_are_a_loop() -> None:
    s, args = sums(4, 1024)
    func = lower(s, args)["main"]
    assert len(calls(func)) == 1
    assert any(isinstance(stmt, For) and stmt.loop_var.name.startswith("line") for stmt in walk_statements(func.body))


def test_nothing_is_left_of_the_attribute() -> None:
    s, args = sums(4, 8)
    assert any(isinstance(stmt, AttrStmt) for stmt in walk_statements(lower(s, args, upto=0)["main"].body))
    assert not any(isinstance(stmt, AttrStmt) for stmt in walk_statements(lower(s, args, upto=1)["main"].body))


def test_a_loop_of_one_iteration_has_nothing_to_fetch() -> None:
    s, args = sums(1, 8)
    assert calls_without_loops(s, args) == []


def test_a_prefetch_past_the_end_is_no_access() -> None:
    s, args = sums(4, 8, offset=1 << 20)
    values, result = np.ones((4, 8), np.float32), np.zeros(4, np.float32)
    with PassContext(config={"tir.instrument_bound_checkers": True}):
        func = lower(s, args)["main"]
        module = build(s, args)
    interpret(func, [values, result])
    assert result.tolist() == [8.0] * 4
    result[:] = 0
    module(values, result)
    assert result.tolist() == [8.0] * 4


def test_the_machine_prefetches() -> None:
    s, args = sums(64, 64)
    module = build(s, args)
    assert module.get_source("ll").count("call void @llvm.prefetch.p0") == 4
    if module.target.arch == "x86_64":
        assert module.get_source("asm").count("prefetcht0") == 4


def test_the_pass_is_offered_by_name() -> None:
    s, args = sums(4, 8)
    mod = tvm.tir.transform.InjectPrefetch()(lower(s, args, upto=0))
    assert len(calls(mod["main"])) == 1
    again = tvm.tir.transform.InjectPrefetch()(mod)
    assert again["main"] is mod["main"]


def test_pixels_that_run_on_over_row_ends_are_next_to_each_other_in_memory() -> None:
    # 48 pixels of rows of 80: some of one or two rows, as a box of rows and columns sees them, so 5 or 10 lines.
    a, w = te.placeholder((64, 6, 80), name="A"), te.placeholder((64,), name="W")
    k = te.reduce_axis((0, 64), name="k")
    b = te.compute((480,), lambda p: te.sum(a[k, p // 80, p % 80] * w[k], axis=k), name="B")
    s = create_schedule(b.op)
    tile = s.cache_write(b, "local")
    many, _ = s[b].split(b.op.axis[0], factor=48)
    s[tile].compute_at(s[b], many)
    s[tile].reorder(k, tile.op.axis[0])
    s[tile].prefetch(a, k, 16)
    assert len(calls_without_loops(s, [a, w, b])) == 3


def test_the_lines_of_a_step_of_a_register_tile_are_written_out() -> None:
    # Three taps by four vectors: a loop over 12 lines would end in each step of the sum.
    w = te.placeholder((64, 12, 16), name="W")
    k, t = te.reduce_axis((0, 64), name="k"), te.reduce_axis((0, 12), name="t")
    b = te.compute((16,), lambda c: te.sum(w[k, t, c], axis=[k, t]), name="B")
    s = create_schedule(b.op)
    s[b].reorder(k, t, b.op.axis[0])
    s[b].prefetch(w, k, 16)
    lowered = lower(s, [w, b])["main"]
    assert len(calls(lowered)) == 12
