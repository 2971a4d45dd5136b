"""Default schedules of programs of any number of images: those of one image, where that is work for all cores."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tensorexpr as tvm
from tensorexpr import te, topi
from tensorexpr.schedule import create_schedule
from tensorexpr.spaces.open_batch import of_one
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.expr import PrimExpr
from tensorexpr.topi.schedules import default_schedule

TARGET = Target("llvm -mcpu=znver3 -num-cores=2")
Batch = PrimExpr | int


def convolution(n: Batch) -> list[Tensor]:
    """166 ms for a 3x3 convolution of 64 channels on 56 x 56, element by element, and 1.6 since (two cores of Zen 3)."""
    x, w = te.placeholder((n, 8, 30, 30), name="X"), te.placeholder((16, 8, 3, 3), name="W")
    return [x, w, topi.nn.relu(topi.nn.conv2d_nchw(x, w, 1, 1, 1))]


def channels_last(n: Batch) -> list[Tensor]:
    x, w = te.placeholder((n, 28, 28, 16), name="X"), te.placeholder((1, 1, 16, 16), name="W")
    return [x, w, topi.nn.conv2d_nhwc(x, w, 1, 0, 1)]


def depthwise(n: Batch) -> list[Tensor]:
    x, w = te.placeholder((n, 16, 40, 40), name="X"), te.placeholder((16, 1, 3, 3), name="W")
    return [x, w, topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1)]


def pooling(n: Batch) -> list[Tensor]:
    """145 us for 64 channels of 56 x 56, and 33 since."""
    x = te.placeholder((n, 32, 40, 40), name="X")
    return [x, topi.nn.pool2d(x, [3, 3], [2, 2], [1, 1], [1, 1, 1, 1], "max")]


def biases(n: Batch) -> list[Tensor]:
    """Both indices of a plane are one loop: an index of 64 bits has to go on over the ends of rows, too."""
    x, b = te.placeholder((n, 24, 56, 28), name="X"), te.placeholder((24,), name="b")
    return [x, b, te.compute(x.shape, lambda i, c, y, z: te.max(x[i, c, y, z] + b[c], 0.0), name="Y")]


@pytest.mark.parametrize("program", [convolution, channels_last, depthwise, pooling, biases])
def test_any_number_of_images_is_scheduled_as_one(program: Callable[[Batch], list[Tensor]]) -> None:
    n = te.var("n")
    tensors = program(n)
    schedule = default_schedule(tensors, TARGET)
    assert schedule.trace.to_json() == default_schedule(program(1), TARGET).trace.to_json()
    assert_schedule_correct(schedule, tensors, phases=(3,), sizes=[{n: images} for images in (0, 1, 3)])


def test_vectors_of_a_plane_are_one_ramp() -> None:
    """Quotients and remainders by 28 were taken for each lane, cast to 64 bits each by itself."""
    tensors = biases(te.var("n"))
    with TARGET:
        text = tvm.lower(default_schedule(tensors, TARGET), tensors).script()
    assert "Ramp" not in text and "// 28" not in text


def dense(n: Batch, known: int = 1) -> list[Tensor]:
    x, w, k = te.placeholder((n, known, 24), name="X"), te.placeholder((24, 32), name="W"), te.reduce_axis((0, 24), "k")
    return [x, w, te.compute((n, known, 32), lambda i, j, o: te.sum(x[i, j, k] * w[k, o], axis=k), name="Y")]


def reversed_batch(n: Batch) -> list[Tensor]:
    x = te.placeholder((n, 64), name="X")
    return [x, te.compute((n, 64), lambda i, j: x[n - 1 - i, j], name="Y")]


def rolled(n: Batch) -> list[Tensor]:
    x = te.placeholder((n, 64), name="X")
    return [x, te.compute((n, 64), lambda i, j: te.if_then_else(i > 0, x[i - 1, j], 0.0), name="Y")]


def summed(n: Batch) -> list[Tensor]:
    x = te.placeholder((n, 64), name="X")
    return [x, topi.sum(x, 0)]


@pytest.mark.parametrize(
    ("tensors", "is_batch"),
    [
        (dense(te.var("n")), False),  # tiles have rows of several elements
        (dense(te.var("n"), 128), True),
        (reversed_batch(te.var("n")), False),
        (rolled(te.var("n")), False),
        (summed(te.var("n")), False),
        ([x := te.placeholder((te.var("n"),), name="X"), topi.sum(x)], False),
        (convolution(4), False),
        ([x := te.placeholder((te.var("n"), te.var("m")), name="X"), topi.nn.relu(x)], False),
        ([x := te.placeholder((te.var("n") * 2, 8), name="X"), topi.nn.relu(x)], False),
    ],
    ids=["rows alone", "rows of each", "reversed", "rolled", "summed", "summed to a number", "known", "two sizes", "pairs"],
)
def test_what_is_a_batch(tensors: list[Tensor], is_batch: bool) -> None:
    s = create_schedule([tensor.op for tensor in tensors if tensor.op.input_tensors])
    assert (of_one(s) is not None) is is_batch


def test_pixels_of_open_planes_are_columns_of_a_product() -> None:
    """The tap of a window of one pixel, x + rx, hid that pixels lie side by side; each sum went through memory by itself."""
    h, v = te.var("h"), te.var("v")
    x, w = te.placeholder((1, 8, h, v), name="X"), te.placeholder((12, 8, 1, 1), name="W")
    tensors = [x, w, topi.nn.relu(topi.nn.conv2d_nchw(x, w, 1, 0, 1))]
    schedule = default_schedule(tensors, TARGET)
    assert "storage_align" in schedule.as_python()  # of a tile of sums
    assert_schedule_correct(schedule, tensors, phases=(3,), sizes=[{h: rows, v: columns} for rows, columns in ((0, 3), (2, 21), (3, 16))])
