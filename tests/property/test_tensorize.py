"""Random intrinsics in place of random tiles of random programs: every phase computes what the definition says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.lower.phase0.views import ScheduleOps
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.schedule.legality import check_tree
from tensorexpr.schedule.steps import Tensorize
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.testing.strategies import compute_dags, schedules
from tests.effort import share_of
from tests.intrinsics import loop_intrin
from tests.region_intrinsics import innermost, made_to_measure

PARTS = ("body init update", "body update", "init update", "update")
Draw = st.DrawFn


def product(sizes: Sequence[int], flipped: bool, turned: bool, dtype: str) -> list[Tensor]:
    """A x B, the second operand perhaps transposed and the factors in either order."""
    m, n, length = sizes
    a, b = te.placeholder((m, length), dtype, name="A"), te.placeholder((n, length) if turned else (length, n), dtype, name="B")
    k = te.reduce_axis((0, length), name="k")

    def body(i: Any, j: Any) -> Any:
        factors = a[i, k], b[j, k] if turned else b[k, j]
        return te.sum(factors[1] * factors[0] if flipped else factors[0] * factors[1], axis=k)

    return [a, b, te.compute((m, n), body, name="C")]


@st.composite
def tensorized_products(draw: Draw) -> tuple[Schedule, list[Tensor]]:
    """A product whose tiles an intrinsic computes, with loops in random order around them and stages attached there."""
    tile = [draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((2, 4, 8))), draw(st.sampled_from((1, 2, 3, 6)))]
    counts = [draw(st.integers(1, 3)) for _ in tile]
    flipped, turned, dtype = draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from(("float32", "int32")))
    sizes = [t * c for t, c in zip(tile, counts, strict=True)]
    args = product(sizes, flipped, turned, dtype)
    described = product(tile, draw(st.booleans()), turned, dtype)[-1]
    intrin = loop_intrin(described, "product", draw(st.sampled_from(PARTS)))
    c = args[-1]
    s = create_schedule(c.op)
    target, outer = c, None
    if draw(st.booleans()):
        target = s.cache_write(c, "local")
        outer, _ = s[c].split(c.op.axis[0], factor=tile[0])
        s[target].compute_at(s[c], draw(st.sampled_from((outer, *s[c].leaf_iter_vars[:1]))))
    axes = (*s[target].op.axis, *s[target].op.reduce_axis)
    pairs = [s[target].split(axis, factor=size) for axis, size in zip(axes, tile, strict=True)]
    around = draw(st.permutations([pair[0] for pair in pairs]))
    s[target].reorder(*around, *(pair[1] for pair in pairs))
    if draw(st.booleans()):
        copy = s.cache_read(args[draw(st.integers(0, 1))], "local", target)
        s[copy].compute_at(s[target], draw(st.sampled_from(around)))
    s[target].tensorize(pairs[0][1], intrin)
    return s, args


@settings(deadline=None, derandomize=True, max_examples=share_of(25))
@given(tensorized_products())
def test_tiles_of_products(program: tuple[Schedule, list[Tensor]]) -> None:
    assert_schedule_correct(*program, phases=(0, 1, 3))


def stencil(shape: Sequence[int], taps: Sequence[tuple[int, int]]) -> list[Tensor]:
    """The sum of neighbours, each at its distance, times the first of them."""
    high = [max(tap[d] for tap in taps) for d in range(2)]
    x = te.placeholder(tuple(n + h for n, h in zip(shape, high, strict=True)), name="x")

    def body(i: Any, j: Any) -> Any:
        values = [x[i + di, j + dj] for di, dj in taps]
        total = values[0]
        for value in values[1:]:
            total = total + value
        return total * values[0]

    return [x, te.compute(tuple(shape), body, name="y")]


@settings(deadline=None, derandomize=True, max_examples=share_of(25))
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=3, unique=True),
    st.tuples(st.sampled_from((1, 2, 3)), st.sampled_from((2, 4))),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.booleans(),
)
def test_tiles_of_stencils(taps: list[tuple[int, int]], tile: tuple[int, int], counts: tuple[int, int], swapped: bool) -> None:
    low = [min(tap[d] for tap in taps) for d in range(2)]
    intrin_taps = [(di - low[0], dj - low[1]) for di, dj in taps]  # the intrinsic's input begins where it reads
    if not all(any(tap[d] == 0 for tap in intrin_taps) for d in range(2)):
        return
    shape = [t * c for t, c in zip(tile, counts, strict=True)]
    x, y = stencil(shape, taps)
    s = create_schedule(y.op)
    io, jo, ii, _ji = s[y].tile(y.op.axis[0], y.op.axis[1], *tile)
    if swapped:
        s[y].reorder(jo, io)
    s[y].tensorize(ii, loop_intrin(stencil(tile, intrin_taps)[-1], "stencil"))
    assert_schedule_correct(s, [x, y], phases=(0, 1, 3))


@settings(deadline=None, derandomize=True, max_examples=share_of(25))
@given(st.lists(st.integers(0, 3), min_size=2, max_size=4), st.lists(st.integers(0, 3), min_size=2, max_size=4))
def test_another_stencil_is_refused(ours: list[int], theirs: list[int]) -> None:
    """Two sums of neighbours match exactly if their distances are the same up to a shift, in order."""
    x, y = stencil([4, 8], [(0, tap) for tap in ours])
    low = min(theirs)
    described = stencil([1, 8], [(0, tap - low) for tap in theirs])[-1]
    intrin = loop_intrin(described, "stencil")
    s = create_schedule(y.op)
    s[y].tensorize(y.op.axis[1], intrin)
    shifts = {a - b for a, b in zip(ours, theirs, strict=False)}
    if len(ours) == len(theirs) and len(shifts) == 1:
        assert_schedule_correct(s, [x, y], phases=(0, 3), compiled=False)
        return
    try:
        lower(s, [x, y])
    except ScheduleError as error:
        assert "can't tensorize" in str(error)
        return
    assert_schedule_correct(s, [x, y], phases=(0, 3), compiled=False)  # sums in another order are the same sums
    assert sorted(tap - min(ours) for tap in ours) == sorted(tap - low for tap in theirs)


@pytest.mark.parametrize("factor", [3, 5, 7])
def test_tails_are_never_tensorized(factor: int) -> None:
    a, b, c = product((4, 16, 6), False, True, "float32")
    s = create_schedule(c.op)
    inner = s[c].split(c.op.axis[1], factor=factor)[1]
    s[c].tensorize(inner, loop_intrin(product((1, factor, 6), False, True, "float32")[-1], "product"))
    with pytest.raises(ScheduleError, match="guards the elements under it"):
        lower(s, [a, b, c])


def test_innermost_loops_of_random_schedules() -> None:
    """Whatever a schedule has done before, an intrinsic that is made for a loop takes its place and changes nothing."""
    tensorized = 0

    @settings(deadline=None, derandomize=True, max_examples=share_of(70))
    @given(st.data())
    def search(data: st.DataObject) -> None:
        nonlocal tensorized
        dag = data.draw(compute_dags())
        schedule = data.draw(schedules(dag.outputs))
        for number in range(len(schedule.tree.stages)):
            trial = with_innermost_tensorized(schedule, number)
            tensorized += trial is not None
            schedule = trial or schedule
        assert_schedule_correct(schedule, dag.tensors, phases=(0, 1, 3), compiled=False)

    search()
    assert tensorized > share_of(70) * 2 // 7


def with_innermost_tensorized(schedule: Schedule, number: int) -> Schedule | None:
    """The schedule with the innermost loop of a stage tensorized, if that is legal."""
    stage = schedule.tree[number]
    found = innermost(schedule.tree, stage)
    intrin = made_to_measure(stage, *found) if found is not None else None
    if intrin is None:
        return None
    trial = schedule.copy()
    try:
        trial.apply_step(Tensorize(number, stage.leaf[-1], intrin.name, intrin.digest))
        check_tree(trial.tree)
        ScheduleOps(trial)
    except ScheduleError:
        return None
    return trial
