"""Primitives beside constants of a program (T.allocate_const), which are declared around all that a scope does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorexpr import tir
from tensorexpr.script import tir as T
from tensorexpr.tir.interpreter import interpret


@T.prim_func
def shifted(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4,), "int32")
    C = T.match_buffer(c, (4,), "int32")
    B = T.alloc_buffer((4,), "int32")
    table = T.allocate_const([3, 1, 4, 1], "int32", [4])
    offset = T.Buffer((4,), "int32", data=table)
    for i in range(4):
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + offset[vi]
    for i in range(4):
        with T.block("C"):
            vi = T.axis.spatial(4, i)
            C[vi] = B[vi] * 2


@pytest.mark.parametrize(
    "change",
    [
        lambda sch: sch.compute_at(sch.get_block("B"), sch.get_loops("C")[0]),
        lambda sch: sch.reverse_compute_at(sch.get_block("C"), sch.get_loops("B")[0]),
        lambda sch: sch.compute_inline("B"),
        lambda sch: sch.reverse_compute_inline("C"),
        lambda sch: sch.cache_read("B", 1, "local"),
        lambda sch: sch.cache_read("B", 0, "local"),
        lambda sch: sch.cache_write("C", 0, "local"),
    ],
)
def test_blocks_move_beside_constants(change: Callable[[tir.Schedule], object]) -> None:
    sch = tir.Schedule(shifted)
    change(sch)
    given, found = np.arange(4, dtype="int32"), np.zeros(4, "int32")
    interpret(sch.mod["main"], [given, found])
    np.testing.assert_array_equal(found, (given + np.array([3, 1, 4, 1])) * 2)
