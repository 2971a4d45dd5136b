"""One test per thing that rfactor refuses, with what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.intrin import select


def program(reducer: Any = te.sum) -> tuple[Schedule, Tensor, Tensor]:
    """Row sums of a stage, and their elementwise consumer."""
    given = te.placeholder((8, 12), name="given")
    a = te.compute((8, 12), lambda i, j: given[i, j] + 1.0, name="A")
    k = te.reduce_axis((0, 12), name="k")
    b = te.compute((8,), lambda i: reducer(a[i, k], axis=k), name="B")
    out = te.compute((8,), lambda i: b[i] + 1.0, name="out")
    return create_schedule(out.op), b, out


def producer(tensor: Tensor) -> Tensor:
    """The one tensor that a stage reads."""
    return tensor.op.input_tensors[0]


def attached(s: Schedule, b: Tensor) -> None:
    """Compute what B reads at a loop of B."""
    s[producer(b)].compute_at(s[b], b.op.axis[0])


def both(first: Callable[[], object], second: Callable[[], object]) -> None:
    """One request after the other."""
    first()
    second()


REFUSED: dict[str, tuple[Callable[[Schedule, Tensor, Tensor], object], str]] = {
    "spatial": (lambda s, b, out: s.rfactor(b, b.op.axis[0]), "can't rfactor 'i': it is a spatial axis; reduction axes: k"),
    "no reduction": (lambda s, b, out: s.rfactor(out, out.op.axis[0]), "can't rfactor 'i': the stage reduces nothing"),
    "other stage": (lambda s, b, out: s.rfactor(out, b.op.reduce_axis[0]), "no axis 'k' to rfactor, it belongs to B; axes: i"),
    "no axis": (lambda s, b, out: s.rfactor(b, "k"), "rfactor takes an axis, not 'k'"),  # type: ignore[arg-type]
    "split": (
        lambda s, b, out: both(lambda: s[b].split(b.op.reduce_axis[0], factor=4), lambda: s.rfactor(b, b.op.reduce_axis[0])),
        "axis 'k' was split or fused, so it can't be given to rfactor; axes: i, k.outer, k.inner",
    ),
    "unrolled": (
        lambda s, b, out: both(lambda: s[b].unroll(b.op.reduce_axis[0]), lambda: s.rfactor(b, b.op.reduce_axis[0])),
        "axis 'k' is marked unroll already; rfactor it first, then mark the axis of the new stage",
    ),
    "pragma": (
        lambda s, b, out: both(
            lambda: s[b].pragma(b.op.reduce_axis[0], "unroll_explicit", True), lambda: s.rfactor(b, b.op.reduce_axis[0])
        ),
        "axis 'k' is marked unroll_explicit already",
    ),
    "holds a stage": (
        lambda s, b, out: both(lambda: attached(s, b), lambda: s.rfactor(b, b.op.reduce_axis[0])),
        "A is computed at its loops, which rfactor gives to a new stage; rfactor comes before compute_at",
    ),
    "place": (lambda s, b, out: s.rfactor(b, b.op.reduce_axis[0], 2), "factor_axis 2 is no place in a result of 2 axes; it takes -2 to 1"),
    "negative place": (lambda s, b, out: s.rfactor(b, b.op.reduce_axis[0], -3), "factor_axis -3 is no place"),
    "place of letters": (
        lambda s, b, out: s.rfactor(b, b.op.reduce_axis[0], "0"),  # type: ignore[arg-type]
        "rfactor takes factor_axis as an integer, not '0'",
    ),
    "placeholder": (
        lambda s, b, out: s.rfactor(producer(producer(b)), b.op.reduce_axis[0]),
        "no axis 'k' to rfactor, it belongs to B",
    ),
    "inlined": (
        lambda s, b, out: both(lambda: s[producer(b)].compute_inline(), lambda: s.rfactor(producer(b), producer(b).op.axis[0])),
        "In schedule for A: rfactor needs loops, but the stage is inlined",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    s, b, out = program()
    request, message = REFUSED[name]
    with pytest.raises(ScheduleError) as caught:
        request(s, b, out)
    assert message in str(caught.value)
    assert all(step.code != "rfactor" for step in s.trace)


@pytest.mark.parametrize(
    ("combine", "identity", "law"),
    [
        (lambda x, y: x - y, 0, "it is not commutative"),
        (lambda x, y: y, 0, "it is not commutative"),
        (lambda x, y: (x + y) / 2, 0, "it is not associative"),
        (lambda x, y: x + 1, 0, "it is not associative"),
        (lambda x, y: te.abs(x) + te.abs(y) + x * x * y * y, 0, "it is not associative"),
        (lambda x, y: x + y * y, 0, "it is not commutative"),
        (lambda x, y: x + y, 1, "combining its identity with itself gives something else"),
        (lambda x, y: select(x.equal(0.0), 2.0 * y, x + y), 0, "its identity element changes what it is combined with"),
        (lambda x, y: select(x.equal(0.0), te.abs(y), x + y), 0, "it takes a value and a combination of one value differently"),
    ],
)
def test_15_combiners_that_must_not_be_regrouped(combine: Any, identity: int, law: str) -> None:
    s, b, _ = program(te.comm_reducer(combine, lambda dtype: te.const(identity, dtype), name="odd"))
    with pytest.raises(ScheduleError, match="can't rfactor a reduction whose combiner can't be regrouped") as caught:
        s.rfactor(b, b.op.reduce_axis[0])
    assert law in str(caught.value)
    assert "for the values" in str(caught.value)


def test_15_an_identity_that_an_init_would_not_hide() -> None:
    """max(0, ...) in parts is no max(0, max(5, ...)); without an init both start at 5."""
    from_5 = te.comm_reducer(te.max, lambda dtype: te.const(5, dtype), name="from_5")
    s, b, _ = program(lambda value, axis: from_5(value, axis=axis, init=0.0))
    with pytest.raises(ScheduleError, match="it starts at an init, but its identity element changes values"):
        s.rfactor(b, b.op.reduce_axis[0])
    s, b, _ = program(from_5)
    s.rfactor(b, b.op.reduce_axis[0])


def test_15_tuple_combiners_that_must_not_be_regrouped() -> None:
    a = te.placeholder((12,), name="A")
    k = te.reduce_axis((0, 12), name="k")
    mixed = te.comm_reducer(lambda x, y: (x[0] + y[0], x[0] - y[1]), lambda p, q: (te.const(0, p), te.const(0, q)), name="mixed")
    b, _ = te.compute((), lambda: mixed((a[k], a[k]), axis=k), name="B")
    s = create_schedule(b.op)
    with pytest.raises(ScheduleError, match=r"for the values \(.*, .*\) and"):
        s.rfactor(b, k)


@pytest.mark.parametrize("step", [["rfactor", 2, 1], ["rfactor", 2, 1, "0"], ["rfactor", 2, True, 0], ["rfactor", 2, 1, 0, 0]])
def test_json_that_is_no_rfactor(step: list[Any]) -> None:
    with pytest.raises(RecordError, match="step 'rfactor'"):
        Trace.from_json([step])


@pytest.mark.parametrize(("stage", "axis"), [(9, 0), (2, 7), (0, 0)])
def test_json_that_fits_another_program(stage: int, axis: int) -> None:
    s, _, _ = program()
    with pytest.raises(ScheduleError, match=r"step 0 \(rfactor\)"):
        Schedule(s.outputs, Trace.from_json([["rfactor", stage, axis, 0]]))
