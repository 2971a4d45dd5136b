"""Default schedules of reductions: which axis is in the lanes, and places of extrema among equal values whatever order lanes have."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir, topi
from tensorexpr.schedule.tree import LoopKind
from tensorexpr.spaces.reduction import contiguous_axis
from tensorexpr.target import Target
from tensorexpr.te.operation import ComputeOp
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.topi.schedules import default_schedule

NARROW = Target("llvm -vector-width=128 -num-cores=2")


@pytest.mark.parametrize("shape", [(3, 40), (1, 300), (7, 5), (2, 1000), (1, 20000)])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("operator", [topi.argmax, topi.argmin])
def test_places_of_extrema_along_rows(shape: tuple[int, int], last: bool, operator: object) -> None:
    x = te.placeholder(shape, name="X")
    out = operator(x, axis=1, select_last_index=last)  # type: ignore[operator]
    values = np.random.default_rng(0).integers(0, 4, shape).astype("float32")
    sign = 1 if operator is topi.argmax else -1
    expected = shape[1] - 1 - (sign * values[:, ::-1]).argmax(1) if last else (sign * values).argmax(1)
    found = np.empty(shape[0], "int32")
    s = default_schedule([x, out], NARROW)
    assert shape[1] < 8 or "int32x" in tvm.lower(s, [x, out]).script()
    tvm.build(s, [x, out], NARROW)(values, found)
    np.testing.assert_array_equal(found, expected)


def test_a_place_that_depends_on_the_order_stays_in_it() -> None:
    """The first of equal values, told by which came first, and not by its index."""

    def first(x: tuple[tir.PrimExpr, ...], y: tuple[tir.PrimExpr, ...]) -> tuple[tir.PrimExpr, ...]:
        return tir.Select(x[1] >= y[1], x[0], y[0]), tir.Select(x[1] >= y[1], x[1], y[1])

    argmax = te.comm_reducer(first, lambda t0, t1: (te.const(-1, t0), te.min_value(t1)))
    x, k = te.placeholder((3, 64), name="X"), te.reduce_axis((0, 64), "k")
    place, most = te.compute((3,), lambda i: argmax((k, x[i, k]), axis=k), name="place")
    values = np.random.default_rng(1).integers(0, 4, (3, 64)).astype("float32")
    found, largest = np.empty(3, "int32"), np.empty(3, "float32")
    tvm.build(default_schedule([x, place, most], NARROW), [x, place, most], NARROW)(values, found, largest)
    np.testing.assert_array_equal(found, values.argmax(1))


def test_sums_of_gathered_rows_have_columns_in_the_lanes() -> None:
    x, at, w = te.placeholder((50, 21), name="X"), te.placeholder((9, 5), "int32", name="I"), te.placeholder((9, 5), name="W")
    k = te.reduce_axis((0, 5), "k")
    out = te.compute((9, 21), lambda i, j: te.sum(x[at[i, k] % 50, j] * w[i, k], axis=k))
    assert isinstance(out.op, ComputeOp) and contiguous_axis(out.op) is out.op.axis[1]
    assert_schedule_correct(default_schedule([x, at, w, out], NARROW), [x, at, w, out], phases=(2,))


def test_few_terms_leave_the_lanes_to_results() -> None:
    x, f, k = te.placeholder((4, 40), name="X"), te.placeholder((3,), name="F"), te.reduce_axis((0, 3), "k")
    out = te.compute((4, 40), lambda y, z: te.sum(x[y, te.max(0, te.min(39, z + k - 1))] * f[k], axis=k))
    assert isinstance(out.op, ComputeOp) and contiguous_axis(out.op, 4) is out.op.axis[1]
    assert_schedule_correct(default_schedule([x, f, out], NARROW), [x, f, out], phases=(2,))


@pytest.mark.parametrize(("rows", "width", "terms", "target"), [(30, 13, 11, NARROW), (20, 9, 8, Target("llvm")), (40, 8, 5, NARROW)])
def test_bands_have_a_copy_with_the_results_in_lanes(rows: int, width: int, terms: int, target: Target) -> None:
    a, b, k = te.placeholder((rows, terms), name="A"), te.placeholder((rows + width, terms), name="B"), te.reduce_axis((0, terms), "k")
    out = te.compute((rows, width), lambda i, j: te.sum(a[i, k] * b[i + j, k], axis=k), name="Y")
    s = default_schedule([a, b, out], target)
    assert [stage.op.name for stage in s.stages] == ["A", "B", "B.global", "Y"]
    assert_schedule_correct(s, [a, b, out], phases=(2,))


def test_operands_that_are_read_once_are_not_copied() -> None:
    q, v, k = te.placeholder((6, 40), name="Q"), te.placeholder((6, 50, 40), name="K"), te.reduce_axis((0, 40), "k")
    scores = te.compute((6, 50), lambda h, j: te.sum(q[h, k] * v[h, j, k], axis=k))
    assert all("global" not in stage.op.name for stage in default_schedule([q, v, scores], NARROW).stages)


@pytest.mark.parametrize(("lags", "lanes_are_results"), [(3, False), (13, True)])
def test_correlations_have_lags_in_the_lanes_where_these_fill_some(lags: int, lanes_are_results: bool) -> None:
    x, k = te.placeholder((2, 30 + lags), name="X"), te.reduce_axis((0, 30), "k")
    out = te.compute((2, lags), lambda i, j: te.sum(x[i, k] * x[i, k + j], axis=k), name="Y")
    assert isinstance(out.op, ComputeOp) and (contiguous_axis(out.op, 4) is out.op.axis[1]) is lanes_are_results
    assert_schedule_correct(default_schedule([x, out], NARROW), [x, out], phases=(2,))


@pytest.mark.parametrize("offsets", [3, 20])
def test_rows_that_share_a_vector_go_on_side_by_side(offsets: int) -> None:
    """Of each step A is read once for up to as many offsets as sums hide the latency of an addition."""
    a, b = te.placeholder((9, 4, 11), name="A"), te.placeholder((9, 4, 10 + offsets), name="B")
    k = te.reduce_axis((0, 9), "k")
    out = te.compute((offsets, 4, 11), lambda v, y, x: te.sum(a[k, y, x] * b[k, y, x + v], axis=k), name="Y")
    s = default_schedule([a, b, out], NARROW)
    node = s.tree[s[out].id]
    unrolled = [node.axes[axis].name for axis, mark in node.marks.items() if mark.kind is LoopKind.UNROLL]
    assert unrolled == ["v.inner"]
    assert_schedule_correct(s, [a, b, out], phases=(2,))


@pytest.mark.parametrize(("pairs", "copied"), [((24, 19), ["B.global"]), ((3, 19), []), ((24, 3), [])])
def test_what_pairs_read_across_the_lanes_is_copied_once(pairs: tuple[int, int], copied: list[str]) -> None:
    """Overlaps of 704 x 192 boxes 0.117 -> 0.043 ms (two cores of Zen 3); few rows, or fewer columns than lanes, have none."""
    a, b = te.placeholder((pairs[0], 3), name="A"), te.placeholder((pairs[1], 3), name="B")
    out = te.compute(pairs, lambda i, j: te.abs(a[i, 0] - b[j, 0]) + te.abs(a[i, 2] - b[j, 2]) * b[j, 1], name="Y")
    s = default_schedule([a, b, out], NARROW)
    assert [stage.op.name for stage in s.stages if "global" in stage.op.name] == copied
    assert_schedule_correct(s, [a, b, out], phases=(2,))


@pytest.mark.parametrize("dtype", ["float32", "int8", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("operator", [topi.any, topi.all])
def test_truths_are_as_wide_as_what_is_compared(operator: object, axis: int, dtype: str) -> None:
    """`any` of 1024 x 1024 comparisons made bytes of eight at a time, in memory, and took 1.7 times as long as PyTorch's."""
    x = te.placeholder((37, 150), dtype, name="X")
    out = operator(topi.greater(x, tir.const(2, dtype)), axis=axis)  # type: ignore[operator]
    s = default_schedule([x, out], NARROW)
    built = tvm.build(s, [x, out], NARROW)
    values = np.random.default_rng(0).integers(-3, 4, (37, 150)).astype(dtype)
    values[:, ::7], values[::5] = (3, 3) if operator is topi.all else (1, 0)
    found = np.empty(out.shape[0].value, "bool")
    built(values, found)
    np.testing.assert_array_equal(found, (np.all if operator is topi.all else np.any)(values > 2, axis=axis))
    masks = set(re.findall(r"phi <\d+ x (i\d+)>", built.get_source("ll")))
    assert axis == 0 or masks <= {f"i{8 * np.dtype(dtype).itemsize}"}


def test_comparisons_of_pairs_have_tiles() -> None:
    """Accumulators of a tile are masks: 256 x 256 x 256 had vectors of 32 lanes, each of which was packed to bytes in every step."""
    a, b, k = te.placeholder((20, 40), name="A"), te.placeholder((40, 36), name="B"), te.reduce_axis((0, 40), "k")
    met = te.comm_reducer(lambda x, y: te.any(x, y), lambda t: tir.const(False, t), name="met")
    c = te.compute((20, 36), lambda i, j: met(te.all(a[i, k] > b[k, j], a[i, k] < 2.0), axis=k), name="C")
    s = default_schedule([a, b, c], NARROW)
    assert "boolx4" in tvm.lower(s, [a, b, c]).script() and "boolx16" not in tvm.lower(s, [a, b, c]).script()
    x, y = (np.random.default_rng(0).standard_normal(shape).astype("float32") for shape in ((20, 40), (40, 36)))
    found = np.empty((20, 36), "bool")
    built = tvm.build(s, [a, b, c], NARROW)
    built(x, y + 2, found)
    np.testing.assert_array_equal(found, ((x[:, :, None] > y + 2) & (x[:, :, None] < 2)).any(1))
    assert set(re.findall(r"phi <\d+ x (i\d+)>", built.get_source("ll"))) == {"i32"}
