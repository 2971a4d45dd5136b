"""Rings of tir.Schedule where the iterations of two nested loops overlap, and of a buffer that another ring is computed from."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.tir.function import IRModule
from tensorexpr.tir.interpreter import interpret


def pools(size: int, levels: int) -> IRModule:
    """Maxima over 2 x 2 windows, one after another."""
    last = te.placeholder((size, size), "int32", "A")
    args = [last]
    for level in range(levels):
        x, y = te.reduce_axis((0, 2), "x"), te.reduce_axis((0, 2), "y")
        before, extent = last, size - level - 1
        last = te.compute((extent, extent), lambda i, j, p=before, x=x, y=y: te.max(p[i + x, j + y], [x, y]), f"P{level}")
    return IRModule({"main": te.create_prim_func([*args, last])})


def maxima(a: np.ndarray, levels: int) -> np.ndarray:
    """What `pools` computes."""
    for _ in range(levels):
        a = np.maximum(np.maximum(a[1:, 1:], a[:-1, 1:]), np.maximum(a[1:, :-1], a[:-1, :-1]))
    return a


@pytest.mark.parametrize(("tile", "levels"), [((2, 2), 2), ((3, 2), 2), ((2, 2), 3)])
def test_windows_along_rows_and_columns(tile: tuple[int, int], levels: int) -> None:
    size = 6 + levels
    sch = tir.Schedule(pools(size, levels))
    i, j, *rest = sch.get_loops(sch.get_block(f"P{levels - 1}"))
    (i_0, i_1), (j_0, j_1) = sch.split(i, [None, tile[0]]), sch.split(j, [None, tile[1]])
    sch.reorder(i_0, j_0, i_1, j_1, *rest)
    for level in reversed(range(levels - 1)):
        sch.compute_at(sch.get_block(f"P{level}"), j_0)
    for level in range(levels - 1):
        sch.rolling_buffer(sch.get_block(f"P{level}"), 0)
    text = sch.mod.script()
    assert f"P0[vi % {tile[0] + levels - 1}" in text.replace("v_i", "vi") and "(i_0 < 1 or" in text and "(j_0 < 1 or" in text
    given = np.random.default_rng(1).integers(0, 1000, (size, size)).astype("int32")
    found = np.zeros((6, 6), "int32")
    interpret(sch.mod["main"], [given, found])
    np.testing.assert_array_equal(found, maxima(given, levels))
