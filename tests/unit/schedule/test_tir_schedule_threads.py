"""Schedules of blocks over threads: extents that no factor divides, and what threads fill for each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.device.on_cpu import with_barriers
from tensorexpr.schedule.blocks import LoopRV
from tensorexpr.tir.interpreter import interpret


def twice_more(rows: int, columns: int) -> tir.Schedule:
    """C = 2 (A + 1)."""
    a = te.placeholder((rows, columns), name="A")
    b = te.compute((rows, columns), lambda i, j: a[i, j] + 1.0, name="B")
    return tir.Schedule(te.create_prim_func([a, te.compute((rows, columns), lambda i, j: b[i, j] * 2.0, name="C")]))


def on_grid(sch: tir.Schedule, block: str, threads: int) -> tuple[LoopRV, LoopRV]:
    """The loops of a block fused and cut into blocks and threads."""
    grid, lanes = sch.split(sch.fuse(*sch.get_loops(block)), [None, threads])
    sch.bind(grid, "blockIdx.x")
    sch.bind(lanes, "threadIdx.x")
    return grid, lanes


def check(sch: tir.Schedule, rows: int, columns: int) -> None:
    x, made, seen = np.random.default_rng(0).random((rows, columns), np.float32), *np.zeros((2, rows, columns), np.float32)
    tvm.build(sch.mod, target="llvm")(x, made)
    np.testing.assert_array_equal(made, (x + 1) * 2)
    interpret(with_barriers(tvm.lower(sch.mod, upto=1))["main"], [x, seen])
    np.testing.assert_array_equal(seen, made)


@settings(max_examples=8, deadline=None)
@given(rows=st.integers(2, 6), columns=st.integers(2, 9), threads=st.integers(2, 16), place=st.sampled_from(["thread", "block", "shared"]))
@example(rows=6, columns=7, threads=16, place="shared")
@example(rows=2, columns=3, threads=4, place="shared")
def test_a_stage_in_loops_of_any_grid(rows: int, columns: int, threads: int, place: str) -> None:
    sch = twice_more(rows, columns)
    grid, lanes = on_grid(sch, "C", threads)
    if place == "shared":
        sch.set_scope("B", 0, "shared")
    sch.compute_at("B", lanes if place == "thread" else grid)
    if place == "shared":  # filled by all threads, whose elements begin anywhere in a row
        inner = sch.split(sch.fuse(*sch.get_loops("B")[1:]), [None, threads])[1]
        try:
            sch.bind(inner, "threadIdx.x")
        except ScheduleError as error:  # rows of 3 where blocks have 4: where an element begins is no split of loops
            assert "needs axes that are made of loops by splitting and fusing" in str(error)
    check(sch, rows, columns)


def test_each_thread_computes_what_it_reads_of_global_memory() -> None:
    sch = twice_more(30, 41)
    _, lanes = on_grid(sch, "C", 64)
    sch.compute_at("B", lanes)
    assert len(sch.get_loops("B")) == 2  # of the grid: one element for each thread
    sch = twice_more(30, 40)
    _, lanes = on_grid(sch, "B", 50)
    sch.reverse_compute_at("C", lanes)
    assert len(sch.get_loops("C")) == 2


def test_threads_of_shared_memory_need_what_all_of_them_read() -> None:
    sch = twice_more(8, 32)
    i, j = sch.get_loops("C")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    sch.set_scope("B", 0, "shared")
    sch.compute_at("B", j)
    assert str(sch.get(sch.get_loops("B")[-1]).extent) == "32"


@pytest.mark.parametrize("tag", ["blockIdx.x", "threadIdx.x"])
def test_a_loop_that_repeats_a_block_is_not_bound(tag: str) -> None:
    text = """@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for r, i in T.grid(3, 8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] + 1.0
"""
    sch = tir.Schedule(tvm.script.from_source(text))
    with pytest.raises(ScheduleError, match="which repeats it"):
        sch.bind(sch.get_loops("B")[0], tag)
