"""Operators of neural networks against direct NumPy definitions, through the reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.topi import testing
from tests.effort import share_of
from tests.operators import Array, assert_same, run, values


@st.composite
def convolutions(draw: st.DrawFn, dims: int) -> dict[str, Any]:
    """Extents, strides, paddings and groups of a small convolution that has at least one output."""
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    taps = [draw(st.integers(1, 3)) for _ in range(dims)]
    dilation = [draw(st.integers(1, 2)) for _ in range(dims)]
    padding = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(dims)]
    sizes = [draw(st.integers((k - 1) * d + 1, 7)) for k, d in zip(taps, dilation, strict=True)]
    return {
        "groups": groups,
        "data": (draw(st.integers(1, 2)), groups * draw(st.integers(1, 3)), *sizes),
        "outputs": groups * draw(st.integers(1, 3)),
        "taps": taps,
        "stride": [draw(st.integers(1, 3)) for _ in range(dims)],
        "dilation": dilation,
        "padding": padding,
    }


def flat(padding: list[tuple[int, int]]) -> list[int]:
    return [low for low, _ in padding] + [high for _, high in padding]


@settings(deadline=None, derandomize=True, max_examples=share_of(25))
@given(convolutions(1), convolutions(2), convolutions(3), st.booleans())
def test_convolutions_of_any_rank(one: Any, two: Any, three: Any, channels_last: bool) -> None:
    for case, layouts in ((one, ("NCW", "NWC", "WIO")), (two, ("NCHW", "NHWC", "HWIO")), (three, ("NCDHW", "NDHWC", "DHWIO"))):
        x = values(*case["data"])
        w = values(case["outputs"], case["data"][1] // case["groups"], *case["taps"])
        wanted = testing.conv_python(x, w, case["stride"], case["padding"], case["dilation"], case["groups"])
        rest: Any = (case["stride"], flat(case["padding"]), case["dilation"], case["groups"])
        if channels_last:
            last, kernel = np.moveaxis(x, 1, -1), np.moveaxis(w, (0, 1), (-1, -2))
            found = run(
                lambda s, t, r=rest, n=layouts: topi.nn.conv(s, t, r[0], r[1], r[2], r[3], n[1], n[2]),
                np.ascontiguousarray(last),
                np.ascontiguousarray(kernel),
            )
            assert_same(np.moveaxis(found, -1, 1), wanted, 1e-4)
        else:
            assert_same(run(lambda s, t, r=rest, n=layouts: topi.nn.conv(s, t, r[0], r[1], r[2], r[3], n[0]), x, w), wanted, 1e-4)


@settings(deadline=None, derandomize=True, max_examples=share_of(20))
@given(convolutions(2), st.integers(0, 2), st.data())
def test_transposed_convolutions(case: Any, extra: int, data: st.DataObject) -> None:
    x = values(*case["data"])
    w = values(case["data"][1], case["outputs"] // case["groups"], *case["taps"])
    more = [min(extra, s - 1) for s in case["stride"]]
    grown = [(n - 1) * s + k + m for n, s, k, m in zip(case["data"][2:], case["stride"], case["taps"], more, strict=True)]
    padding = [(data.draw(st.integers(0, (n - 1) // 2)), data.draw(st.integers(0, (n - 1) // 2))) for n in grown]
    wanted = testing.conv_transpose_python(x, w, case["stride"], padding, more, case["groups"])
    found = run(
        lambda s, t: topi.nn.group_conv2d_transpose_nchw(s, t, case["stride"], flat(padding), "float32", more, case["groups"]), x, w
    )
    assert_same(found, wanted, 1e-4)


def test_named_convolutions() -> None:
    x, w = values(1, 4, 6, 7), values(6, 4, 3, 2)
    wanted = testing.conv_python(x, w, (2, 1), [(1, 1), (0, 0)], (1, 2))
    assert_same(run(lambda s, t: topi.nn.conv2d_nchw(s, t, (2, 1), (1, 0), (1, 2)), x, w), wanted, 1e-4)
    assert_same(run(lambda s, t: topi.nn.conv2d(s, t, (2, 1), (1, 0), (1, 2), "NCHW"), x, w), wanted, 1e-4)
    last, kernel = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), np.ascontiguousarray(w.transpose(2, 3, 1, 0))
    assert_same(run(lambda s, t: topi.nn.conv2d_nhwc(s, t, (2, 1), (1, 0), (1, 2)), last, kernel), wanted.transpose(0, 2, 3, 1), 1e-4)
    hwcn = np.ascontiguousarray(x.transpose(2, 3, 1, 0))
    assert_same(run(lambda s, t: topi.nn.conv2d_hwcn(s, t, (2, 1), (1, 0), (1, 2)), hwcn, kernel), wanted.transpose(2, 3, 1, 0), 1e-4)
    data, blocked = x.reshape(1, 2, 2, 6, 7).transpose(0, 1, 3, 4, 2), w.reshape(2, 3, 2, 2, 3, 2).transpose(0, 2, 4, 5, 3, 1)
    found = run(lambda s, t: topi.nn.conv2d_NCHWc(s, t, (2, 1), (1, 0), (1, 2)), np.ascontiguousarray(data), np.ascontiguousarray(blocked))
    assert_same(found.transpose(0, 1, 4, 2, 3).reshape(wanted.shape), wanted, 1e-4)


@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise_convolutions(multiplier: int) -> None:
    x, w = values(2, 4, 6, 7), values(4, multiplier, 3, 3)
    wanted = testing.conv_python(x, w.reshape(4 * multiplier, 1, 3, 3), (1, 2), [(1, 1), (1, 1)], (1, 1), 4)
    assert_same(run(lambda s, t: topi.nn.depthwise_conv2d_nchw(s, t, (1, 2), 1, 1), x, w), wanted, 1e-4)
    last, kernel = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), np.ascontiguousarray(w.transpose(2, 3, 0, 1))
    assert_same(run(lambda s, t: topi.nn.depthwise_conv2d_nhwc(s, t, (1, 2), 1, 1), last, kernel), wanted.transpose(0, 2, 3, 1), 1e-4)


def test_convolution_of_integers_sums_in_the_given_dtype() -> None:
    x, w = values(1, 3, 5, 5, dtype="int8", low=-100, high=100), values(2, 3, 3, 3, dtype="int8", low=-100, high=100)
    found = run(lambda s, t: topi.nn.conv2d_nchw(s, t, 1, "SAME", 1, "int32"), x, w)
    assert found.dtype == np.int32
    assert_same(found, testing.conv_python(x, w, (1, 1), [(1, 1), (1, 1)], (1, 1)))


@pytest.mark.parametrize("outer", [4, 12])
def test_blocks_of_channels_in_groups(outer: int) -> None:
    # blocks of 12 results hold those of two groups
    x, w = values(1, 8, 5, 5), values(24, 2, 3, 3)
    data = x.reshape(1, 4, 2, 5, 5).transpose(0, 1, 3, 4, 2)
    kernel = w.reshape(24 // outer, outer, 1, 2, 3, 3).transpose(0, 2, 4, 5, 3, 1)
    found = run(lambda s, t: topi.nn.conv2d_NCHWc(s, t, 1, 1, 1), *map(np.ascontiguousarray, (data, kernel)))
    wanted = testing.conv_python(x, w, (1, 1), [(1, 1), (1, 1)], (1, 1), 4)
    assert_same(found.transpose(0, 1, 4, 2, 3).reshape(1, 24, 5, 5), wanted)
    with pytest.raises(DeclarationError, match="no whole groups of the 6 results"):
        topi.nn.conv2d_NCHWc(te.placeholder((1, 4, 5, 5, 2)), te.placeholder((3, 1, 3, 3, 2, 2)), 1, 1, 1)


def test_products() -> None:
    a, b, bias = values(3, 5), values(4, 5), values(4)
    assert_same(run(lambda s, t, u: topi.nn.dense(s, t, u), a, b, bias), a @ b.T + bias)
    assert_same(run(lambda s, t: topi.nn.matmul(s, t, transpose_a=True), np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)), a @ b.T)
    assert_same(run(lambda s, t: topi.nn.dense(s, t), values(2, 3, 5) * 0 + a, b), np.broadcast_to(a @ b.T, (2, 3, 4)))
    x, y = values(6, 3, 5), values(1, 4, 5)
    assert_same(run(topi.nn.batch_matmul, x, y), x @ y.transpose(0, 2, 1))
    flipped = np.ascontiguousarray(y.transpose(0, 2, 1))
    assert_same(run(lambda s, t: topi.nn.batch_matmul(s, t, transpose_b=False), x, flipped), x @ flipped)


@settings(deadline=None, derandomize=True, max_examples=share_of(40))
@given(convolutions(2), st.sampled_from(["max", "avg"]), st.booleans(), st.booleans())
def test_pooling(case: Any, kind: str, ceil: bool, include: bool) -> None:
    padding = case["padding"]
    x = values(*case["data"])
    rest = (case["taps"], case["stride"], case["dilation"])
    wanted = testing.pool_python(x, *rest, padding, kind, ceil, include)
    if 0 in wanted.shape:
        return
    assert_same(run(lambda t: topi.nn.pool2d(t, *rest, flat(padding), kind, ceil, "NCHW", include), x), wanted)


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_global_and_adaptive_pooling(kind: str) -> None:
    x = values(2, 3, 7, 8)
    assert_same(run(lambda t: topi.nn.global_pool(t, kind), x), testing.adaptive_pool_python(x, (1, 1), kind))
    # Whole cells, uneven ones on both axes or one, and windows that overlap: rows [0, 4) and [3, 7).
    for size in ((7, 4), (3, 5), (4, 8), (2, 8)):
        assert_same(run(lambda t, size=size: topi.nn.adaptive_pool(t, size, kind), x), testing.adaptive_pool_python(x, size, kind))


def test_softmax_and_log_softmax() -> None:
    x = values(3, 4, 5) * 40
    for axis in (0, 1, -1):
        assert_same(run(lambda t, axis=axis: topi.nn.softmax(t, axis), x), testing.softmax_python(x, axis))
        assert_same(run(lambda t, axis=axis: topi.nn.log_softmax(t, axis), x), testing.log_softmax_python(x.astype("float64"), axis), 1e-4)


def normal(x: Array, axes: tuple[int, ...]) -> Array:
    return testing.norm_python(x, axes, 1e-5)


def test_norms() -> None:
    x, gamma, beta = values(3, 4, 6), values(6), values(6)
    assert_same(run(lambda s, t, u: topi.nn.layer_norm(s, t, u, -1), x, gamma, beta), normal(x, (2,)) * gamma + beta, 1e-4)
    assert_same(run(lambda s, t: topi.nn.layer_norm(s, t, None, (1, 2)), x, values(4, 6) * 0 + 2), normal(x, (1, 2)) * 2, 1e-4)
    assert_same(run(lambda s, t: topi.nn.rms_norm(s, t, -1), x, gamma), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gamma, 1e-4)
    image, g, b = values(2, 4, 3, 5), values(4), values(4)
    column = (slice(None), None, None)
    assert_same(
        run(lambda s, t, u: topi.nn.instance_norm(s, t, u, 1, (2, 3)), image, g, b), normal(image, (2, 3)) * g[column] + b[column], 1e-4
    )
    groups = normal(image.reshape(2, 2, 2, 3, 5), (2, 3, 4)).reshape(image.shape)
    assert_same(run(lambda s, t, u: topi.nn.group_norm(s, t, u, 2, 1, (2, 3)), image, g, b), groups * g[column] + b[column], 1e-4)


def test_layer_norm_keeps_its_digits_when_the_mean_is_large() -> None:
    x = values(4, 64) + 4096
    ones, zeros = np.ones(64, "float32"), np.zeros(64, "float32")
    assert_same(run(lambda s, t, u: topi.nn.layer_norm(s, t, u, -1), x, ones, zeros), normal(x, (1,)), 2e-3)


def test_layer_norm_keeps_its_digits_when_the_first_element_is_far_off() -> None:
    x = values(4, 64)
    x[:, 0] += 1000
    ones, zeros = np.ones(64, "float32"), np.zeros(64, "float32")
    assert_same(run(lambda s, t, u: topi.nn.layer_norm(s, t, u, -1), x, ones, zeros), normal(x, (1,)), 1e-5)


def test_batch_norm() -> None:
    image = values(2, 4, 3, 5)
    gamma, beta, mean, variance = (values(4, low=0.5) for _ in range(4))
    column = (slice(None), None, None)
    wanted = (image - mean[column]) / np.sqrt(variance[column] + 1e-5) * gamma[column] + beta[column]
    found = run(topi.nn.batch_norm, image, gamma, beta, mean, variance)
    for one, other in zip(found, (wanted, mean, variance), strict=True):
        assert_same(one, other, 1e-4)
    trained = run(lambda x, g, b, m, v: topi.nn.batch_norm(x, g, b, m, v, training=True), image, gamma, beta, mean, variance)
    assert_same(trained[0], normal(image, (0, 2, 3)) * gamma[column] + beta[column], 1e-4)
    assert_same(trained[1], 0.9 * mean + 0.1 * image.mean((0, 2, 3)), 1e-4)


def test_lrn() -> None:
    x = values(1, 6, 2, 3)
    squares = np.pad(x**2, ((0, 0), (2, 2), (0, 0), (0, 0)))
    summed = sum(squares[:, n : n + 6] for n in range(5))
    assert_same(run(lambda t: topi.nn.lrn(t, 5), x), x / (2 + 0.0001 / 5 * summed) ** 0.75)


def test_activations() -> None:
    x, slope = values(2, 3, 4), values(3)
    assert_same(run(topi.nn.relu, x), np.maximum(x, 0))
    assert_same(run(lambda t: topi.nn.leaky_relu(t, 0.1), x), np.where(x > 0, x, 0.1 * x))
    assert_same(run(topi.nn.prelu, x, slope), np.where(x > 0, x, x * slope[:, None]))
    assert_same(run(topi.nn.silu, x), x / (1 + np.exp(-x)))
    from math import erf

    assert_same(run(topi.nn.gelu, x), 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2))))


def test_borders() -> None:
    x = values(3, 4)
    assert_same(run(lambda t: topi.nn.pad(t, (1, 0), (2, 3), 7), x), np.pad(x, ((1, 2), (0, 3)), constant_values=7))
    assert_same(run(lambda t: topi.nn.pad(t, (-1, 0), (0, -2)), x), x[1:, :2])
    assert_same(run(lambda t: topi.nn.mirror_pad(t, (2, 1), (1, 2)), x), np.pad(x, ((2, 1), (1, 2)), "symmetric"))
    assert_same(run(lambda t: topi.nn.mirror_pad(t, (2, 1), (1, 2), "REFLECT"), x), np.pad(x, ((2, 1), (1, 2)), "reflect"))
    spread = np.zeros((5, 10), "float32")
    spread[::2, ::3] = x
    assert_same(run(lambda t: topi.nn.dilate(t, (2, 3)), x), spread)


def test_planes_rearranged() -> None:
    x = values(2, 8, 4, 6)
    assert_same(run(topi.nn.flatten, x), x.reshape(2, -1))
    blocks = x.reshape(2, 2, 2, 2, 4, 6)
    assert_same(run(lambda t: topi.nn.depth_to_space(t, 2), x), blocks.transpose(0, 3, 4, 1, 5, 2).reshape(2, 2, 8, 12))
    crd = x.reshape(2, 2, 2, 2, 4, 6).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 8, 12)
    assert_same(run(lambda t: topi.nn.depth_to_space(t, 2, mode="CRD"), x), crd)
    assert_same(run(lambda t: topi.nn.depth_to_space(topi.nn.space_to_depth(t, 2), 2), x), x)
    assert_same(run(lambda t: topi.nn.upsampling(t, 2, 3), x), x.repeat(2, 2).repeat(3, 3))
    both = run(
        lambda t: topi.nn.batch_to_space_nd(topi.nn.space_to_batch_nd(t, (2, 2), (1, 0), (1, 0)), (2, 2), (1, 0), (1, 0)),
        x.transpose(0, 2, 3, 1).copy(),
    )
    assert_same(both, x.transpose(0, 2, 3, 1))


def test_bilinear_upsampling_of_a_plane_is_that_plane() -> None:
    rows, columns = np.mgrid[0:4, 0:5].astype("float32")
    x = (2 * rows + 3 * columns + 1)[None, None]
    found = run(lambda t: topi.nn.upsampling(t, 2, 2, method="bilinear"), x)
    at_rows, at_columns = (np.minimum(np.arange(2 * n) / 2, n - 1) for n in (4, 5))
    assert_same(found[0, 0], 2 * at_rows[:, None] + 3 * at_columns[None] + 1)
    corners = run(lambda t: topi.nn.upsampling(t, 2, 2, method="bilinear", align_corners=True), x)
    assert_same(corners[0, 0], 2 * (np.arange(8) * 3 / 7)[:, None] + 3 * (np.arange(10) * 4 / 9)[None] + 1)


BAD = [
    (lambda x, w: topi.nn.conv2d_nchw(x, w, 1, 0, 1), "the channels of the data .* must be equal, but they are 4 and 3"),
    (lambda x, w: topi.nn.conv2d_nchw(x, x, 9, "ANY", 1), 'takes "VALID", "SAME"'),
    (lambda x, w: topi.nn.conv2d_nchw(x, x, (1, 2, 3), 0, 1), "it takes one number, or 2"),
    (lambda x, w: topi.nn.group_conv2d_nchw(x, w, 1, 0, 1, 3), "can't be cut in 3 groups"),
    (lambda x, w: topi.nn.conv2d(x, w, 1, 0, 1, "NCXY"), "a convolution over"),
    (lambda x, w: topi.nn.conv1d(x, w), "it takes 3 dimensions"),
    (lambda x, w: topi.nn.conv2d_nchw(x, te.placeholder((2, 4, 9, 9)), 1, 0, 1), "fewer than the window's 9"),
    (lambda x, w: topi.nn.pool2d(x, 2, 2, 1, 0, "median"), 'takes "max" or "avg"'),
    (lambda x, w: topi.nn.pad(x, (1, 2)), "pad_before has 2 numbers"),
    (lambda x, w: topi.nn.group_norm(x, x, x, 3, 1, (2,)), "can't be cut in 3 groups"),
    (
        lambda x, w: topi.nn.group_norm(te.placeholder((1, te.var("c"), 6)), x, x, 3, 1, (2,)),
        "channels of a known number, not of c, axis 1",
    ),
    (lambda x, w: topi.nn.conv2d_transpose_nchw(x, x, 1, 0, None, 1), "must be less than strides"),
    (lambda x, w: topi.einsum("ij->k", te.placeholder((2, 2))), "takes letters of the operands"),
]


@pytest.mark.parametrize("make, message", BAD)
def test_arguments_that_do_not_fit(make: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        make(te.placeholder((1, 4, 6, 6), name="x"), te.placeholder((2, 3, 3, 3), name="w"))
