"""Taps that move, patches that are compared, grids, gradients of pooling and of depthwise convolutions, enlarged planes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.topi import testing
from tests.operators import Array, assert_same, run, values


@pytest.mark.parametrize("groups", [1, 2])
def test_taps_that_do_not_move_make_a_convolution(groups: int) -> None:
    x, w = values(1, 4, 5, 6), values(3, 4, 3, 3)
    offset = np.zeros((1, 18 * groups, 3, 6), "float32")
    wanted = testing.conv_python(x, w, (2, 1), [(1, 1), (1, 1)], (1, 1))
    assert_same(run(lambda a, o, k: topi.nn.deformable_conv2d_nchw(a, o, k, (2, 1), 1, 1, groups, 1, None), x, offset, w), wanted, 1e-4)


def test_taps_that_move() -> None:
    x, w, offset = values(1, 4, 4, 2), values(1, 1, 2, 3), values(1, 4, 4, 2, low=-2, high=2)
    wanted = np.zeros((1, 4, 4, 3))
    for y, column in np.ndindex(4, 4):
        at = np.array([y, column]) + offset[0, y, column]
        if (at < 0).any() or (at >= 4).any():
            continue
        low = np.floor(at).astype(int)
        for dy, dx in np.ndindex(2, 2):
            if low[0] + dy < 4 and low[1] + dx < 4:
                share = abs(1 - dy - (at - low)[0]) * abs(1 - dx - (at - low)[1])
                wanted[0, y, column] += share * x[0, low[0] + dy, low[1] + dx] @ w[0, 0]
    assert_same(run(lambda a, o, k: topi.nn.deformable_conv2d_nhwc(a, o, k, 1, 0, 1, 1, 1, "float32"), x, offset, w), wanted, 1e-4)
    with pytest.raises(DeclarationError, match="1 results can"):
        data = te.placeholder((1, 2, 4, 4))
        topi.nn.deformable_conv2d_nchw(data, data, te.placeholder((1, 1, 1, 1)), 1, 0, 1, 1, 2, None)


@pytest.mark.parametrize("product", [False, True])
def test_patches_are_compared(product: bool) -> None:
    a, b = values(1, 2, 5, 6), values(1, 2, 5, 6)
    found = run(lambda x, y: topi.nn.correlation_nchw(x, y, 3, 2, 1, 2, 2, product), a, b)
    left, right = (np.pad(x, [(0, 0), (0, 0), (2, 2), (2, 2)]) for x in (a, b))
    assert found.shape == (1, 9, 3, 4)
    for q, i, j in np.ndindex(9, 3, 4):
        y, x = i + 2 + (q // 3 - 1) * 2, j + 2 + (q % 3 - 1) * 2
        one, other = left[0, :, i + 2 : i + 5, j + 2 : j + 5], right[0, :, y : y + 3, x : x + 3]
        assert abs(found[0, q, i, j] - (one * other if product else np.abs(one - other)).mean()) < 1e-4


def sampled(data: Array, x: float, y: float, padding: str, nearest: bool) -> Array:
    """What lies at a point of [C, H, W]."""
    height, width = data.shape[1:]
    if padding == "border":
        x, y = float(np.clip(x, 0, width - 1)), float(np.clip(y, 0, height - 1))
    if padding == "reflection":
        x, y = (abs((v + e - 1) % (2 * (e - 1)) - (e - 1)) for v, e in ((x, width), (y, height)))
    total = np.zeros(data.shape[0])
    low = (np.rint(y), np.rint(x)) if nearest else (np.floor(y), np.floor(x))
    for dy, dx in np.ndindex(1, 1) if nearest else np.ndindex(2, 2):
        row, column = int(low[0]) + dy, int(low[1]) + dx
        if 0 <= row < height and 0 <= column < width:
            total += data[:, row, column] * (1 if nearest else (1 - abs(y - row)) * (1 - abs(x - column)))
    return total


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["nearest", "bilinear"])
def test_images_are_sampled_on_grids(padding: str, method: str) -> None:
    data, grid = values(1, 2, 4, 5), values(1, 2, 3, 3, low=-1.6, high=1.6)
    found = run(lambda a, g: topi.image.grid_sample(a, g, method, "NCHW", padding), data, grid)
    for i, j in np.ndindex(3, 3):
        x, y = (grid[0, 0, i, j] + 1) * 2, (grid[0, 1, i, j] + 1) * 1.5
        assert_same(found[0, :, i, j], sampled(data[0], float(x), float(y), padding, method == "nearest"), 1e-4)


def test_a_map_that_changes_nothing_gives_the_image_back() -> None:
    data = values(2, 3, 4, 5)
    maps = np.tile(np.eye(2, 3, dtype="float32"), (2, 1, 1))
    for method in ("bilinear", "bicubic", "nearest"):
        assert_same(run(lambda a, m, how=method: topi.image.grid_sample(a, topi.image.affine_grid(m, (4, 5)), how), data, maps), data, 1e-4)
    with pytest.raises(DeclarationError, match="bicubic for images only"):
        topi.image.grid_sample(te.placeholder((1, 1, 2, 2, 2)), te.placeholder((1, 3, 2, 2, 2)), "bicubic", "NCDHW")


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("last", [False, True])
def test_gradients_of_pooling(kind: str, last: bool) -> None:
    data, grads = values(1, 2, 6, 5), values(1, 2, 3, 3)
    wanted = np.zeros_like(data)
    for c, i, j in np.ndindex(2, 3, 3):
        rows, columns = ([p for p in range(2 * n - 1, 2 * n + 2) if 0 <= p < e] for n, e in ((i, 6), (j, 5)))
        window = np.ix_([0], [c], rows, columns)
        if kind == "avg":
            wanted[window] += grads[0, c, i, j] / (len(rows) * len(columns))
        else:
            place = np.unravel_index(data[window].argmax(), (len(rows), len(columns)))
            wanted[0, c, rows[place[0]], columns[place[1]]] += grads[0, c, i, j]
    order = (0, 2, 3, 1) if last else (0, 1, 2, 3)
    given = [np.ascontiguousarray(x.transpose(order)) for x in (grads, data)]
    found = run(lambda g, a: topi.nn.pool_grad(g, a, 3, 2, 1, kind, False, False, "NHWC" if last else "NCHW"), *given)
    assert_same(found, wanted.transpose(order))


def test_gradients_of_depthwise_convolutions() -> None:
    x, w, g = values(1, 5, 5, 2), values(3, 3, 2, 2), values(1, 3, 3, 4)

    def out(data: Array, weight: Array) -> float:
        made = run(lambda a, k: topi.nn.depthwise_conv2d_nhwc(a, k, 2, 1, 1), data, weight)
        return float((made.astype("float64") * g).sum())

    by_data = run(lambda k, o: topi.nn.depthwise_conv2d_backward_input_nhwc(k, o, g.shape, x.shape, 2, 1), w, g)
    by_weight = run(lambda a, o: topi.nn.depthwise_conv2d_backward_weight_nhwc(a, o, g.shape, w.shape, 2, 1), x, g)
    # The result is linear in both, so that a gradient's product with an argument is the result itself.
    assert abs((by_data * x).sum() - out(x, w)) < 1e-3
    assert abs((by_weight * w).sum() - out(x, w)) < 1e-3
    step = np.zeros_like(x)
    step[0, 1, 2, 1] = 1
    assert abs(by_data[0, 1, 2, 1] - out(step, w)) < 1e-4


@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise_convolutions_in_blocks(multiplier: int) -> None:
    x, w = values(1, 4, 5, 5), values(4, multiplier, 3, 3)
    wanted = run(lambda a, k: topi.nn.depthwise_conv2d_nchw(a, k, 1, 1, 1), x, w)
    blocks = x.reshape(1, 2, 2, 5, 5).transpose(0, 1, 3, 4, 2)
    kernel = w.reshape(2 * multiplier, 2, 3, 3).transpose(0, 2, 3, 1)[:, None, :, :, None]
    found = run(
        lambda a, k: topi.nn.depthwise_conv2d_NCHWc(a, k, 1, 1, 1, "NCHW2c", "NCHW2c"), *map(np.ascontiguousarray, (blocks, kernel))
    )
    assert_same(run(lambda a: topi.nn.unpack_NCHWc_to_nchw(a, "float32"), found), wanted, 1e-4)


def test_planes_and_volumes_are_enlarged_by_any_factor() -> None:
    x = values(1, 2, 3, 4, 2)
    assert_same(
        run(lambda a: topi.nn.upsampling3d(a, 2, 1, 3, coordinate_transformation_mode="asymmetric"), x), x.repeat(2, 2).repeat(3, 4)
    )
    plane = values(1, 2, 4, 2)
    assert_same(run(lambda a: topi.nn.upsampling(a, 1.5, 2), plane), plane[:, :, [0, 0, 1, 2, 2, 3]].repeat(2, 3))


def test_transposed_convolutions_are_convolutions_of_prepared_operands() -> None:
    x, w = values(1, 2, 3, 4), values(2, 3, 3, 2)

    def whole(a: Any, k: Any) -> Any:
        data, kernel = topi.nn.conv2d_transpose_nchw_preprocess(a, k, (2, 3), (1, 0), "float32", (1, 2))
        return topi.nn.conv2d_nchw(data, kernel, 1, 0, 1)

    wanted = testing.conv_transpose_python(x, w, (2, 3), [(1, 1), (0, 0)], (1, 2))
    assert_same(run(whole, x, w), wanted, 1e-4)
    assert_same(run(lambda a, k: topi.nn.declaration_conv2d_transpose_impl(a, k, (2, 3), (1, 0), None, (1, 2)), x, w), wanted, 1e-4)
