"""Blocks of symbolic sizes in fused loops: f // n and f % n run over all of their axes if the loop is as long as both together."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import tir
from tensorexpr.errors import ScheduleError
from tensorexpr.script import tir as T
from tensorexpr.tir.interpreter import interpret


@T.prim_func
def chain(a: T.handle, c: T.handle) -> None:
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    C = T.match_buffer(c, (3, n), "int32")
    B = T.alloc_buffer((3, n), "int32")
    for f in range(n * 3):
        with T.block("B"):
            vi = T.axis.spatial(3, f // n)
            vj = T.axis.spatial(n, f % n)
            B[vi, vj] = A[vi, vj] + 10
    for f in range(n * 3):
        with T.block("C"):
            vi = T.axis.spatial(3, f // n)
            vj = T.axis.spatial(n, f % n)
            C[vi, vj] = B[vi, vj] * 2


@T.prim_func
def short(a: T.handle, c: T.handle) -> None:
    n = T.int32()
    A = T.match_buffer(a, (3, n), "int32")
    C = T.match_buffer(c, (3, n), "int32")
    B = T.alloc_buffer((3, n), "int32")
    for f in range(n * 2):
        with T.block("B"):
            vi = T.axis.spatial(3, f // n)
            vj = T.axis.spatial(n, f % n)
            B[vi, vj] = A[vi, vj] + 10
    for f in range(n * 3):
        with T.block("C"):
            vi = T.axis.spatial(3, f // n)
            vj = T.axis.spatial(n, f % n)
            C[vi, vj] = B[vi, vj] * 2


@pytest.mark.parametrize("forward", [True, False])
def test_blocks_share_a_fused_loop(forward: bool) -> None:
    sch = tir.Schedule(chain)
    if forward:
        sch.compute_at(sch.get_block("B"), sch.get_loops("C")[0])
    else:
        sch.reverse_compute_at(sch.get_block("C"), sch.get_loops("B")[0])
    assert "T.where" not in sch.mod.script() and sch.mod.script().count("range(n * 3)") == 1
    given, found = np.arange(12, dtype="int32").reshape(3, 4), np.zeros((3, 4), "int32")
    interpret(sch.mod["main"], [given, found])
    np.testing.assert_array_equal(found, (given + 10) * 2)


def test_a_loop_that_ends_before_is_no_place() -> None:
    sch = tir.Schedule(short)
    with pytest.raises(ScheduleError):
        sch.reverse_compute_at(sch.get_block("C"), sch.get_loops("B")[0])
