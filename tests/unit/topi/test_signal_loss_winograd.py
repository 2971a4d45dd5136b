"""Fourier transforms, losses, fixed point, streams and Winograd's convolutions, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.topi.fourier import best_plan
from tensorexpr.topi.nn import winograd
from tensorexpr.topi.testing import conv_python
from tests.operators import assert_same, values
from tests.operators import run as evaluated
from tests.unit.topi.test_orders import run
from tests.unit.topi.test_scatter_and_sparse import randoms


@pytest.mark.parametrize("inverse", [False, True])
def test_fourier_transforms_are_numpys(inverse: bool) -> None:
    real, imaginary = values(3, 12), values(3, 12)
    wanted = (np.fft.ifft if inverse else np.fft.fft)(real + 1j * imaginary)
    found = evaluated(lambda re, im: topi.dft(re, im, inverse), real, imaginary)
    assert_same(found[0], wanted.real, 1e-4)
    assert_same(found[1], wanted.imag, 1e-4)


# One pass; lanes that don't fill a register; passes of 2 to 10 after them; a prime number of sums; two transforms of a longer row.
@pytest.mark.parametrize("size", [1, 2, 7, 48, 50, 441, 97, 131])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fourier_transforms_of_any_length(size: int, dtype: str) -> None:
    real, imaginary = (np.random.default_rng(seed).normal(size=(3, size)).astype(dtype) for seed in range(2))
    parts = [te.placeholder((3, size), dtype, name) for name in ("re", "im")]
    inverse = size % 2 == 0
    found = run(parts, [real, imaginary], topi.dft(parts[0], parts[1], inverse))
    wanted = (np.fft.ifft if inverse else np.fft.fft)(real + 1j * imaginary)
    limit = np.abs(wanted).max() * 8 * np.finfo(dtype).eps
    np.testing.assert_allclose(found[0] + 1j * found[1], wanted, rtol=0, atol=limit)


@given(st.integers(2, 600), st.sampled_from((4, 8, 16)))
def test_plans_of_fourier_transforms_have_the_length(size: int, width: int) -> None:
    cost, plan = best_plan(size, width)
    assert plan.first * math.prod(plan.radices) == size
    assert plan.lanes % width == 0 and 0 <= plan.lanes - plan.first < width
    assert cost <= best_plan(size, width)[1].lanes * (4 * size + 6)


@pytest.mark.parametrize("normalized", [False, True])
def test_transforms_of_windows(normalized: bool) -> None:
    signal, window = values(2, 40), np.hanning(16).astype("float32")
    found = evaluated(lambda x, w: topi.stft(x, 16, 8, 16, w, normalized, True, (2, 9, 4, 2)), signal, window)
    frames = np.stack([signal[:, s : s + 16] * window for s in range(0, 32, 8)], axis=1)
    wanted = np.fft.rfft(frames).swapaxes(1, 2) / (4.0 if normalized else 1.0)
    assert_same(found[..., 0], wanted.real, 1e-4)
    assert_same(found[..., 1], wanted.imag, 1e-4)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_the_negative_log_likelihood(reduction: str) -> None:
    predictions, weights = values(3, 4, 5), np.array([1, 2, 0.5, 3], "float32")
    targets = np.random.default_rng(0).integers(0, 4, (3, 5)).astype("int32")
    each = -np.take_along_axis(predictions, targets[:, None], 1)[:, 0] * weights[targets] * (targets != 1)
    share = (weights[targets] * (targets != 1)).sum()
    wanted = {"none": each, "sum": each.sum(), "mean": each.sum() / share}[reduction]
    assert_same(evaluated(lambda p, t, w: topi.nn.nll_loss(p, t, w, reduction, 1), predictions, targets, weights), np.asarray(wanted))
    with pytest.raises(DeclarationError, match="reduction is 'most'"):
        topi.nn.nll_loss(te.placeholder((3, 4)), te.placeholder((3,), "int32"), te.placeholder((4,)), "most", 0)


def test_a_product_of_fixed_point_rounds_to_the_nearest() -> None:
    numbers = np.array([1000, -1000, 7, 1 << 28], "int32")
    found = evaluated(lambda x: topi.fixed_point_multiply(x, 3 << 29, -2), numbers)  # 0.75 * 2^-2
    np.testing.assert_array_equal(found, np.floor(numbers * (0.75 / 4) + 0.5).astype("int32"))


def test_a_stream_keeps_its_last_elements() -> None:
    buffer, data = values(2, 6, 3), values(2, 2, 3)
    assert_same(evaluated(lambda d, b: topi.nn.fifo_buffer(d, b, 1), data, buffer), np.concatenate([buffer[:, 2:], data], axis=1))


def test_slices_with_bounds_that_are_tensors_and_vectors_of_constants() -> None:
    data = values(5, 8)
    bounds = [np.array(b, "int64") for b in ((1, -2), (5, -9), (2, -3))]
    found = evaluated(lambda a, b, e, s: topi.dynamic_strided_slice(a, b, e, s, (2, 3)), data, *bounds)
    assert_same(found, data[1:5:2, -2::-3])
    np.testing.assert_array_equal(evaluated(lambda: topi.const_vector([3, 1, 4])), [3, 1, 4])


@pytest.mark.parametrize(("tile", "taps"), [(2, 3), (4, 3), (4, 5), (6, 3), (3, 2)])
def test_minimal_filtering_is_a_correlation(tile: int, taps: int) -> None:
    a, b, g = winograd.winograd_matrices(tile, taps)
    data, kernel = randoms(tile + taps - 1).astype("float64"), randoms(taps, seed=1).astype("float64")
    np.testing.assert_allclose(a.T @ ((g @ kernel) * (b.T @ data)), np.correlate(data, kernel), rtol=1e-9)


def test_a_tile_that_needs_too_many_points_is_refused() -> None:
    with pytest.raises(DeclarationError, match="8 outputs of 5 taps need 11 points; there are 9"):
        winograd.winograd_matrices(8, 5)


@pytest.mark.parametrize(("height", "padding"), [(8, 1), (7, 1), (9, (0, 1, 2, 1))])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_winograds_convolutions(layout: str, height: int, padding: Any) -> None:
    data, weight = randoms(2, 5, height, height + 1), randoms(6, 5, 3, 3, seed=1)
    top, left, bottom, right = (padding,) * 4 if isinstance(padding, int) else padding
    wanted = conv_python(data, weight, (1, 1), ((top, bottom), (left, right)), (1, 1))
    last = layout == "NHWC"
    arrays = (
        [data, weight]
        if not last
        else [np.ascontiguousarray(data.transpose(0, 2, 3, 1)), np.ascontiguousarray(weight.transpose(2, 3, 1, 0))]
    )
    tensors: list[Any] = [te.placeholder(array.shape) for array in arrays]
    conv = topi.nn.conv2d_winograd_nhwc if last else topi.nn.conv2d_winograd_nchw
    [found] = run(tensors, arrays, conv(tensors[0], tensors[1], 1, padding, 1, "float32"))
    np.testing.assert_allclose(found, wanted.transpose(0, 2, 3, 1) if last else wanted, rtol=3e-4)


def test_winograds_convolution_with_transformed_weights() -> None:
    data, weight = randoms(1, 4, 8, 8), randoms(4, 4, 3, 3, seed=1)
    D, W = (te.placeholder(array.shape) for array in (data, weight))
    [packed] = run([W], [weight], topi.nn.conv2d_winograd_weight_transform(W, 4))
    P = te.placeholder(packed.shape)
    [found] = run([D, P], [data, packed], topi.nn.conv2d_winograd_nchw_without_weight_transform(D, P, 1, 1, 1, "float32"))
    np.testing.assert_allclose(found, conv_python(data, weight, (1, 1), ((1, 1), (1, 1)), (1, 1)), rtol=3e-4)
    with pytest.raises(DeclarationError, match="strides and dilation are 1"):
        topi.nn.conv2d_winograd_nchw(D, W, 2, 1, 1)
    with pytest.raises(DeclarationError, match="the height and the width of the window must be equal, but they are 3 and 5"):
        topi.nn.conv2d_winograd_nchw(D, te.placeholder((4, 4, 3, 5)), 1, 1, 1)
    with pytest.raises(DeclarationError, match=r"the taps of the transformed weights .* are 3 and 5"):
        # 6 rows are tiles of 2, for which 6 x 6 transformed weights would be those of 5 taps
        topi.nn.conv2d_winograd_nchw_without_weight_transform(
            te.placeholder((1, 4, 6, 6)), topi.nn.conv2d_winograd_weight_transform(W, 4), 1, 1, 1
        )
