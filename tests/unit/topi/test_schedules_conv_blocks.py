"""Convolutions of small planes in blocks of channels: that they compute the same, and where they are chosen."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from tensorexpr.spaces import products
from tensorexpr.spaces.contraction_plan import Order, Pack
from tensorexpr.spaces.conv_plan import convolution_plans, in_blocks, written_plan
from tensorexpr.target import Target
from tensorexpr.topi.schedules import default_schedule
from tensorexpr.workloads import operators

from .test_schedules_conv import AVX2, Tensors, bias_relu, check, found_in, plan_of


def packed(ci: int, plane: int, co: int, kernel: int, stride: int = 1) -> Tensors:
    """Channels first, the weights in panels of 16."""
    return operators.conv2d_bias_relu_packed(1, ci, plane, plane, co, kernel, stride, kernel // 2, 16)


@pytest.mark.parametrize("pack", [Pack.NONE, Pack.PANEL])
@pytest.mark.parametrize("kernel, plane", [(1, 5), (3, 3), (3, 4)], ids=["pixels", "written out", "loops"])
def test_sums_in_blocks_of_channels(monkeypatch: pytest.MonkeyPatch, kernel: int, plane: int, pack: Pack) -> None:
    tensors = packed(12, plane, 32, kernel) if pack is Pack.NONE else bias_relu(1, 12, plane, plane, 32, kernel, 1, kernel // 2)
    monkeypatch.setattr(products, "flat_plan", lambda found, tree, stage, target: None)
    changes: dict[str, Any] = {"block": 4, "order": Order.PANELS, "pack": pack, "taps_inside": False}
    monkeypatch.setattr(products, "in_blocks", lambda plan, target: replace(plan, tile=replace(plan.tile, cycles=0.0), **changes))
    assert re.search(r"reduce rc\w*\.outer \(0, 3\)", str(default_schedule(tensors, AVX2)))
    check(tensors, AVX2)


@pytest.mark.parametrize(
    "args, target, block",
    [
        ((2048, 7, 512, 1), "znver3", 64),
        ((960, 7, 320, 1), "znver3", 96),  # 113 channels with their sums fill the first level
        ((512, 7, 512, 3), "znver3", 32),
        ((256, 14, 256, 3), "znver3", 0),  # 196 pixels leave room for blocks of 8, whose loops would take longer than they save
        ((1024, 14, 256, 1), "znver3", 0),
        ((64, 7, 512, 1), "znver3", 0),  # all channels stay there anyway
        ((2048, 7, 512, 1), "znver5", 0),  # a line for a tile of 13 pixels comes in time
    ],
)
def test_blocks_of_channels_stay_in_the_first_level(args: tuple[int, int, int, int], target: str, block: int) -> None:
    found, machine = found_in(packed(*args)), Target(f"llvm -mcpu={target} -num-cores=2")
    plan = written_plan(found, machine) if args[-1] > 1 else convolution_plans(found, machine)[0]
    blocked = plan and in_blocks(plan, machine)
    assert (blocked.block if blocked else 0) == block


def test_channels_last_are_not_in_blocks() -> None:
    """Pixels of a tile lie in lines of their own, which the next channels use up."""
    target = Target("llvm -mcpu=znver3 -num-cores=2")
    assert in_blocks(plan_of(operators.conv2d(1, 7, 7, 2048, 512, 1, 1, 0), target), target) is None
