"""One test per thing that transform_layout refuses, with what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir import Var


def program() -> tuple[Schedule, Tensor, Tensor, Tensor]:
    """A placeholder, a stage on it, its reader."""
    a = te.placeholder((6, 10), name="A")
    b = te.compute((6, 10), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((6, 10), lambda i, j: b[i, j] * 2.0, name="C")
    return create_schedule(c.op), a, b, c


def attached() -> None:
    """Something is computed at the loops of the stage."""
    a = te.placeholder((6,), name="A")
    b = te.compute((6,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((6,), lambda i: b[i] + 1.0, name="C")
    d = te.compute((6,), lambda i: c[i] + 1.0, name="D")
    s = create_schedule(d.op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[c].transform_layout(lambda i: [i // 2, i % 2])


def extern_reader() -> None:
    """A statement that was written for the layout reads the stage."""
    a = te.placeholder((6,), name="A")
    b = te.compute((6,), lambda i: a[i] + 1.0, name="B")
    c = te.extern((6,), [b], lambda ins, outs: tvm.tir.call_extern("int32", "work", ins[0].data, outs[0].data), name="C")
    s = create_schedule(c.op)
    s[b].transform_layout(lambda i: [i // 2, i % 2])


OUTSIDE = Var("outside", "int32")


def running_sum() -> tuple[Schedule, Tensor, Tensor]:
    """A scan whose step goes through a stage of its own; its step and its result."""
    a = te.placeholder((5, 8), name="A")
    state = te.placeholder((5, 8), name="state")
    init = te.compute((1, 8), lambda _, i: a[0, i], name="init")
    step = te.compute((5, 8), lambda t, i: state[t - 1, i] * 2.0, name="step")
    update = te.compute((5, 8), lambda t, i: step[t, i] + a[t, i], name="update")
    total = te.scan(init, update, state, inputs=[a], name="total")
    out = te.compute((5, 8), lambda t, i: total[t, i] + 1.0, name="out")
    return create_schedule(out.op), update, total


def scan_state() -> None:
    s, _, total = running_sum()
    s[total].transform_layout(lambda t, i: [i, t])


def scan_update() -> None:
    s, update, _ = running_sum()
    s[update].transform_layout(lambda t, i: [i, t])


def split_first(s: Schedule, b: Tensor) -> None:
    s[b].split(b.op.axis[0], factor=2)
    s[b].transform_layout(lambda i, j: [j, i])


def inlined(s: Schedule, b: Tensor) -> None:
    s[b].compute_inline()
    s[b].transform_layout(lambda i, j: [j, i])


REFUSED: dict[str, tuple[Callable[[Schedule, Tensor, Tensor, Tensor], object], str]] = {
    "padding of an input": (
        lambda s, a, b, c: s[a].transform_layout(lambda i, j: [j, i], 0),
        "In schedule for A: transform_layout of an input takes no pad_value; nothing reads its padding",
    ),
    "open padding of an output": (
        lambda s, a, b, c: s[c].transform_layout(lambda i, j: [j // 4, i, j % 4]),
        "In schedule for C: transform_layout: the layout (i, j) -> (j // 4, i, j % 4) of an output has places that no element maps to",
    ),
    "padding of an output by blocks": (
        lambda s, a, b, c: s[c].transform_layout(lambda i, j: [i // 8, j, i % 8]),
        "give pad_value, what they hold, or a layout that the elements fill",
    ),
    "scheduled": (lambda s, a, b, c: split_first(s, b), "In schedule for B: transform_layout comes before split, fuse"),
    "inlined": (lambda s, a, b, c: inlined(s, b), "In schedule for B: transform_layout needs loops, but the stage is inlined"),
    "holds a stage": (lambda *_: attached(), "In schedule for C: B is computed at its loops, which transform_layout replaces"),
    "extern": (lambda *_: extern_reader(), "In schedule for B: C, an extern or a scan, reads it in the layout it was declared with"),
    "scan": (lambda *_: scan_state(), "In schedule for total: a scan keeps its states in the layout they were declared with"),
    "update": (lambda *_: scan_update(), "transform_layout is not for what a step of total computes"),
    "rank": (
        lambda s, a, b, c: s[b].transform_layout(lambda i: [i]),
        "In schedule for B: transform_layout: the function of an index map takes 1 indices, but there are 2 dimensions",
    ),
    "no function": (lambda s, a, b, c: s[b].transform_layout([1, 0]), "transform_layout: an index map is made of a function"),  # type: ignore[arg-type]
    "float": (lambda s, a, b, c: s[b].transform_layout(lambda i, j: [i, j / 2.0]), "returns integer expressions of its indices"),
    "foreign": (lambda s, a, b, c: s[b].transform_layout(lambda i, j: [i, j + OUTSIDE]), "uses outside"),
    "unknown node": (lambda s, a, b, c: s[b].transform_layout(lambda i, j: [i, te.max(j, 0)]), "In schedule for B: transform_layout: "),
    "lost": (lambda s, a, b, c: s[b].transform_layout(lambda i, j: [i]), "can't be inverted: j isn't used"),
    "clash": (lambda s, a, b, c: s[b].transform_layout(lambda i, j: [i + j]), "each element needs a place of its own"),
    "negative": (lambda s, a, b, c: s[b].transform_layout(lambda i, j: [i - 1, j]), "which starts at -1; indices start at 0"),
    "padding type": (lambda s, a, b, c: s[b].transform_layout(lambda i, j: [j, i], "0"), "pads with a number, or with None"),  # type: ignore[arg-type]
    "padding bool": (lambda s, a, b, c: s[b].transform_layout(lambda i, j: [j, i], True), "not with True"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    s, a, b, c = program()
    request, message = REFUSED[name]
    with pytest.raises(ScheduleError) as caught:
        request(s, a, b, c)
    assert message in str(caught.value)
    assert all(step.code != "transform_layout" for step in s.trace)


def test_padding_that_is_no_value_of_the_dtype() -> None:
    a = te.placeholder((6,), "int8", name="A")
    b = te.compute((6,), lambda i: a[i], name="B")
    c = te.compute((6,), lambda i: b[i], name="C")
    s = create_schedule(c.op)
    for value in (0.5, 300, float("inf")):
        with pytest.raises(ScheduleError, match=f"In schedule for B: transform_layout pads with {value}: "):
            s[b].transform_layout(lambda i: [i // 4, i % 4], value)


@pytest.mark.parametrize("memory", ["storage_align", "store_predicate", "pragma"])
def test_what_spoke_of_the_old_axes(memory: str) -> None:
    s, _, b, _ = program()
    i, _ = b.op.axis
    if memory == "pragma":
        s[b].pragma(i, "auto_unroll_max_step", 8)
    elif memory == "storage_align":
        s[b].storage_align(i, 16, 0)
    else:
        s[b].set_store_predicate(i < 6)
    with pytest.raises(
        ScheduleError, match="replaces the axes that pragma, storage_align, prefetch, set_store_predicate or rolling_buffer"
    ):
        s[b].transform_layout(lambda i, j: [j, i])


@pytest.mark.parametrize(
    "step",
    [
        ["transform_layout", 1, [["axis", 1], ["axis", 0]]],
        ["transform_layout", 1, "swap", None],
        ["transform_layout", 1, [["axis", 1], "x"], None],
        ["transform_layout", 1, [["axis", 1], ["axis", 0]], "0"],
        ["transform_layout", 1, [["axis", 1], ["axis", 0]], True],
        ["transform_layout", 1, [["axis", 1], ["axis", 0]], float("inf")],
    ],
)
def test_json_that_is_no_layout(step: list[Any]) -> None:
    with pytest.raises(RecordError, match="step 'transform_layout'"):
        Trace.from_json([step])


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (["transform_layout", 9, [["axis", 0]], None], "the schedule has no stage 9"),
        (["transform_layout", 1, [["axis", 2], ["axis", 0]], None], "maps its 2 spatial axes, so there is no axis 2"),
        (["transform_layout", 1, [["axis", -1], ["axis", 0]], None], "so there is no axis -1"),
        (["transform_layout", 1, [["^", ["axis", 0], 1], ["axis", 1]], None], "transform_layout can't take"),
        (["transform_layout", 1, [["<", ["axis", 0], 1], ["axis", 1]], None], "an index is an integer"),
        (["transform_layout", 1, [["//", ["axis", 0], 0], ["axis", 1]], None], "In schedule for B: transform_layout: i // 0 has no value"),
        (["transform_layout", 1, [], None], "j isn't used|i isn't used"),
    ],
)
def test_json_that_fits_another_program(step: list[Any], message: str) -> None:
    s, *_ = program()
    with pytest.raises(ScheduleError, match=message) as caught:
        Schedule(s.outputs, Trace.from_json([step]))
    assert "step 0 (transform_layout)" in str(caught.value)
