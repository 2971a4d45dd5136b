"""Properties 10 and 12 for tiles of two sizes, borders and whole local tiles: whatever divides or doesn't, results agree."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.context import PassContext
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.schedule.legality import check_tree
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.strategies import compute_dags, schedules
from tensorexpr.tir.expr import IterVar
from tests.effort import share_of

EXTENTS = st.sampled_from((1, 2, 3, 5, 7, 11, 13, 17, 19))
FACTORS = st.sampled_from((1, 2, 3, 4, 5, 6, 7, 8, 14, 16))
Program = tuple[Schedule, list[Tensor]]


def _split(draw: st.DrawFn, stage: Any, axis: IterVar) -> tuple[IterVar, IterVar]:
    """A split by a size or into a number of parts, mostly balanced."""
    value, balanced = draw(FACTORS), draw(st.integers(0, 3)) > 0
    if draw(st.booleans()):
        outer, inner = stage.split(axis, factor=value, balanced=balanced)
    else:
        outer, inner = stage.split(axis, nparts=value, balanced=balanced)
    return outer, inner


@st.composite
def windows(draw: st.DrawFn) -> Program:
    """A product of windows over a computed matrix, computed in tiles of its consumer; extents and splits that don't fit."""
    m, n, k, taps, stride = draw(EXTENTS), draw(EXTENTS), draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(1, 2))
    a, b = te.placeholder(((m - 1) * stride + taps, k), name="A"), te.placeholder((k, n), name="B")
    p = te.compute(a.shape, lambda i, j: a[i, j] + 1.0, name="P")
    q, t = te.reduce_axis((0, k), name="q"), te.reduce_axis((0, taps), name="t")
    c = te.compute((m, n), lambda i, j: te.sum(p[i * stride + t, q] * b[q, j], axis=[t, q]), name="C")
    d = te.compute((m, n), lambda i, j: c[i, j] * 2.0, name="D")
    s = create_schedule(d.op)
    (io, ii), (jo, ji) = (_split(draw, s[d], axis) for axis in d.op.axis)
    s[d].reorder(io, jo, ii, ji)
    if draw(st.booleans()):
        _split(draw, s[d], ii)
    s[c].compute_at(s[d], draw(st.sampled_from((io, jo))))
    loops: list[IterVar] = [c.op.reduce_axis[0]]
    for axis in (*c.op.axis, c.op.reduce_axis[1]):
        loops += _split(draw, s[c], axis) if draw(st.booleans()) else [axis]
    if draw(st.booleans()):
        s[c].reorder(*draw(st.permutations(loops)))
    s[p].compute_at(*draw(st.sampled_from([(s[c], loop) for loop in loops] + [(s[d], io), (s[d], jo)])))
    if draw(st.booleans()):
        s[d].parallel(io)
    if draw(st.booleans()):
        s[d].vectorize(ji)
    return s, [a, b, d]


def _check(program: Program, compiled: bool) -> None:
    s, args = program
    try:
        check_tree(s.tree)
    except ScheduleError:
        assume(False)
    assert_schedule_correct(s, args, compiled=compiled)


@settings(max_examples=share_of(20), deadline=None, derandomize=True)
@given(windows(), st.integers(0, 3))
def test_12_windows_in_uneven_tiles(program: Program, native: int) -> None:
    _check(program, native == 0)


@st.composite
def borders(draw: st.DrawFn) -> Program:
    """A padded window over rows and columns of which padding is skipped, in any tiles and any order of the taps."""
    h, w, pad, stride, taps = (draw(st.integers(low, high)) for low, high in ((1, 6), (1, 17), (0, 3), (1, 2), (1, 4)))
    assume(h + 2 * pad >= taps and w + 2 * pad >= taps)
    x, f = te.placeholder((h, w), name="X"), te.placeholder((taps, taps, 4), name="W")

    def padded(i: Any, j: Any) -> Any:
        return te.if_then_else(te.all(i >= pad, i < h + pad, j >= pad, j < w + pad), x[i - pad, j - pad], 0.0)

    p = te.compute((h + 2 * pad, w + 2 * pad), padded, name="P")
    r, t = te.reduce_axis((0, taps), name="r"), te.reduce_axis((0, taps), name="t")
    shape = ((h + 2 * pad - taps) // stride + 1, (w + 2 * pad - taps) // stride + 1, 4)
    c = te.compute(shape, lambda i, j, o: te.sum(p[i * stride + r, j * stride + t] * f[r, t, o], axis=[r, t]), name="C")
    s = create_schedule(c.op)
    s[p].compute_inline()
    cached = s.cache_write(c, "local")
    s[cached].skip_padding(assume_finite=True)
    i, j, o = s[c].op.axis
    jo, ji = _split(draw, s[c], j)
    s[c].reorder(i, jo, ji, o)
    s[cached].compute_at(s[c], jo)
    (_, cj, co), taps_loops = s[cached].op.axis, s[cached].op.reduce_axis
    s[cached].reorder(*draw(st.permutations([*taps_loops, cj])), co)
    if draw(st.booleans()):
        s[cached].vectorize(co)
    if draw(st.booleans()):
        s[c].parallel(i)
    for loop in draw(st.lists(st.sampled_from((i, jo)), max_size=2, unique=True)):
        s[c].pragma(loop, "loop_partition_hint", True)
    return s, [x, f, c]


@settings(max_examples=share_of(26), deadline=None, derandomize=True)
@given(borders(), st.integers(0, 3))
def test_12_borders_in_uneven_tiles(program: Program, native: int) -> None:
    s, args = program
    assert_schedule_correct(s, args, compiled=native == 0)


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(st.data())
def test_10_whole_local_tiles(data: st.DataObject) -> None:
    """Random programs under the pass that computes tiles whole where it can prove that no one can tell."""
    dag = data.draw(compute_dags(max_ops=3))
    schedule = data.draw(schedules(dag.outputs, max_steps=8))
    with PassContext(config={"tir.add_lower_pass": [(1, tir.transform.ReduceBranchingThroughOvercompute())]}):
        assert_schedule_correct(schedule, dag.tensors, phases=(1, 2), compiled=False)
