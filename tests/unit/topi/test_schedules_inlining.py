"""Default schedules of programs without sums: what is computed where it is read, and in vectors all the same where it is a result, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.schedule.tree import Inline
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.topi.schedules import default_schedule

TARGET = Target("llvm -mcpu=znver3 -num-cores=2")
Tensors = list[Tensor]


def stage(like: Tensor, body: Callable[..., Any], name: str) -> Tensor:
    made: Tensor = te.compute(like.shape, body, name=name)
    return made


def beside_nearest_pixels(shape: tuple[int, ...]) -> Tensors:
    """Twice as many pixels as X has, with channels of Y behind theirs: 418 us for 40 x 40 x (128 + 64), lane by lane, and 65 since."""
    rows, columns, channels = shape
    x, y = te.placeholder((rows, columns, channels), name="X"), te.placeholder((2 * rows, 2 * columns, channels), name="Y")
    return [x, y, topi.concatenate([te.compute(y.shape, lambda i, j, c: x[i // 2, j // 2, c], name="U"), y], axis=2)]


def two_readers_of_one(shape: tuple[int, ...]) -> Tensors:
    """V is a part of Z, so that U has one reader."""
    x = te.placeholder(shape, name="X")
    u = stage(x, lambda *at: te.exp(x[at]), "U")
    v = stage(x, lambda *at: te.sqrt(u[at]), "V")
    return [x, stage(x, lambda *at: u[at] + v[at], "Z")]


def a_net_of_readers(shape: tuple[int, ...]) -> Tensors:
    """Each is read by two of those behind it, of which the last one is a part of the one before it at first."""
    x = te.placeholder(shape, name="X")
    u = stage(x, lambda *at: te.exp(x[at]), "U")
    v = stage(x, lambda *at: te.exp(-u[at]), "V")
    w = stage(x, lambda *at: te.exp(-(v[at] + u[at])), "W")
    return [x, stage(x, lambda *at: v[at] + w[at] * u[at], "Z")]


def several_results(shape: tuple[int, ...]) -> Tensors:
    """Two results, of which one is made of the other: it was computed element by element."""
    x = te.placeholder(shape, name="X")
    u = stage(x, lambda *at: te.exp(-x[at]), "U")
    return [x, u, stage(x, lambda *at: u[at] * 2.0 + te.sqrt(u[at]), "Z")]


PROGRAMS = {made.__name__: made for made in (beside_nearest_pixels, two_readers_of_one, a_net_of_readers, several_results)}


@pytest.mark.parametrize("shape", [(4, 6, 32), (3, 5, 13), (1, 2, 7)], ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_without_sums_run_in_vectors(program: str, shape: tuple[int, ...]) -> None:
    tensors = PROGRAMS[program](shape)
    schedule = default_schedule(tensors, TARGET)
    assert all(one.is_placeholder or one.is_output or isinstance(one.attach, Inline) for one in schedule.tree.in_order())
    with TARGET:
        text = tvm.lower(schedule, tensors).script()
    stores = [line.split(" = ")[0] for line in text.splitlines() if "] = " in line and "T.Buffer" not in line]
    assert "vstore" in text or (stores and all(":" in store for store in stores)), text
    assert_schedule_correct(schedule, tensors)


def test_what_is_read_at_several_places_is_computed_once() -> None:
    """Each element of U is read for two of Z, in other vectors: it is stored."""
    x = te.placeholder((40, 128), name="X")
    u = stage(x, lambda i, j: te.exp(x[i, j]), "U")
    v = stage(x, lambda i, j: te.sqrt(u[i, j]), "V")
    z = te.compute((40, 256), lambda i, j: te.if_then_else(j < 128, u[i, j % 128], v[i, j % 128]), name="Z")
    tree = default_schedule([x, z], TARGET).tree
    assert [one.name for one in tree.in_order() if isinstance(one.attach, Inline)] == ["V"]


def test_moves_before_a_sum_are_left_to_its_rule() -> None:
    """A product reads a matrix whose rows lie in another order as it is packed, by a stage of its own."""
    x, w = te.placeholder((16, 24), name="X"), te.placeholder((24, 32), name="W")
    u = te.compute((32, 24), lambda i, k: x[i // 2, k], name="U")
    k = te.reduce_axis((0, 24), "k")
    y = te.compute((32, 32), lambda i, j: te.sum(u[i, k] * w[k, j], axis=k), name="Y")
    assert_schedule_correct(default_schedule([x, w, y], TARGET), [x, w, y])
