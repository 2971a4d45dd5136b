"""Properties 17 and 18: placement and caching in any order, also under vectorised, unrolled and parallel loops, is right or refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import Schedule, create_schedule
from tensorexpr.schedule.legality import check_tree
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tests.effort import share_of
from tests.programs import chain, conv_relu, matmul_add, softmax

PROGRAMS = {
    "chain": lambda: chain(9),
    "matmul": lambda: matmul_add(5, 7, 3),
    "softmax": lambda: softmax(3, 5),
    "convolution": lambda: conv_relu(2, 4, 3),
}
ACTIONS = ("compute_at", "compute_at", "inline", "cache_read", "cache_write", "split", "root", "unroll", "vectorize", "parallel")


def act(draw: st.DrawFn, s: Schedule, action: str) -> None:
    """One primitive on a random stage. Raises ScheduleError where it is illegal."""
    stages = [stage for stage in s.tree.stages if action in ("cache_read", "compute_at") or not stage.is_placeholder]
    node = draw(st.sampled_from(stages))
    tensor = node.op.output(0)
    readers = [reader for reader in s.tree.consumers(node) if reader.leaf]
    stage = s[tensor]
    loops = [node.axes[axis] for axis in node.leaf]
    match action:
        case "compute_at" if readers and not node.is_placeholder:
            target = draw(st.sampled_from(readers))
            stage.compute_at(s[target.op.output(0)], target.axes[draw(st.sampled_from(target.leaf))])
        case "inline":
            stage.compute_inline()
        case "root":
            stage.compute_root()
        case "cache_read" if readers:
            s.cache_read(tensor, draw(st.sampled_from(("local", "global"))), [r.op for r in readers[: draw(st.integers(1, len(readers)))]])
        case "cache_write":
            s.cache_write(tensor, "local")
        case "split" if loops:
            stage.split(draw(st.sampled_from(loops)), factor=draw(st.sampled_from((2, 3, 4))))
        case "unroll" | "vectorize" | "parallel" if loops:
            getattr(stage, action)(draw(st.sampled_from(loops)))


@st.composite
def placed(draw: st.DrawFn) -> tuple[Schedule, list[Tensor]]:
    """A program after some primitives in random order; those that are refused are left out."""
    args = PROGRAMS[draw(st.sampled_from(sorted(PROGRAMS)))]()
    s = create_schedule(args[-1].op)
    for action in draw(st.lists(st.sampled_from(ACTIONS), min_size=3, max_size=14)):
        trial = s.copy()
        try:
            act(draw, trial, action)
            check_tree(trial.tree)
        except ScheduleError:
            continue
        s = trial
    return s, args


@settings(max_examples=share_of(40), deadline=None, derandomize=True)
@given(placed())
def test_17_what_is_read_is_computed_whatever_the_order(program: tuple[Schedule, Sequence[Tensor]]) -> None:
    s, args = program
    assert_schedule_correct(s, args, phases=(0, 1, 2))


def test_17_cached_writes_and_reads_of_a_stage_that_was_placed_before() -> None:
    a, d = chain(10)
    s = create_schedule(d.op)
    b, c = (stage.op.output(0) for stage in s.tree.stages if stage.name in "BC")
    outer, inner = s[d].split(d.op.axis[0], factor=3)
    s[c].compute_at(s[d], outer)
    s[b].compute_at(s[d], outer)
    read = s.cache_read(b, "local", [c.op, d.op])
    s[read].compute_at(s[d], outer)
    written = s.cache_write(c, "local")
    s[written].compute_at(s[c], s[c].op.axis[0])
    shared = s.cache_read(a, "local", [b.op])
    s[shared].compute_at(s[b], s[b].op.axis[0])
    s[b].unroll(s[b].op.axis[0])
    assert inner in s[d].op.axis or inner is not None
    assert_schedule_correct(s, [a, d])


KINDS = ("vectorize", "unroll", "parallel")


@pytest.mark.parametrize("factor", [4, 5])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reduces", [False, True])
def test_18_computed_under_a_loop_of_any_kind(kind: str, first: bool, inside: bool, factor: int, reduces: bool) -> None:
    """Inside a vectorised loop nothing else can be computed, and it doesn't matter which of the two is asked for first."""
    a = te.placeholder((9, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    b = te.compute((9,), lambda i: te.sum(a[i, k], axis=k) if reduces else a[i, 0] * 2.0, name="B")
    c = te.compute((9,), lambda i: b[i] + b[8 - i], name="C")
    s = create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=factor)
    loop = inner if inside else outer
    steps: list[Callable[[], object]] = [lambda: getattr(s[c], kind)(loop), lambda: s[b].compute_at(s[c], loop)]
    for step in steps if first else reversed(steps):
        step()
    if kind == "vectorize":
        with pytest.raises(ScheduleError, match=r"inside the vectorised loop .* of C; compute it at a loop further out, or inline it"):
            check_tree(s.tree)
    else:
        assert_schedule_correct(s, [a, c])


@pytest.mark.parametrize("outer_kind", KINDS)
@pytest.mark.parametrize("inner_kind", KINDS)
def test_18_kinds_of_the_attached_stage_under_kinds_of_its_reader(outer_kind: str, inner_kind: str) -> None:
    a = te.placeholder((6, 8), name="A")
    b = te.compute((6, 8), lambda i, j: a[i, 7 - j] + 1.0, name="B")
    c = te.compute((6, 8), lambda i, j: b[i, j] * b[5 - i, j], name="C")
    s = create_schedule(c.op)
    i, j = c.op.axis
    getattr(s[c], outer_kind)(i)
    s[b].compute_at(s[c], i)
    getattr(s[b], inner_kind)(b.op.axis[1])
    try:
        check_tree(s.tree)
    except ScheduleError as error:
        assert outer_kind == "vectorize" or (outer_kind, inner_kind) == ("parallel", "parallel"), error
        return
    assert j is not None
    assert_schedule_correct(s, [a, c])
