"""Reductions of which one term is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import create_schedule
from tensorexpr.schedule.steps.pick import only_term
from tensorexpr.spaces.default import default_schedule
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct

N, K, M = 7, 5, 11
at, wide = te.placeholder((N,), "int32", "at"), te.placeholder((N,), "int64", "wide")
live, X, Y = te.placeholder((K,), "int32", "live"), te.placeholder((K, M), name="X"), te.placeholder((N, K), name="Y")


def summed(term: Callable[[Any, Any, Any], Any], where: Callable[[Any, Any], Any] | None = None, first: int = 0) -> Tensor:
    k = te.reduce_axis((first, K), name="k")
    made: Tensor = te.compute((N, M), lambda i, j: te.sum(term(i, j, k), axis=k, where=None if where is None else where(i, k)), name="C")
    return made


def farthest(i: Any, j: Any, k: Any) -> Any:
    return tir.Select(wide[i] - 1 == k, live[k] * (i + j), te.min_value("int32"))


def double(i: Any, j: Any) -> Any:
    k, r = te.reduce_axis((0, K), "k"), te.reduce_axis((0, K), "r")
    return te.sum(te.if_then_else(te.all(r == k, k + 2 == j), X[r, j] * Y[i, k], 0.0), axis=[k, r])


k0 = te.reduce_axis((0, K), name="k")
PICKED = {
    "gather": summed(lambda i, j, k: te.if_then_else(k == at[i], X[k, j], 0.0)),
    "of part of the axis": summed(lambda i, j, k: te.if_then_else(at[i] + 1 == k, X[k, j], 0.0), first=2),
    "largest": te.compute((N, M), lambda i, j: te.max(X[k0, j], axis=k0, where=k0 == wide[i]), name="C"),
    "largest integer": te.compute((N, M), lambda i, j: te.max(farthest(i, j, k0), axis=k0), name="C"),
    "where": summed(lambda i, j, k: X[k, j], lambda i, k: te.all(live[k] > 0, 1 - k == i - 3)),
    "guarded": summed(lambda i, j, k: te.if_then_else(te.all(i < 5, k == at[i], live[k] > 0), X[k, j] * Y[i, k], 0.0)),
    "two axes": te.compute((N, M), double, name="C"),
}


def values(s: Any, tensors: list[Tensor]) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((K, M)).astype("float32")
    x[1], x[2, 3], x[3, 4] = np.nan, np.inf, -0.0
    given = {
        at: rng.integers(-3, K + 3, N).astype("int32"),
        wide: np.array([1, 2, 3, 1 << 33, -(1 << 40), 5, 0]),
        live: rng.integers(0, 2, K).astype("int32"),
        X: x,
        Y: rng.standard_normal((N, K)).astype("float32"),
    }
    out = np.full((N, M), 7, s.outputs[0].output_dtype(0))
    tvm.build(s, [*tensors, s.outputs[0].output(0)], "llvm")(*(given[tensor] for tensor in tensors), out)
    return out


@pytest.mark.parametrize("name", PICKED)
def test_the_same_bits_without_the_reduction(name: str) -> None:
    """A gather written as a sum over 4096 rows took 8 times as long as PyTorch's; other rows may be NaN and indices out of range."""
    c = PICKED[name]
    s = default_schedule([c], "llvm")
    assert not s.tree[s[c].id].compute.reduce_axis and "s.pick(C)" in s.as_python()
    inputs = list(c.op.input_tensors)
    np.testing.assert_array_equal(values(s, inputs).view("int32"), values(create_schedule(c.op), inputs).view("int32"))
    assert_schedule_correct(s, [*inputs, c], phases=(0, 3), compiled=False)  # which tells reads outside of tensors
    again = create_schedule(c.op)
    for step in type(s.trace).from_json(s.trace.to_json()):
        again.apply_step(step)
    assert str(again) == str(s)


def test_what_is_asked_before_the_place_stays_there() -> None:
    term = only_term(PICKED["guarded"].op)
    assert term is not None
    assert [str(one) for one in term.conditions] == ["i < 5", "0 <= at[i]", "at[i] < 5", "live[k] > 0"]


LEFT = {
    "every second": lambda i, j, k: te.if_then_else(k * 2 == at[i], X[k, j], 0.0),
    "many": lambda i, j, k: te.if_then_else(k <= at[i], X[k, j], 0.0),
    "one of two": lambda i, j, k: te.if_then_else(te.any(k == at[i], k == 0), X[k, j], 0.0),
    "all others": lambda i, j, k: te.if_then_else(k == at[i], 0.0, X[k, j]),
    "something else": lambda i, j, k: te.if_then_else(k == at[i], X[k, j], 1.0),
    "place by the axis": lambda i, j, k: te.if_then_else(k == live[k], X[k, j], 0.0),
    "floats": lambda i, j, k: te.if_then_else(k.astype("float32") == Y[i, 0], X[k, j], 0.0),
    "times one": lambda i, j, k: te.if_then_else(k == at[i], 1.0, 0.0) * X[k, j],
    "place behind a condition on the axis": lambda i, j, k: te.if_then_else(te.all(live[k] > 0, k == at[i]), X[k, j], 0.0),
}


def test_an_extremum_of_floats_is_left() -> None:
    """What follows NaN in a loop of `te.max` takes its place, even where it is the least number."""
    c = te.compute((N, M), lambda i, j: te.max(te.if_then_else(k0 == at[i], X[k0, j], te.min_value("float32")), axis=k0), name="C")
    assert only_term(c.op) is None


@pytest.mark.parametrize("name", LEFT)
def test_what_may_have_several_terms_is_left(name: str) -> None:
    """A product with 1 or 0 isn't a choice: 0 * inf is NaN."""
    c = summed(LEFT[name])
    assert only_term(c.op) is None
    with pytest.raises(ScheduleError, match=r"pick, which takes a reduction with one term: te.sum\(te.if_then_else\(k == at\[i\]"):
        create_schedule(c.op).pick(c)
