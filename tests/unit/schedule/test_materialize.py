"""Parts of definitions that are stages of their own."""

from __future__ import annotations

import pytest

from tensorexpr import te, tir
from tensorexpr.errors import ScheduleError
from tensorexpr.schedule import create_schedule
from tensorexpr.schedule.steps.materialize import parts_of
from tensorexpr.schedule.tree import Inline
from tensorexpr.spaces.default import default_schedule
from tensorexpr.spaces.explain import explain_default
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.arithmetic import as_int

A, B, D = te.placeholder((6, 9), name="A"), te.placeholder((9, 7), name="B"), te.placeholder((9,), name="D")


def scaled(first: int = 0) -> Tensor:
    k = te.reduce_axis((first, 9), name="k")
    return te.compute((6, 7), lambda i, j: te.sum(A[i, k] * D[k] * B[k, j], axis=k), name="C")


def texts(c: Tensor) -> list[str]:
    return [str(part) for part in parts_of(c.op)]


def test_parts_are_all_that_is_computed_of_elements() -> None:
    assert texts(scaled()) == ["A[i, k] * D[k] * B[k, j]", "A[i, k] * D[k]"]
    i_only = te.compute((6,), lambda i: A[i, 0] * 2.0 + A[i, 0] * 2.0 + 1.0, name="C")
    assert texts(i_only)[1:] == ["A[i, 0] * T.float32(2.0) + A[i, 0] * T.float32(2.0)", "A[i, 0] * T.float32(2.0)"]


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("where", ["root", "inline", "inside"])
def test_they_compute_the_same(first: int, part: int, where: str) -> None:
    c = scaled(first)
    s = create_schedule(c.op)
    made = s.materialize(c, part)
    assert [as_int(extent) for extent in made.shape] == ([6, 7, 9 - first], [6, 9 - first])[part]
    if where == "inline":
        s[made].compute_inline()
    elif where == "inside":
        s[made].compute_at(s[c], c.op.axis[0])
    assert_schedule_correct(s, [A, D, B, c])
    again = create_schedule(c.op)
    for step in type(s.trace).from_json(s.trace.to_json()):
        again.apply_step(step)
    assert str(again) == str(s) and f"C_part = s.materialize(C, {part})" in s.as_python()


def test_a_part_is_named_by_itself() -> None:
    c = scaled()
    s = create_schedule(c.op)
    s.materialize(c, parts_of(c.op)[1])
    assert "materialize(C, 1)" in s.as_python()
    with pytest.raises(ScheduleError, match=r"materialize of part 1; its parts are 0: C_part\[i, k\] \* B\[k, j\]"):
        s.materialize(c, 1)


def test_what_is_behind_a_condition_stays_there() -> None:
    c = te.compute((8,), lambda i: tir.if_then_else(i < 6, A[i, 0] * 2.0, 0.0) + 1.0, name="C")
    assert len(texts(c)) == 2 and texts(c)[1].startswith("T.if_then_else")
    s = create_schedule(c.op)
    s.materialize(c, 1)
    assert_schedule_correct(s, [A, c])


def test_loops_come_after_it() -> None:
    c = scaled()
    s = create_schedule(c.op)
    s[c].split(c.op.axis[0], factor=2)
    with pytest.raises(ScheduleError, match="materialize comes before split"):
        s.materialize(c, 0)


X, W = te.placeholder((3, 11), name="X"), te.placeholder((3, 4), name="W")


def window(at: str, pixels: int, taps: int = 4, first: int = 0) -> Tensor:
    """Sums over windows whose values stand behind a condition."""
    k, r = te.reduce_axis((0, 3), name="k"), te.reduce_axis((first, taps), name="r")

    def value(y: te.Var) -> te.PrimExpr:
        return {
            "border": te.if_then_else(te.all(y + r >= 2, y + r < 13), X[k, y + r - 2], 0.0),
            "stride": te.if_then_else(y * 2 + r >= 1, X[k, y * 2 + r - 1], 0.0),
            "dilation": te.if_then_else(r * 2 + y >= 3, X[k, y + r * 2 - 3], 0.0),
            "transposed": te.if_then_else(te.all(y + 1 - r >= 0, (y + 1 - r) % 2 == 0), X[k, (y + 1 - r) // 2], 0.0),
            "gaps": te.if_then_else(y * 2 + r * 4 >= 4, X[k, y * 2 + r * 4 - 4], 0.0),
            "more": te.if_then_else(y + r >= 2, X[k, y + r - 2] * W[k, r], 0.0),
        }[at]

    found: Tensor = te.compute((pixels,), lambda y: te.sum(value(y) * W[k, r], axis=[k, r]), name="Y")
    return found


@pytest.mark.parametrize(
    ("y", "shape"),
    [
        (window("border", 12), [3, 15]),
        (window("border", 12, first=1), [3, 14]),
        (window("stride", 5), [3, 12]),
        (window("dilation", 7, 3), [3, 11]),
        (window("transposed", 19), [3, 22]),
        (window("gaps", 2, 3), [2, 3, 3]),  # there is nothing between, which X may not have
        (window("more", 8), [8, 3, 4]),
    ],
    ids=["border", "first", "stride", "dilation", "transposed", "gaps", "more"],
)
def test_a_window_behind_a_condition_has_one_axis(y: Tensor, shape: list[int]) -> None:
    s = create_schedule(y.op)
    made = s.materialize(y, 1)
    assert [as_int(extent) for extent in made.shape] == shape
    assert_schedule_correct(s, [X, W, y])


@pytest.mark.parametrize("is_transposed", [False, True])
def test_convolutions_with_a_border_in_the_sum_are_tiles(is_transposed: bool) -> None:
    """64 channels on 28 x 28 with a border in the sum 1.32 -> 0.50 ms, a transposed convolution to 56 x 56 24 -> 2.1."""
    x, w = te.placeholder((16, 9, 9), name="X"), te.placeholder((32, 16, 3, 3), name="W")
    k, u, v = te.reduce_axis((0, 16), "k"), te.reduce_axis((0, 3), "u"), te.reduce_axis((0, 3), "v")

    def value(y: te.Var, z: te.Var) -> te.PrimExpr:
        if is_transposed:
            inside = te.all(y >= u, (y - u) % 2 == 0, z >= v, (z - v) % 2 == 0)
            return te.if_then_else(inside, x[k, (y - u) // 2, (z - v) // 2], 0.0)
        return te.if_then_else(te.all(y + u >= 1, y + u < 10, z + v >= 1, z + v < 10), x[k, y + u - 1, z + v - 1], 0.0)

    out = te.compute((32, 9, 9), lambda o, y, z: te.sum(value(y, z) * w[o, k, u, v], axis=[k, u, v]), name="Y")
    s = default_schedule([x, w, out], "llvm -mcpu=znver3")
    (part,) = (stage for stage in s.tree.stages if stage.name.startswith("Y.part"))
    assert [as_int(axis.dom.extent) for axis in part.compute.axis if axis.dom is not None] == [16, 11, 11]
    # a border is part of the loads, a stage of its own where it is no border
    assert isinstance(part.attach, Inline) is not is_transposed
    assert explain_default([x, w, out], "llvm -mcpu=znver3").endswith("a convolution: tiles of pixels by vectors of channels")
