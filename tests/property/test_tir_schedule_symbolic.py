"""Loops of symbolic extents, split unevenly: consumers and producers computed in their tiles, for whatever sizes come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorexpr
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.tir.interpreter import interpret
from tests.effort import share_of


def chain() -> tir.PrimFunc:
    """C = (A + 1) * 2 of any size."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "int32", name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1, name="B")
    return te.create_prim_func([a, te.compute((n, m), lambda i, j: b[i, j] * 2, name="C")])


def sums() -> tir.PrimFunc:
    """Twice the sums of rows, of any number."""
    n, k = te.var("n"), te.reduce_axis((0, 6), name="k")
    a = te.placeholder((n, 6), "int32", name="A")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    return te.create_prim_func([a, te.compute((n,), lambda i: b[i] * 2, name="C")])


def check(sch: tir.Schedule, a: np.ndarray, expected: np.ndarray, compiled: bool) -> None:
    """The schedule computes what is expected, after the phases and perhaps as machine code."""
    for phase in (0, 2):
        result = np.zeros_like(expected)
        interpret(tensorexpr.lower(sch.mod, upto=phase)["main"], [a, result])
        np.testing.assert_array_equal(result, expected)
    if compiled:
        result = np.zeros_like(expected)
        tensorexpr.build(sch.mod)(a, result)
        np.testing.assert_array_equal(result, expected)


@given(
    forward=st.booleans(), factors=st.tuples(st.integers(1, 5), st.integers(1, 5)), depth=st.integers(0, 2),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 9)), parallel=st.booleans(),
)  # fmt: skip
@settings(max_examples=share_of(25), deadline=None, derandomize=True)
def test_chains(forward: bool, factors: tuple[int, int], depth: int, shape: tuple[int, int], parallel: bool) -> None:
    sch = tir.Schedule(chain())
    split, moved = ("C", "B") if forward else ("B", "C")
    i, j = sch.get_loops(split)
    rows, columns = sch.split(i, [None, factors[0]]), sch.split(j, [None, factors[1]])
    sch.reorder(rows[0], columns[0], rows[1], columns[1])
    place = (rows[0], columns[0], rows[1])[depth]
    sch.compute_at(moved, place) if forward else sch.reverse_compute_at(moved, place)
    if parallel:
        sch.parallel(rows[0])
    a = np.arange(shape[0] * shape[1], dtype="int32").reshape(shape)
    check(sch, a, (a + 1) * 2, compiled=parallel and depth == 1)


@given(factor=st.integers(1, 5), rows=st.integers(1, 9))
@settings(max_examples=10, deadline=None, derandomize=True)
def test_after_reductions(factor: int, rows: int) -> None:
    sch = tir.Schedule(sums())
    outer, _ = sch.split(sch.get_loops("B")[0], [None, factor])
    sch.reverse_compute_at("C", outer)
    a = np.arange(rows * 6, dtype="int32").reshape(rows, 6)
    check(sch, a, a.sum(1, dtype="int32") * 2, compiled=factor == 4)


def test_a_part_of_the_rows_does_not_cover_them() -> None:
    """Without the last tile, which the split's own number of tiles doesn't have, some rows would be missing."""
    sch = tir.Schedule(chain(), error_render_level="fast")
    i, _ = sch.get_loops("B")
    outer, _ = sch.split(i, [2, 4], disable_predication=True)
    with pytest.raises(ScheduleError):
        sch.reverse_compute_at("C", outer)
