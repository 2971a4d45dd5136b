"""Default schedules of convolutions that have too few channels for vectors of them: along the plane, in loops over channels."""

from __future__ import annotations

import pytest

from tensorexpr import te, topi
from tensorexpr.spaces import window
from tensorexpr.spaces.default import default_schedule
from tensorexpr.spaces.explain import explain_default
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing import assert_schedule_correct
from tensorexpr.testing.machine_code import assembly, hot_loop
from tensorexpr.workloads import operators

AVX512 = Target("llvm -mcpu=skylake-avx512 -num-cores=2")
AVX2 = Target("llvm -mcpu=haswell -num-cores=2")
RULE = "windows written out"


def convolution(data: tuple[int, ...], weights: tuple[int, ...], stride: tuple[int, ...], padding: int, bias: bool = True) -> list[Tensor]:
    x, w = te.placeholder(data, name="x"), te.placeholder(weights, name="w")
    made = (topi.nn.conv1d if len(data) == 3 else topi.nn.conv2d)(x, w, stride if len(data) == 4 else stride[0], padding, 1)
    if not bias:
        return [x, w, made]
    b = te.placeholder((weights[0], *[1] * (len(data) - 2)), name="b")
    return [x, w, b, topi.nn.relu(topi.add(made, b))]


def grouped(data: tuple[int, ...], weights: tuple[int, ...], groups: int) -> list[Tensor]:
    x, w = te.placeholder(data, name="x"), te.placeholder(weights, name="w")
    return [x, w, topi.nn.group_conv2d_nchw(x, w, 1, weights[2] // 2, 1, groups)]


@pytest.mark.parametrize("target", [AVX512, AVX2])
@pytest.mark.parametrize(
    "tensors",
    [
        convolution((1, 4, 6, 20), (1, 4, 3, 3), (1, 1), 1),
        convolution((1, 3, 9, 40), (2, 3, 7, 3), (1, 3), 1),
        convolution((2, 3, 5, 19), (1, 3, 5, 5), (1, 1), 2, bias=False),
        convolution((1, 2, 10, 16), (1, 2, 9, 9), (1, 1), 4),  # more taps than are written out
        convolution((1, 5, 30), (2, 5, 3), (1,), 1),
        convolution((1, 6, 4, 16), (1, 6, 1, 1), (1, 1), 0),
        grouped((1, 8, 5, 16), (8, 4, 3, 3), 2),
        grouped((1, 18, 3, 17), (18, 9, 3, 3), 2),  # groups that are no whole vectors of either target
        grouped((1, 18, 3, 17), (18, 9, 1, 1), 2),  # one element of the plane: channels of a group share it
        grouped((2, 20, 4, 8), (28, 5, 1, 1), 4),
        grouped((1, 40, 7, 9), (40, 10, 1, 1), 4),  # few rows, which groups and their tiles share the cores with
        grouped((1, 12, 9, 30), (12, 6, 1, 1), 2),  # tiles of six and six channels
    ],
)
def test_vectors_of_pixels_in_loops_over_channels(tensors: list[Tensor], target: Target) -> None:
    assert RULE in explain_default(tensors, target)
    assert_schedule_correct(default_schedule(tensors, target), tensors, phases=(0, 3))


@pytest.mark.parametrize(
    "tensors",
    [
        convolution((1, 4, 6, 20), (32, 4, 3, 3), (1, 1), 1),  # vectors of channels
        grouped((1, 32, 5, 16), (32, 16, 3, 3), 2),  # vectors of the channels of a group
        convolution((1, 4, 20, 3), (1, 4, 3, 3), (1, 1), 1),  # rows that fill less than half a vector
    ],
)
def test_other_convolutions_have_other_rules(tensors: list[Tensor]) -> None:
    assert RULE not in explain_default(tensors, AVX512)


def test_the_loop_over_channels_has_vectors_of_sums_in_registers() -> None:
    """The innermost loop multiplies and adds whole vectors, nine for each of several rows of results, and saves few of them."""
    tensors = convolution((1, 32, 64, 64), (1, 32, 3, 3), (1, 1), 0)
    loop = hot_loop(assembly(default_schedule(tensors, AVX512), tensors, AVX512))
    assert loop is not None and loop.bits == 512 and loop.multiply_adds >= 9 * 4, loop
    assert (loop.gathers, loop.lane_loads) == (0, 0) and 10 * loop.spills <= loop.multiply_adds, loop.text


@pytest.mark.parametrize("target", [AVX512, AVX2])
def test_channels_of_a_group_share_the_pixels_that_they_read(target: Target) -> None:
    """ShuffleNet's products within groups of 34 channels: vectors of pixels are loaded once for five or six channels.

    With a vector of each of several rows, which share nothing, each multiply-add had a load of its own: 230 us instead of 65 (Zen 3).
    """
    tensors = grouped((1, 136, 28, 28), (136, 34, 1, 1), 4)
    assert "several channels of results share" in explain_default(tensors, target)
    loop = hot_loop(assembly(default_schedule(tensors, target), tensors, target))
    assert loop is not None and loop.bits == target.vector_bits and loop.multiply_adds >= 10, loop
    assert (loop.gathers, loop.lane_loads) == (0, 0) and 10 * loop.spills <= loop.multiply_adds, loop.text


@pytest.mark.parametrize("cpu, images, columns", [("znver3", 1, 4), ("znver3", 16, 1), ("icelake-server", 1, 1), ("icelake-server", 16, 1)])
def test_tiles_along_columns_are_for_data_that_multiply_adds_wait_for(cpu: str, images: int, columns: int) -> None:
    """One image of 3.2 MB stays in a third level that answers within 46 cycles; one that takes 70 wants prefetchers to follow."""
    target = Target(f"llvm -mcpu={cpu} -num-cores=2")
    op = operators.depthwise(images, 112, 112, 32, 3, 1, 1)[-1].op
    tree = te.create_schedule(op).tree
    (found,) = window.windows_of(tree, tree[tree.index[op]], target)
    _, sizes = window._tile(found, [images, 112, 112, 32], target.vector_bits // 32, target)
    assert sizes[2] == columns
