"""Convolutions that leave out pixels read a copy without those, where the second-level cache doesn't keep what they lie in."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tensorexpr as tvm
from tensorexpr import topi
from tensorexpr.spaces.contraction_plan import Order
from tensorexpr.spaces.conv_packed import dense
from tensorexpr.spaces.conv_plan import convolution_plans
from tensorexpr.spaces.convolutions import Convolution, convolution_of
from tensorexpr.target import Target
from tensorexpr.te import create_schedule, placeholder
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing import assert_schedule_correct
from tensorexpr.topi.schedules import default_schedule

SMALL = Target("llvm -mcpu=haswell -num-cores=2 -l1d=512/8 -l2=512/8 -l3=4K/8")
LARGE = Target("llvm -mcpu=haswell -num-cores=2")


def conv(
    shape: tuple[int, ...], filters: tuple[int, ...], stride: int, dilation: int = 1, padding: int = 0, layout: str = ""
) -> list[Tensor]:
    data, weights = placeholder(shape, name="data"), placeholder(filters, name="weights")
    layout = layout or {3: "NCW", 4: "NCHW"}[len(shape)]
    return [data, weights, topi.nn.relu(topi.nn.conv(data, weights, stride, padding, dilation, 1, layout))]


def found_in(tensors: list[Tensor]) -> Convolution:
    return next(found for stage in create_schedule(tensors[-1].op).tree.in_order() if (found := convolution_of(stage.op)) is not None)


def copy_of(tensors: list[Tensor], target: Target) -> Convolution | None:
    found = found_in(tensors)
    plan = convolution_plans(found, target)[0]
    assert plan is not None
    return dense(found, replace(plan, order=Order.PANELS), target)


@pytest.mark.parametrize(
    "args, shape",
    [
        (((1, 4, 6, 7), (32, 4, 1, 1), 2), [1, 4, 3, 4]),
        (((2, 4, 7, 5), (40, 4, 1, 1), 3), [2, 4, 3, 2]),
        (((1, 8, 19), (32, 8, 1), 2), [1, 8, 10]),
        (((1, 4, 6, 9), (32, 4, 2, 3), 2, 2), [1, 4, 3, 5]),  # windows of each second pixel, two pixels apart
    ],
    ids=["plane", "every third", "line", "dilated"],
)
def test_pixels_that_no_window_reads_are_left_out(args: tuple[tuple[int, ...], tuple[int, ...], int], shape: list[int]) -> None:
    tensors = conv(*args)
    found = copy_of(tensors, SMALL)
    assert found is not None and [int(str(extent)) for extent in found.data.tensor.shape] == shape
    assert_schedule_correct(default_schedule(tensors, SMALL), tensors, phases=(0, 3))


def test_nothing_but_the_pixels_that_are_read_is_copied() -> None:
    tensors = conv((1, 4, 22, 20), (32, 4, 1, 1), 2)
    assert f"T.allocate([{4 * 11 * 10}]" in tvm.lower(default_schedule(tensors, SMALL), tensors).script()


@pytest.mark.parametrize(
    "tensors",
    [
        conv((1, 4, 6, 7), (32, 4, 1, 1), 1),
        conv((1, 4, 6, 7), (32, 4, 3, 3), 2),  # every pixel is read by some window
        conv((1, 6, 7, 4), (1, 1, 4, 32), 2, layout="NHWC"),  # each pixel has lines of its own
        conv((1, 4, 6, 7), (32, 4, 1, 1), 2, padding=1),
    ],
    ids=["stride 1", "no gaps", "channels last", "border"],
)
def test_where_a_copy_would_hold_as_many_lines_there_is_none(tensors: list[Tensor]) -> None:
    assert copy_of(tensors, SMALL) is None


def test_lines_that_stay_in_the_cache_are_read_where_they_are() -> None:
    assert copy_of(conv((1, 4, 6, 7), (32, 4, 1, 1), 2), LARGE) is None


def test_a_copy_that_is_read_once_costs_more_than_it_saves() -> None:
    assert copy_of(conv((1, 4, 6, 7), (8, 4, 1, 1), 2), SMALL) is None


def test_lines_that_come_too_slowly_from_the_second_level_are_copied() -> None:
    # Sapphire Rapids: 14 pixels of a stride of 2 are 2.7 lines for 14 cycles of multiply-adds, of 1 they are 1.8.
    large = Target("llvm -mcpu=sapphirerapids -num-cores=2")
    assert copy_of(conv((1, 64, 28, 28), (1024, 64, 1, 1), 2), large) is not None
    assert copy_of(conv((1, 64, 28, 28), (1024, 64, 1, 1), 2), Target("llvm -mcpu=znver5 -num-cores=2")) is None
