"""One test per thing that skip_padding refuses, with what it says."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.errors import RecordError, ScheduleError
from tensorexpr.schedule import Schedule, Trace, create_schedule
from tensorexpr.te.tensor import Tensor


def program(fill: float = 0.0) -> tuple[Schedule, Tensor, Tensor]:
    """A window of three over a padded row, weighted."""
    a, w = te.placeholder((10,), name="A"), te.placeholder((3,), name="W")
    p = te.compute((12,), lambda i: te.if_then_else(te.all(i >= 1, i < 11), a[i - 1], fill), name="P")
    r = te.reduce_axis((0, 3), name="r")
    b = te.compute((10,), lambda i: te.sum(p[i + r] * w[r], axis=r), name="B")
    return create_schedule(b.op), p, b


def refusal(s: Schedule, tensor: Tensor, assume_finite: bool = False) -> str:
    """What skip_padding says; the schedule is as it was."""
    before = str(s)
    with pytest.raises(ScheduleError) as caught:
        s[tensor].skip_padding(assume_finite)
    assert str(s) == before
    return str(caught.value)


def test_28_products_of_floats() -> None:
    s, p, b = program()
    s[p].compute_inline()
    assert refusal(s, b) == (
        "In schedule for B: skip_padding would leave out products of a padding zero with another factor, which are NaN where that factor "
        "is infinite or NaN; say skip_padding(assume_finite=True) if that can't be or doesn't matter, or put the condition around the "
        "whole term: te.sum(if_then_else(inside, x * w, 0), ...)"
    )


def test_padding_that_is_not_inlined() -> None:
    s, _, b = program()
    assert refusal(s, b, True) == (
        "In schedule for B: skip_padding finds no term, and no factor of a sum's terms, that a condition makes the combiner's identity "
        "T.float32(0.0); if it is the padding of P, inline that first, as in s[P].compute_inline()"
    )


def test_padding_by_another_value() -> None:
    s, p, b = program(fill=1.0)
    s[p].compute_inline()
    assert refusal(s, b, True).endswith("identity T.float32(0.0); pad with if_then_else(inside, value, identity), or leave the step out")


def test_a_factor_of_zero_is_no_identity_of_max() -> None:
    a = te.placeholder((10,), name="A")
    r = te.reduce_axis((0, 3), name="r")
    b = te.compute((8,), lambda i: te.max(te.if_then_else(r < 2, a[i + r], 0.0) * a[r], axis=r), name="B")
    assert "finds no term, and no factor of a sum's terms" in refusal(create_schedule(b.op), b, True)


def test_no_reduction() -> None:
    s, p, _ = program()
    assert refusal(s, p) == "In schedule for P: skip_padding takes a reduction of one value; the stage reduces nothing"


def test_an_inlined_stage() -> None:
    s, p, _ = program()
    s[p].compute_inline()
    assert "In schedule for P: skip_padding needs loops, but the stage is inlined" in refusal(s, p)


def test_several_values() -> None:
    a = te.placeholder((12,), name="A")
    k = te.reduce_axis((0, 12), name="k")
    both = te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] + y[1]), lambda p, q: (te.const(0, p), te.const(0, q)), name="both")
    b, _ = te.compute((1,), lambda i: both((a[k], a[k]), axis=k), name="B")
    assert "the stage reduces 2 values at once" in refusal(create_schedule(b.op), b)


def test_a_placeholder() -> None:
    s, _, b = program()
    assert "skip_padding: W is a placeholder and has no loops" in refusal(s, b.op.input_tensors[1])


@pytest.mark.parametrize("step", [["skip_padding", 1], ["skip_padding", 1, 1], ["skip_padding", 1, True, 0]])
def test_json_that_is_no_skip_padding(step: list[Any]) -> None:
    with pytest.raises(RecordError, match="step 'skip_padding'"):
        Trace.from_json([step])
