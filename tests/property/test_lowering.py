"""Properties 10 to 14 and 24: schedules keep the meaning of a program through every phase and in machine code."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.schedule import create_schedule
from tensorexpr.te.reducer import Reducer
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.strategies import compute_dags, schedules
from tensorexpr.testing.strategies.dags import LAYERS
from tests.effort import share_of

FEW = settings(max_examples=share_of(25), deadline=None, derandomize=True)
SOME = settings(max_examples=share_of(60), deadline=None, derandomize=True)
EXTENTS = st.sampled_from([1, 2, 3, 5, 7, 8, 13, 16, 17])
FACTORS = st.sampled_from([1, 2, 3, 4, 5, 8, 16, 32])


def matmul(n: int, m: int, k: int) -> list[Tensor]:
    """C = A @ B."""
    a = te.placeholder((n, k), name="A")
    b = te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]


@SOME
@given(st.data())
def test_10_every_phase_and_the_machine_code_agree_with_the_definition(data: st.DataObject) -> None:
    dag = data.draw(compute_dags(layers=tuple(LAYERS)))
    assert_schedule_correct(data.draw(schedules(dag.outputs, max_steps=20)), dag.tensors)


@FEW
@given(
    extent=EXTENTS,
    factors=st.lists(FACTORS, min_size=1, max_size=3),
    by_nparts=st.booleans(),
    kind=st.sampled_from(["serial", "vectorize", "unroll", "parallel"]),
)
@example(extent=7, factors=[32], by_nparts=False, kind="vectorize")
@example(extent=1, factors=[1, 1], by_nparts=True, kind="unroll")
@example(extent=17, factors=[4, 3], by_nparts=False, kind="serial")
def test_11_splits_that_do_not_divide(extent: int, factors: list[int], by_nparts: bool, kind: str) -> None:
    a = te.placeholder((extent,), name="A")
    b = te.compute((extent,), lambda i: a[i] * 2.0 + 1.0, name="B")
    s = create_schedule(b.op)
    axis = b.op.axis[0]
    for factor in factors:
        outer, inner = s[b].split(axis, nparts=factor) if by_nparts else s[b].split(axis, factor=factor)
        axis = inner if by_nparts else outer
    if kind != "serial":
        getattr(s[b], kind)(inner)
    assert_schedule_correct(s, [a, b])


@SOME
@given(extent=EXTENTS, splits=st.lists(st.tuples(st.integers(0, 3), FACTORS), min_size=1, max_size=4), fused=st.booleans(), last=FACTORS)
@example(extent=12, splits=[(0, 4), (1, 3)], fused=False, last=1)
@example(extent=12, splits=[(0, 5)], fused=True, last=4)
@example(extent=13, splits=[(0, 4), (0, 2), (2, 3)], fused=True, last=5)
def test_11_splits_of_splits_and_of_fused_loops_visit_every_point_once(
    extent: int, splits: list[tuple[int, int]], fused: bool, last: int
) -> None:
    """A point that is visited twice counts twice in a sum."""
    a = te.placeholder((extent,), "int32", name="A")
    k = te.reduce_axis((0, extent), name="k")
    b = te.compute((), lambda: te.sum(a[k], axis=k), name="B")
    s = create_schedule(b.op)
    loops = [k]
    for which, factor in splits:
        place = which % len(loops)
        loops[place : place + 1] = s[b].split(loops[place], factor=factor)
    if fused and len(loops) > 1:
        loops[-2:] = [s[b].fuse(loops[-2], loops[-1])]
        s[b].split(loops[-1], factor=last)
    assert_schedule_correct(s, [a, b])


@FEW
@given(extent=EXTENTS, outer=FACTORS, inner=FACTORS)
@example(extent=17, outer=4, inner=3)
def test_12_two_splits_that_do_not_divide_meet_in_a_compute_at(extent: int, outer: int, inner: int) -> None:
    a = te.placeholder((extent + 2,), name="A")
    b = te.compute((extent + 2,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((extent,), lambda i: b[i] - b[i + 2], name="C")
    s = create_schedule(c.op)
    io, ii = s[c].split(c.op.axis[0], factor=outer)
    s[b].split(b.op.axis[0], factor=inner)
    s[b].compute_at(s[c], io)
    assert ii is not None
    assert_schedule_correct(s, [a, c])


@FEW
@given(n=EXTENTS, m=EXTENTS, k=EXTENTS, fi=FACTORS, fj=FACTORS, fk=FACTORS, order=st.permutations(range(6)))
@example(n=7, m=13, k=5, fi=4, fj=8, fk=3, order=[5, 4, 3, 2, 1, 0])
def test_13_and_14_init_is_guarded_and_in_place_for_any_order_of_loops(
    n: int, m: int, k: int, fi: int, fj: int, fk: int, order: list[int]
) -> None:
    args = matmul(n, m, k)
    c = args[-1]
    s = create_schedule(c.op)
    (i, j), (r,) = s[c].op.axis, s[c].op.reduce_axis
    loops = [*s[c].split(i, factor=fi), *s[c].split(j, factor=fj), *s[c].split(r, factor=fk)]
    s[c].reorder(*(loops[number] for number in order))
    assert_schedule_correct(s, args)


@pytest.mark.parametrize("reducer", [te.sum, te.max, te.min])
@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "float64"])
def test_13_the_initial_value_is_the_identity_of_the_combiner(reducer: Reducer, dtype: str) -> None:
    a = te.placeholder((3, 5), dtype, name="A")
    k = te.reduce_axis((0, 5), name="k")
    b = te.compute((3,), lambda i: reducer(a[i, k], axis=k), name="B")
    assert_schedule_correct(create_schedule(b.op), [a, b])


@pytest.mark.parametrize("shifts", [(0, 2), (2, 0), (1, 3, 0), (3, 0, 1)])
@pytest.mark.parametrize("factor", [3, 4, 16])
def test_12_the_box_of_an_attached_stage_holds_every_read_in_whatever_order(shifts: tuple[int, ...], factor: int) -> None:
    a = te.placeholder((13,), name="A")
    b = te.compute((13,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((10,), lambda i: sum((b[i + shift] for shift in shifts), te.const(0.0, "float32")), name="C")
    s = create_schedule(c.op)
    s[b].compute_at(s[c], s[c].split(c.op.axis[0], factor=factor)[0])
    assert_schedule_correct(s, [a, c])


@pytest.mark.parametrize("factor", [3, 4, 16])
def test_12_a_box_that_reaches_past_a_border_is_cut_there(factor: int) -> None:
    a = te.placeholder((10,), name="A")
    b = te.compute((10,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((10,), lambda i: te.if_then_else(i >= 2, b[i - 2], 0.0) + te.if_then_else(i < 8, b[i + 2], 0.0), name="C")
    s = create_schedule(c.op)
    s[b].compute_at(s[c], s[c].split(c.op.axis[0], factor=factor)[0])
    assert_schedule_correct(s, [a, c])


def test_12_an_attached_stage_computes_whole_rows_of_symbolic_length() -> None:
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((n, m), lambda i, j: b[i, m - 1 - j] * 2.0, name="C")
    s = create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    assert_schedule_correct(s, [a, c], sizes=[{n: 3, m: 5}, {n: 1, m: 1}])


@pytest.mark.parametrize("reducer", [te.sum, te.max])
def test_13_a_reduction_takes_only_what_its_condition_admits(reducer: Reducer) -> None:
    a = te.placeholder((5, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    b = te.compute((5,), lambda i: reducer(a[i, k], axis=k, where=k <= i), name="B")
    s = create_schedule(b.op)
    s[b].split(k, factor=4)
    assert_schedule_correct(s, [a, b])


@FEW
@given(shape=st.sampled_from([(), (1,), (1, 1), (3,)]), rank0_first=st.booleans())
def test_24_rank_zero_everywhere(shape: tuple[int, ...], rank0_first: bool) -> None:
    a = te.placeholder(shape, name="A")
    scalar = te.placeholder((), name="scalar")
    b = te.compute(shape, lambda *i: (scalar() * a(*i) if rank0_first else a(*i) * scalar()) + 1.0, name="B")
    axes = [te.reduce_axis((0, extent), name=f"k{n}") for n, extent in enumerate(shape)]
    total = te.compute((), lambda: te.sum(b(*axes), axis=axes) if axes else b() + 2.0, name="total")
    s = create_schedule(total.op)
    assert_schedule_correct(s, [a, scalar, total])
