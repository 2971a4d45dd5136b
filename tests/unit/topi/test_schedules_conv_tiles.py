"""Tiles of three vectors, vectors of pixels, copies of what shares sets of a cache: that they compute the same, where they are chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorexpr.spaces import contraction_plan, products
from tensorexpr.spaces.contraction_plan import Pack
from tensorexpr.spaces.conv_plan import convolution_plans
from tensorexpr.target import Target
from tensorexpr.workloads import operators

from .test_schedules_conv import AVX2, bias_relu, check, flat_of, found_in, plan_of


@pytest.mark.parametrize(
    "args, sizes, vectors, inside",
    [
        ((384, 96, 24), (1, 4), 3, True),  # 24 channels fill three vectors; 384 channels of a tile are behind the first level
        ((64, 112, 24), (1, 4), 3, True),
        ((4, 112, 24), (1, 14), 1, False),  # few steps: starting and storing more tiles takes longer
        ((64, 56, 64), (1, 6), 2, True),  # 64 channels would leave half a panel of three vectors empty
    ],
)
def test_tiles_of_three_vectors_with_16_registers(args: tuple[int, int, int], sizes: tuple[int, int], vectors: int, inside: bool) -> None:
    channels, plane, filters = args
    plan = plan_of(bias_relu(1, channels, plane, plane, filters, 3, 1, 1), Target("llvm -mcpu=znver3 -num-cores=2"))
    assert (plan.tile.sizes, plan.tile.vectors, plan.taps_inside) == (sizes, vectors, inside)


@pytest.mark.parametrize(
    "channels, filters, kernel, pack",
    [
        (256, 128, 3, Pack.PANEL),  # 2,304 rows 512 bytes apart, on 1,024 lines of the second level
        (64, 128, 3, Pack.NONE),  # 576 of them stay
        (512, 96, 3, Pack.NONE),  # 384 bytes apart they fall on all sets
    ],
)
def test_rows_of_weights_that_share_sets_are_copied(channels: int, filters: int, kernel: int, pack: Pack) -> None:
    found = found_in(operators.conv2d(1, 14, 14, channels, filters, kernel, 1, kernel // 2))
    assert convolution_plans(found, Target("llvm -mcpu=znver3 -num-cores=2"))[0].pack is pack


def test_tiles_of_three_vectors_compute_the_same() -> None:
    check(bias_relu(1, 6, 3, 9, 24, 3, 1, 1), AVX2)
    check(operators.conv2d(1, 3, 9, 6, 40, 3, 1, 1), AVX2)


@pytest.mark.parametrize("plane", [(8, 8), (7, 7), (3, 14)])
def test_vectors_of_pixels(monkeypatch: pytest.MonkeyPatch, plane: tuple[int, int]) -> None:
    monkeypatch.setattr(products, "convolution_plans", lambda found, target: [])
    tensors = bias_relu(2, 5, *plane, 20, 1)
    plan = flat_of(tensors)
    assert plan is not None and plan.lanes == 16
    check(tensors)


def test_vectors_of_pixels_are_chosen_where_they_fill_registers() -> None:
    large, small = bias_relu(1, 64, 56, 56, 64, 1), bias_relu(1, 512, 7, 7, 64, 1)
    for tensors, pixels in ((large, True), (small, False)):
        flat = flat_of(tensors)
        assert flat is not None and (flat.tile.cycles < plan_of(tensors).tile.cycles) is pixels


@pytest.mark.parametrize("pack", [Pack.PANEL, Pack.NONE])
@pytest.mark.parametrize("plane", [(8, 8), (7, 7), (3, 14)])
def test_vectors_of_pixels_in_panels(monkeypatch: pytest.MonkeyPatch, plane: tuple[int, int], pack: Pack) -> None:
    """Panels run on over row ends, and the last one is padded; blocks of channels read them where they lie."""
    monkeypatch.setattr(products, "convolution_plans", lambda found, target: [])
    monkeypatch.setattr(contraction_plan, "_is_far", lambda found, stride, machine: pack is Pack.PANEL)
    monkeypatch.setattr(contraction_plan, "_streamed", lambda plan, target: replace(plan, block=4, parts=2) if pack is Pack.NONE else None)
    tensors = bias_relu(2, 10, *plane, 20, 1)
    plan = flat_of(tensors)
    assert plan is not None and plan.pack is pack and (plan.parts > 0) is (pack is Pack.NONE)
    check(tensors)


@pytest.mark.parametrize(
    "channels, plane, filters, packed",
    [
        (448, 64, 640, True),  # 448 planes 16 KB apart, of which the second level holds 32
        (32, 64, 640, False),
        (448, 64, 48, False),  # too few filters to pay for a copy
        (448, 56, 640, False),  # planes of 56 x 56 are spread over all sets
    ],
)
def test_pixels_whose_planes_share_sets_are_copied(channels: int, plane: int, filters: int, packed: bool) -> None:
    flat = flat_of(bias_relu(1, channels, plane, plane, filters, 1), Target("llvm -mcpu=znver3 -num-cores=2"))
    assert flat is not None and (flat.pack is Pack.PANEL) is packed
