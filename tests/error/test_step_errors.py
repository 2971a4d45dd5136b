"""What steps refuse that come from traces, samples and caches: one test for each message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tensorexpr import te, tir
from tensorexpr.errors import DeclarationError, RecordError, ScheduleError
from tensorexpr.lower.pipeline import lower
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.te.extern import verify_extern
from tensorexpr.te.serialize import dag_from_json, dag_to_json
from tensorexpr.te.tensor import Tensor
from tests.programs import matmul_add

# The stages of `matmul_add`: 0 A, 1 B, 2 C (in the order of the computation), the product and the sum.
Steps = list[list[Any]]


def stage(schedule: Schedule, name: str) -> int:
    return next(node.id for node in schedule.tree.stages if node.name == name)


def replayed(steps: Callable[[int, int], Steps]) -> None:
    """A trace on `matmul_add`, from JSON; it is given the numbers of the product and the sum."""
    s = create_schedule(matmul_add(8, 6, 4)[-1].op)
    Schedule(s.outputs, Trace.from_json(steps(stage(s, "matmul"), stage(s, "out"))))


TRACES: dict[str, tuple[Callable[[int, int], Steps], str]] = {
    "a factor that no schedule has": (lambda m, o: [["split", o, 0, [None, 0]]], "split of 'i' by 0; a factor is an integer of at least 1"),
    "a sample that wasn't taken": (lambda m, o: [["split", o, 0, [None, [0, 0]]]], r"no sample \(0, 0\); 0 samples were taken before"),
    "one axis to fuse": (lambda m, o: [["fuse", o, [0]]], "fuse takes none or at least two axes, got i"),
    "a cache of no stage": (lambda m, o: [["cache_read", 99, "local", [o]]], "cache_read: the schedule has no stage 99"),
    "an output to prefetch": (
        lambda m, o: [["prefetch", o, m, 1, 0, 2]],
        r"prefetch of output 1 of stage \d+, which the schedule hasn't",
    ),
    "a part of a split to tile": (
        lambda m, o: [["split", o, 0, [None, 2]], ["sample_perfect_tile", o, 2, 2, 4, None]],
        "sample_perfect_tile needs a root axis of constant extent, not 'i.outer'",
    ),
    "one part": (lambda m, o: [["sample_perfect_tile", o, 0, 1, 4, None]], "sample_perfect_tile makes at least 2 parts, not 1"),
    "parts that don't multiply": (
        lambda m, o: [["sample_perfect_tile", o, 0, 2, 4, [3, 2]]],
        r"\[3, 2\] is no tiling of 8 in 2 parts; their product must be 8",
    ),
    "an innermost part": (lambda m, o: [["sample_perfect_tile", o, 0, 2, 2, [2, 4]]], "the innermost tile 4 is above the limit of 2"),
    "nothing to choose from": (lambda m, o: [["sample_categorical", [], None]], "sample_categorical needs at least one candidate"),
    "a choice that isn't there": (lambda m, o: [["sample_categorical", [1, 2], 2]], "sample_categorical: decision 2 of 2 candidates"),
    "a tile of a part": (
        lambda m, o: [["split", o, 0, [None, 2]], ["sample_tile", o, 2, [1], None]],
        "sample_tile needs a root axis of constant extent, not 'i.outer'",
    ),
    "sizes in disorder": (
        lambda m, o: [["sample_tile", o, 0, [4, 2], None]],
        r"sample_tile of 'i' takes ascending sizes from 1 to 8, not \[4, 2\]",
    ),
    "a size that isn't there": (lambda m, o: [["sample_tile", o, 0, [1, 2], 3]], "3 is no tile of 'i'; sizes: 1, 2"),
}


@pytest.mark.parametrize("name", TRACES)
def test_traces(name: str) -> None:
    steps, message = TRACES[name]
    with pytest.raises(ScheduleError, match=message):
        replayed(steps)


def pair() -> tuple[Schedule, Tensor, Tensor]:
    """A stage with two outputs, and one that reads the first."""
    a = te.placeholder((4,), name="A")
    b, _ = te.compute((4,), lambda i: (a[i] + 1.0, a[i] * 2.0), name="B")
    c = te.compute((4,), lambda i: b[i] - 1.0, name="C")
    return create_schedule(c.op), b, c


def chained() -> tuple[Schedule, Tensor, Tensor]:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((4,), lambda i: b[i] - 1.0, name="C")
    return create_schedule(c.op), b, c


def fused_after_marking() -> None:
    s = create_schedule(matmul_add()[-1].op)
    out = s.outputs[0].output(0)
    s[out].vectorize(s[out].op.axis[1])
    s[out].fuse(*s[out].op.axis)


def two_branches() -> tuple[Schedule, Tensor, Tensor]:
    """Two stages that only their reader joins."""
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((4,), lambda i: a[i] - 1.0, name="C")
    return create_schedule(te.compute((4,), lambda i: b[i] * c[i], name="D").op), b, c


def computed_at_a_stage_before() -> None:
    s, b, c = two_branches()
    first, second = sorted((b, c), key=lambda t: s.tree.order.index(s[t].id))
    s[second].compute_at(s[first], first.op.axis[0])


def inlined_with_a_stage_inside() -> None:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((4,), lambda i: b[i] - 1.0, name="C")
    s = create_schedule(te.compute((4,), lambda i: c[i] * 2.0, name="D").op)
    s[b].compute_at(s[c], c.op.axis[0])
    s[c].compute_inline()


def predicated_by_text() -> None:
    s, _, c = chained()
    s[c].set_store_predicate(object())


def loops_beyond_int32() -> None:
    a = te.placeholder((1 << 17, 1 << 17), "int8", name="A")
    b = te.compute(a.shape, lambda i, j: a[i, j], name="B")
    s = create_schedule(b.op)
    s[b].fuse(*b.op.axis)
    lower(s, [a, b])


def cached_pair(write: bool) -> None:
    s, b, c = pair()
    if write:
        s.cache_write(b, "local")
    else:
        s.cache_read(b, "local", [c.op])


REFUSED: dict[str, tuple[Callable[[], None], str]] = {
    "cache_write of two outputs": (lambda: cached_pair(True), "cache_write takes all results of one stage"),
    "cache_read of one of two outputs": (lambda: cached_pair(False), "cache_read takes a stage with one output"),
    "fuse of a marked axis": (fused_after_marking, "j is marked already; fuse first, then mark the fused axis"),
    "compute_at a stage that comes before": (computed_at_a_stage_before, "is not computed from .* is read by D"),
    "compute_inline of a stage that holds others": (inlined_with_a_stage_inside, "B is computed at its loops, so it can't be inlined"),
    "a predicate that is no expression": (predicated_by_text, "set_store_predicate takes a condition over op.axis, not <object"),
    "loops beyond int32": (loops_beyond_int32, "loops over 'i.j.fused' would count to 17179869184, beyond int32's 2147483647"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_schedules(name: str) -> None:
    request, message = REFUSED[name]
    with pytest.raises(ScheduleError, match=message):
        request()


def test_an_intrinsic_over_an_axis_that_starts_late() -> None:
    a = te.placeholder((6,), name="A")
    k = te.reduce_axis((2, 4), name="k")
    b = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="B")
    with pytest.raises(DeclarationError, match=r"the reduction axis k runs over .*; let it start at 0"):
        te.decl_tensor_intrin(b.op, lambda ins, outs: tir.Evaluate(tir.const(0)))


def test_an_extern_without_outputs() -> None:
    """`te.extern` can't make one; a program that builds the operation itself can."""
    a = te.placeholder((4,), name="A")
    made = te.extern((4,), [a], lambda ins, outs: tir.BufferStore(outs[0], ins[0][0], (tir.const(0),)), name="none").op
    with pytest.raises(DeclarationError, match="extern none: it has no output; give at least one shape"):
        verify_extern(replace(made, output_placeholders=(), statement=tir.Evaluate(tir.const(0))))


def test_a_record_whose_body_is_a_vector() -> None:
    a = te.placeholder((4,), name="A")
    data = dag_to_json([a, te.compute((4,), lambda i: a[i] + 1.0, name="B")])
    compute = data["ops"][-1]
    compute["rows"].append(["Broadcast", compute["body"][0], 4])
    compute["body"] = [len(compute["rows"]) - 1]
    with pytest.raises(RecordError, match="a body is float32x4; elements are scalars"):
        dag_from_json(data)
