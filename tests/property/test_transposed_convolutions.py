"""Transposed convolutions of any window: what they are, in how many products, and as graphs with constant weights."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import relax, te
from tensorexpr.spaces.default import default_schedule
from tensorexpr.te.flops import flop_count
from tensorexpr.testing import assert_schedule_correct
from tensorexpr.topi.nn.conv_transpose import conv_transpose
from tensorexpr.topi.nn.residues import residues
from tensorexpr.topi.testing import conv_transpose_python
from tensorexpr.topi.utils import get_const_tuple
from tests.effort import share_of

Array = Any
Axis = tuple[int, int, int, int, int, int, int]


@st.composite
def axes(draw: st.DrawFn) -> Axis:
    """Extent, taps, stride, dilation, paddings at both ends, output padding."""
    stride, dilation = draw(st.integers(1, 4)), draw(st.sampled_from([1, 1, 1, 2, 3]))
    taps = draw(st.integers(1, 5))
    low, high = (draw(st.integers(0, (taps - 1) * dilation)) for _ in range(2))
    extent, extra = draw(st.integers(1, 6)), draw(st.integers(0, max(stride, dilation) - 1))
    assume((extent - 1) * stride + (taps - 1) * dilation + 1 + extra > low + high)
    return extent, taps, stride, dilation, low, high, extra


def made(window: list[Axis], groups: int, inputs: int, outputs: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    extents, taps, strides, dilations, low, high, extra = ([axis[n] for axis in window] for n in range(7))
    data = te.placeholder((2, groups * inputs, *extents), name="data")
    weight = te.placeholder((groups * inputs, outputs, *taps), name="weight")
    spatial = "DHW"[-len(window) :]
    return data, weight, conv_transpose(data, weight, strides, [*low, *high], "float32", extra, groups, spatial, "t", dilations)


def wanted(data: Array, weight: Array, window: list[Axis], groups: int) -> Array:
    """The reference, whose taps are neighbours: taps further apart have zeros between them."""
    sizes = [(axis[1] - 1) * axis[3] + 1 for axis in window]
    apart = np.zeros((*weight.shape[:2], *sizes), weight.dtype)
    apart[tuple([slice(None)] * 2 + [slice(None, None, axis[3]) for axis in window])] = weight
    padding = [(axis[4], axis[5]) for axis in window]
    return conv_transpose_python(data, apart, [axis[2] for axis in window], padding, [axis[6] for axis in window], groups)


@settings(deadline=None, derandomize=True, max_examples=share_of(12))
@given(
    window=st.lists(axes(), min_size=1, max_size=3),
    groups=st.sampled_from([1, 1, 2, 3]),
    inputs=st.integers(1, 3),
    outputs=st.sampled_from([1, 2, 16, 17]),
)
@example(window=[(80, 2, 2, 1, 0, 0, 0)] * 2, groups=1, inputs=3, outputs=24)
@example(window=[(4, 4, 2, 1, 1, 1, 0)] * 2, groups=1, inputs=8, outputs=3)
@example(window=[(5, 3, 2, 1, 1, 1, 1)] * 2, groups=2, inputs=4, outputs=16)
@example(window=[(5, 2, 3, 1, 0, 0, 0), (4, 3, 2, 2, 2, 1, 1)], groups=1, inputs=2, outputs=16)  # residues without taps
@example(window=[(3, 3, 2, 1, 2, 2, 1)], groups=1, inputs=2, outputs=16)  # the first windows are cut off
def test_default_schedules_compute_transposed_convolutions(window: list[Axis], groups: int, inputs: int, outputs: int) -> None:
    data, weight, result = made(window, groups, inputs, outputs)
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(get_const_tuple(one.shape)).astype("float32") for one in (data, weight))
    found = computed(data, weight, result, x, w)
    np.testing.assert_allclose(found, wanted(x, w, window, groups), rtol=1e-4, atol=1e-4)


def computed(data: te.Tensor, weight: te.Tensor, result: te.Tensor, x: Array, w: Array) -> Array:
    """What the kernel with a default schedule gives."""
    args = [data, weight, result]
    kernel, out = tvm.build(default_schedule(args), args), tvm.nd.array(np.zeros(get_const_tuple(result.shape), "float32"))
    kernel(tvm.nd.array(x), tvm.nd.array(w), out)
    return out.numpy()


@settings(deadline=None, derandomize=True, max_examples=6)
@given(window=st.lists(axes(), min_size=1, max_size=2), groups=st.sampled_from([1, 2]), outputs=st.sampled_from([1, 2, 17]))
def test_each_phase_of_lowering_means_the_same(window: list[Axis], groups: int, outputs: int) -> None:
    args = list(made(window, groups, 2, outputs))
    assert_schedule_correct(default_schedule(args), args)


@settings(deadline=None, derandomize=True)
@given(axis=axes())
def test_residues_share_out_the_taps(axis: Axis) -> None:
    """Each tap belongs to one residue; a result u of a run meets data u + offset by its first tap."""
    _, taps, stride, dilation, low, high, extra = axis
    found = residues(taps, stride, dilation, low, high, extra)
    assert [run.first for run in found.runs] == [0, *np.cumsum([run.count for run in found.runs])[:-1]]
    assert sum(run.count for run in found.runs) == stride
    met = [(run, residue, tap) for run in found.runs if run.taps for residue in range(run.count) for tap in found.taps_of(run, residue)]
    assert sorted(tap for _, _, tap in met) == list(range(taps))
    for run, residue, tap in met:
        place, remainder = divmod(run.first + residue - tap * dilation, stride)
        assert remainder == 0
        assert place == run.offset - (tap - run.tap - residue) // found.apart * found.step


def test_products_with_zeros_are_not_counted() -> None:
    """4 x 4 taps at stride 2: each of 16 x 16 elements meets each tap once, and a border of one row and one column of results."""
    data, weight, result = made([(16, 4, 2, 1, 1, 1, 0)] * 2, 1, 8, 16)
    exact = 2 * 8 * 16 * 16 * 2 * 16 * 16
    assert exact <= flop_count([data, weight, result]) < 1.2 * exact


@pytest.mark.parametrize(("groups", "outputs"), [(1, 24), (1, 1), (2, 16)])
def test_graphs_have_constant_weights_packed(groups: int, outputs: int) -> None:
    random = np.random.default_rng(0)
    window: list[Axis] = [(7, 4, 2, 1, 1, 1, 0)] * 2
    x = random.standard_normal((1, 8 * groups, 7, 7)).astype("float32")
    w = random.standard_normal((8 * groups, outputs, 4, 4)).astype("float32")
    builder = relax.BlockBuilder()
    data = relax.Var("x", relax.TensorStructInfo(x.shape, "float32"))
    with builder.function("main", [data]):
        made_call = relax.op.nn.conv2d_transpose(data, relax.const(w), strides=2, padding=1, groups=groups)
        builder.emit_func_output(builder.emit(relax.op.nn.relu(made_call)))
    executable = relax.build(builder.get())
    assert set(executable.origins.values()) == {"rule"}
    found = relax.VirtualMachine(executable)["main"](x).numpy()
    np.testing.assert_allclose(found, np.maximum(wanted(x, w, window, groups), 0), rtol=1e-4, atol=1e-4)
    assert prod(found.shape) == groups * outputs * 14 * 14
