"""Property 16: one reduce_axis object in two stages gives what two objects give, or an error that says what to do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tests.effort import share_of

N, K = 6, 5
PLACES = st.sampled_from(("root", "row", "part"))


def siblings() -> tuple[Schedule, list[Tensor], list[Tensor]]:
    """Two reductions of the same rows over one axis, and their sum."""
    a = te.placeholder((N, K), name="A")
    k = te.reduce_axis((0, K), name="k")
    b = te.compute((N,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((N,), lambda i: te.max(a[i, k], axis=k), name="C")
    d = te.compute((N,), lambda i: b[i] - c[i], name="D")
    return create_schedule(d.op), [a, d], [b, c]


@settings(max_examples=share_of(30), deadline=None, derandomize=True)
@given(st.tuples(PLACES, PLACES), st.tuples(st.integers(1, 6), st.integers(1, 6)), st.booleans())
def test_16_two_stages_side_by_side(places: tuple[str, str], factors: tuple[int, int], factored: bool) -> None:
    s, (a, d), stages = siblings()
    outer, inner = s[d].split(d.op.axis[0], factor=4)
    for stage, place, factor in zip(stages, places, factors, strict=True):
        (k,) = s[stage].op.reduce_axis
        parts = s[stage].split(k, factor=factor)
        s[stage].reorder(*parts, stage.op.axis[0])
        if place != "root":
            s[stage].compute_at(s[d], inner if place == "row" else outer)
        elif factored:
            s.rfactor(stage, parts[1])
    assert_schedule_correct(s, [a, d], phases=(0, 2))


def nested() -> tuple[Schedule, list[Tensor], Tensor]:
    """A reduction over the results of another one, with one axis for both."""
    a = te.placeholder((N, K), name="A")
    k = te.reduce_axis((0, K), name="k")
    b = te.compute((K, N), lambda i, j: te.sum(a[j, k] * a[i, k], axis=k), name="B")
    c = te.compute((N,), lambda j: te.sum(b[k, j], axis=k), name="C")
    return create_schedule(c.op), [a, c], b


@pytest.mark.parametrize("split_outer", [False, True])
@pytest.mark.parametrize("split_inner", [False, True])
@pytest.mark.parametrize("at_reduction", [False, True])
def test_16_one_stage_inside_the_other(split_outer: bool, split_inner: bool, at_reduction: bool) -> None:
    """Split loops have variables of their own, so only a loop over the axis itself inside another one is refused."""
    s, (a, c), b = nested()
    (k,) = c.op.reduce_axis
    loop = s[c].split(k, factor=2)[1] if split_outer else k
    if split_inner:
        s[b].split(k, factor=3)
    s[b].compute_at(s[c], loop if at_reduction else c.op.axis[0])
    if at_reduction and not split_outer and not split_inner:
        with pytest.raises(ScheduleError, match="the same reduce_axis 'k' as C, inside that loop; declare a reduce_axis for each"):
            lower(s, [a, c])
    else:
        assert_schedule_correct(s, [a, c])


def test_16_stages_that_caching_makes() -> None:
    """cache_write moves the reduction, so both stages know its axis."""
    s, (a, c), b = nested()
    cached = s.cache_write(c, "local")
    s[cached].compute_at(s[c], s[c].split(c.op.axis[0], factor=4)[0])
    (k,) = s[cached].op.reduce_axis
    s[b].compute_at(s[cached], s[cached].split(k, factor=2)[0])
    assert_schedule_correct(s, [a, c])


def test_16_one_axis_twice_in_one_reduction() -> None:
    """The diagonal: one axis in two indices is one loop."""
    a = te.placeholder((K, K), name="A")
    k = te.reduce_axis((0, K), name="k")
    b = te.compute((), lambda: te.sum(a[k, k], axis=k), name="B")
    s = create_schedule(b.op)
    s[b].split(k, factor=2)
    assert_schedule_correct(s, [a, b])
