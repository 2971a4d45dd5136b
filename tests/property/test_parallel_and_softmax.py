"""Property 20: parallel loops never nest, outer loops are vectorised right or not at all, and softmax works over any axis."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te, topi
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.strategies import compute_dags, schedules
from tensorexpr.tir.rewriting import walk
from tensorexpr.tir.stmt import For, ForKind, Stmt
from tests.effort import share_of

AXES = [((7,), 0), ((7,), -1), ((1,), 0), ((5, 3), 0), ((5, 3), 1), ((3, 4, 2), 1), ((3, 1, 2), 1), ((1, 1), 0), ((4, 0), 0), ((3, 13), -1)]


@pytest.mark.parametrize("function", [topi.nn.softmax, topi.nn.log_softmax])
@pytest.mark.parametrize(("shape", "axis"), AXES)
def test_20_softmax_over_any_axis(function: object, shape: tuple[int, ...], axis: int) -> None:
    if function is topi.nn.log_softmax and axis not in (-1, len(shape) - 1):
        pytest.skip("log_softmax takes the last axis")
    x = te.placeholder(shape, name="X")
    y = function(x, axis=axis) if function is topi.nn.softmax else function(x)  # type: ignore[operator]
    assert_schedule_correct(create_schedule(y.op), [x, y])


@settings(max_examples=share_of(26), deadline=None, derandomize=True)
@given(st.sampled_from(AXES), st.data())
def test_20_softmax_in_any_schedule(case: tuple[tuple[int, ...], int], data: st.DataObject) -> None:
    shape, axis = case
    x = te.placeholder(shape, name="X")
    y = topi.nn.softmax(x, axis=axis)
    assert_schedule_correct(data.draw(schedules((y.op,), max_steps=10)), [x, y], phases=(0, 2))


def parallel_depth(stmt: Stmt) -> int:
    """How many parallel loops lie in one another at most."""
    inner = max((parallel_depth(s) for s in _nearest_loops(stmt)), default=0)
    return inner + (isinstance(stmt, For) and stmt.kind is ForKind.PARALLEL)


def _nearest_loops(stmt: Stmt) -> list[For]:
    loops = [node for node in walk(stmt) if isinstance(node, For) and node is not stmt]
    inside = {id(deep) for loop in loops for deep in walk(loop) if isinstance(deep, For) and deep is not loop}
    return [loop for loop in loops if id(loop) not in inside]


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(st.data())
def test_20_no_phase_has_nested_parallel_loops(data: st.DataObject) -> None:
    dag = data.draw(compute_dags(max_ops=4))
    schedule = data.draw(schedules(dag.outputs, max_steps=16))
    for phase in (0, 3):
        assert parallel_depth(lower(schedule, dag.tensors, upto=phase)["main"].body) <= 1


@pytest.mark.parametrize("at", [0, 1])
@pytest.mark.parametrize("inner_first", [False, True])
def test_20_nested_parallel_loops_are_refused_in_either_order(at: int, inner_first: bool) -> None:
    a = te.placeholder((6, 8), name="A")
    b = te.compute((6, 8), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((6, 8), lambda i, j: b[i, j] * 2.0, name="C")
    s = create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[at])
    order = [(b, b.op.axis[1]), (c, c.op.axis[0])]
    with pytest.raises(ScheduleError, match="parallel"):
        for tensor, axis in order if inner_first else reversed(order):
            s[tensor].parallel(axis)
        lower(s, [a, c])


def test_20_one_stage_has_one_parallel_loop() -> None:
    a = te.placeholder((6, 8), name="A")
    b = te.compute((6, 8), lambda i, j: a[i, j] + 1.0, name="B")
    s = create_schedule(b.op)
    s[b].parallel(b.op.axis[0])
    with pytest.raises(ScheduleError, match="'i' is the parallel loop already; fuse 'j' with it"):
        s[b].parallel(b.op.axis[1])


def nest(reduces: bool) -> tuple[Schedule, list[te.Tensor]]:
    a = te.placeholder((4, 6, 5), name="A")
    k = te.reduce_axis((0, 5), name="k")
    b = te.compute((4, 6), lambda i, j: te.sum(a[i, j, k], axis=k) if reduces else a[i, j, 1] - a[3 - i, 5 - j, 0], name="B")
    return create_schedule(b.op), [a, b]


@pytest.mark.parametrize(("which", "factor", "reduces"), list(product(range(3), (None, 3, 4), (False, True))))
def test_20_a_vectorised_loop_that_is_not_the_innermost(which: int, factor: int | None, reduces: bool) -> None:
    """Whatever stands inside of it runs for all lanes."""
    s, (a, b) = nest(reduces)
    loops = [*b.op.axis, *b.op.reduce_axis]
    if which >= len(loops):
        return
    axis = loops[which]
    part = axis if factor is None else s[b].split(axis, factor=factor)[1]
    if which == 2:
        s[b].reorder(part, b.op.axis[1])
    s[b].vectorize(part)
    assert_schedule_correct(s, [a, b])
