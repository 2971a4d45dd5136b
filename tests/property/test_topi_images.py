"""topi's operators on images against NumPy: resizes by matrices of weights along each axis, samples point by point."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tensorexpr import topi

from .operator_draws import FLOATS, Values
from .topi_cases import Array, Case, Table, check, check_table, index, into

CASES: Table = {}
case = into(CASES)
MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn")
ROUND: dict[str, Any] = {
    "round": lambda x: np.copysign(np.floor(abs(x) + 0.5), x),
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": lambda x: np.floor(x + 1e-5),
    "ceil": lambda x: np.ceil(x - 1e-5),
}


def place_of(mode: str, i: int, size: int, target: int) -> float:
    """Where element i of `target` lies among `size` (ONNX, "Resize")."""
    if mode == "align_corners":
        return i * (size - 1) / (target - 1) if target > 1 else 0.0
    if mode == "asymmetric":
        return i * size / target
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) * size / target
    return 0.0 if mode == "pytorch_half_pixel" and target == 1 else (i + 0.5) * size / target - 0.5


def kernel(distance: float, a: float) -> float:
    """Keys' cubic kernel."""
    x = abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def weights(places: list[float], size: int, method: str, rounding: str = "", alpha: float = -0.5, exclude: bool = False) -> Array:
    """[results, elements] of one axis."""
    made = np.zeros((len(places), size))
    for i, x in enumerate(places):
        low = int(np.floor(x))
        if method == "nearest_neighbor":
            taps = {int(ROUND[rounding](x)): 1.0}
        elif method == "linear":
            taps = {low: 1 - (x - low), low + 1: x - low}
        else:
            taps = {n: kernel(x - n, alpha) for n in range(low - 1, low + 3)}
            if exclude:
                taps = {n: w for n, w in taps.items() if 0 <= n < size}
                taps = {n: w / sum(taps.values()) for n, w in taps.items()}
        for n, w in taps.items():
            made[i, min(max(n, 0), size - 1)] += w
    return made


def along_axes(data: Array, matrices: list[Array], places: list[int]) -> Array:
    for matrix, place in zip(matrices, places, strict=True):
        data = np.moveaxis(np.tensordot(matrix, data, (1, place)), 0, place)
    return data


@case("resize1d")
@case("resize2d")
@case("resize3d")
def _resize(d: Values) -> Case:
    dims, method = d.number(1, 3), d.of(("nearest_neighbor", "linear", "cubic"))
    spatial = "DHW"[3 - dims :]
    layout = d.of((f"NC{spatial}", f"N{spatial}C", f"NC{spatial}2c"))
    mode = d.of(MODES if method == "nearest_neighbor" else MODES[:-1])
    # Coordinates are float32: at a half they would be rounded either way, so that roundings at halves have sizes that divide exactly.
    rounding, alpha, exclude = d.of(("floor", "ceil", "")), d.of((-0.5, -0.75)), d.coin()
    letters = layout.replace("2", "")
    extents = {letter: d.number(1, 5) for letter in letters} | {"c": 2}
    x = d.values([extents[letter] for letter in letters], d.of(FLOATS[:2]), special=False)
    size = [d.number(1, 6) for _ in spatial]
    chosen = rounding or "floor"
    if mode == "align_corners" and not rounding:
        chosen = "round"
        size = [d.of((1, extents[letter], 2 * extents[letter] - 1)) for letter in spatial]
    matrices = [
        weights([place_of(mode, i, extents[letter], n) for i in range(n)], extents[letter], method, chosen, alpha, exclude)
        for letter, n in zip(spatial, size, strict=True)
    ]
    wanted = along_axes(x, matrices, [letters.index(letter) for letter in spatial])
    resize = getattr(topi.image, f"resize{dims}d")
    return Case(lambda a: resize(a, None, size, layout, method, mode, rounding, alpha, exclude), (x,), wanted)


@case("resize of integers")
def _resize_integers(d: Values) -> Case:
    x = d.values((1, 2, d.number(1, 4), d.number(1, 4)), d.of(("uint8", "int32", "int64")), 0, 200)
    size, mode, rounding = [d.of((1, n, 2 * n, 4 * n)) for n in x.shape[2:]], d.of(("asymmetric", "half_pixel")), d.of(list(ROUND))
    matrices = [
        weights([place_of(mode, i, e, n) for i in range(n)], e, "nearest_neighbor", rounding)
        for e, n in zip(x.shape[2:], size, strict=True)
    ]
    wanted = along_axes(x, matrices, [2, 3])
    return Case(lambda a: topi.image.resize2d(a, None, size, "NCHW", "nearest_neighbor", mode, rounding), (x,), wanted)


@case("upsampling3d")
def _upsampling3d(d: Values) -> Case:
    layout, method = d.of(("NCDHW", "NDHWC")), d.of(("nearest_neighbor", "trilinear"))
    mode = d.of(("half_pixel", "align_corners", "asymmetric") if method == "trilinear" else ("asymmetric",))
    x = d.values([d.number(1, 3) for _ in layout], "float32", special=False)
    scales = [d.of((1, 2, 3, 1.5)) for _ in "DHW"]
    matrices, places = [], [layout.index(letter) for letter in "DHW"]
    for scale, place in zip(scales, places, strict=True):
        e = x.shape[place]
        n = round(e * scale)
        matrices.append(weights([place_of(mode, i, e, n) for i in range(n)], e, "linear" if method == "trilinear" else method, "floor"))
    wanted = along_axes(x, matrices, places)
    return Case(lambda a: topi.nn.upsampling3d(a, scales[0], scales[1], scales[2], layout, method, mode), (x,), wanted)


@case("crop_and_resize")
def _crop(d: Values) -> Case:
    layout, method, fill = d.of(("NCHW", "NHWC")), d.of(("bilinear", "nearest_neighbor")), d.of((None, 7.0))
    images, channels, height, width = (d.number(1, 4) for _ in range(4))
    x = d.values((images, channels, height, width), "float32", special=False)
    count, size = d.number(1, 3), (d.number(1, 4), d.number(1, 4))
    # Sixteenths: coordinates are exact, and no half of them is rounded both ways.
    boxes = d.rng.choice([0, 0.25, 0.5, 1, -0.125, 1.25], (count, 4)).astype("float32")
    which = d.rng.integers(0, images, count).astype("int32")
    wanted = np.empty((count, channels, *size))
    for n in range(count):
        rows, columns = (
            [
                (low + high) * (e - 1) / 2 if m == 1 else low * (e - 1) + i * (high - low) * (e - 1) / (m - 1) for i in range(m)
            ]
            for low, high, e, m in zip(boxes[n, :2].astype(float), boxes[n, 2:].astype(float), (height, width), size, strict=True)
        )  # fmt: skip
        matrices = [
            weights(places, e, "linear" if method == "bilinear" else method, "round") for places, e in ((rows, height), (columns, width))
        ]
        inside = [[-1e-5 <= p <= e - 1 + 1e-5 for p in places] for places, e in ((rows, height), (columns, width))]
        wanted[n] = np.where(np.logical_and.outer(inside[0], inside[1]), along_axes(x[which[n]], matrices, [1, 2]), fill or 0)
    order = (0, 1, 2, 3) if layout == "NCHW" else (0, 2, 3, 1)
    data = np.ascontiguousarray(x.transpose(order))
    return Case(
        lambda a, b, i: topi.image.crop_and_resize(a, b, i, size, layout, method, fill), (data, boxes, which), wanted.transpose(order)
    )


@case("dilation2d_nchw")
@case("dilation2d_nhwc")
def _dilation(d: Values) -> Case:
    taps, steps, apart = ([d.number(1, 3) for _ in range(2)] for _ in range(3))
    spans = [(t - 1) * a + 1 for t, a in zip(taps, apart, strict=True)]
    padding = [d.number(0, span - 1) for span in spans * 2]
    extents = [d.number(max(1, span - low - high), 6) for span, low, high in zip(spans, padding[:2], padding[2:], strict=True)]
    dtype, last = d.of(("float32", "int8", "int32", "uint8", "float64")), d.coin()
    x, w = (d.values(shape, dtype, -9, 9, special=False) for shape in ((d.number(1, 2), d.number(1, 3), *extents), (1, *taps)))
    w = np.repeat(w, x.shape[1], 0) + np.arange(x.shape[1], dtype=dtype)[:, None, None]
    sizes = [(e + low + high - s) // k + 1 for e, low, high, s, k in zip(extents, padding[:2], padding[2:], spans, steps, strict=True)]
    least = np.finfo(dtype).min if "float" in dtype else np.iinfo(dtype).min
    wanted = np.full((*x.shape[:2], *sizes), least, x.dtype)
    for i, j, dy, dx in product(*map(range, (*sizes, *taps))):
        row, column = (n * k + t * a - low for n, k, t, a, low in zip((i, j), steps, (dy, dx), apart, padding[:2], strict=True))
        if 0 <= row < extents[0] and 0 <= column < extents[1]:
            wanted[:, :, i, j] = np.maximum(wanted[:, :, i, j], x[:, :, row, column] + w[:, dy, dx])
    if not last:
        return Case(lambda a, k: topi.image.dilation2d_nchw(a, k, steps, padding, apart), (x, w), wanted)
    arrays = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), np.ascontiguousarray(w.transpose(1, 2, 0))
    return Case(lambda a, k: topi.image.dilation2d_nhwc(a, k, steps, padding, apart), arrays, wanted.transpose(0, 2, 3, 1))


@case("affine_grid")
def _affine_grid(d: Values) -> Case:
    maps, (height, width) = d.values((d.number(1, 3), 2, 3), d.of(FLOATS[:2]), special=False), (d.number(1, 4), d.number(1, 4))
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    wanted = np.einsum("ndk,khw->ndhw", maps, np.stack([x, y, np.ones_like(x)]))
    return Case(lambda m: topi.image.affine_grid(m, (height, width)), (maps,), wanted)


def folded(x: float, size: int, padding: str, align: bool) -> float:
    """A coordinate of a sample, brought back inside if the padding says so."""
    if padding == "reflection":
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        while not low <= x <= high and high > low:
            x = 2 * low - x if x < low else 2 * high - x
        x = x if high > low else 0.0
    return x if padding == "zeros" else min(max(x, 0.0), size - 1.0)


def sampled(data: Array, point: list[float], method: str, padding: str, align: bool) -> Array:
    """data [C, ...] at coordinates of its axes."""
    choices = []
    for x, size in zip(point, data.shape[1:], strict=True):
        if method == "bicubic":
            low = int(np.floor(x))
            taps = [(int(folded(n, size, padding, align)), kernel(x - n, -0.75)) for n in range(low - 1, low + 3)]
        else:
            at = folded(x, size, padding, align)
            low = int(np.rint(at)) if method == "nearest" else int(np.floor(at))
            taps = [(low, 1.0)] if method == "nearest" else [(low, 1 - (at - low)), (low + 1, at - low)]
        choices.append([(n, w) for n, w in taps if 0 <= n < size])
    total = np.zeros(data.shape[0])
    for chosen in product(*choices):
        total += data[index(slice(None), *(n for n, _ in chosen))] * np.prod([w for _, w in chosen])
    return total


@case("grid_sample")
@case("grid_sample of volumes")
def _grid_sample(d: Values, least: int = 1) -> Case:
    dims = d.of((2, 2, 3))
    method = d.of(("nearest", "bilinear", "bicubic") if dims == 2 else ("nearest", "bilinear", "trilinear"))
    padding, align = d.of(("zeros", "border", "reflection")), d.coin()
    x = d.values([d.number(least, 4) for _ in range(2 + dims)], "float32", special=False)
    points = [d.number(1, 3) for _ in range(dims)]
    grid = d.values((x.shape[0], dims, *points), "float32", -2.5, 2.5, special=False)
    wanted = np.empty((*x.shape[:2], *points))
    for n in range(x.shape[0]):
        for at in np.ndindex(*points):
            own = grid[index(n, slice(None), *at)][::-1].astype(float)
            point = [(v + 1) * (e - 1) / 2 if align else ((v + 1) * e - 1) / 2 for v, e in zip(own, x.shape[2:], strict=True)]
            wanted[index(n, slice(None), *at)] = sampled(x[n], point, method, padding, align)
    return Case(lambda a, g: topi.image.grid_sample(a, g, method, "NCHW" if dims == 2 else "NCDHW", padding, align), (x, grid), wanted)


@pytest.mark.parametrize("name", CASES)
def test_images(name: str) -> None:
    check_table(CASES, name, 8)


@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
def test_a_reflection_between_one_border_and_itself_stays_there(method: str) -> None:
    """Aligned corners of one element leave no way to be thrown back."""
    x, grid = np.arange(1, 5, dtype="float32").reshape(1, 1, 1, 4), np.array([0.3, -0.9], "float32").reshape(1, 2, 1, 1)
    wanted = sampled(x[0], [0.0, 1.3 * 1.5], method, "reflection", True).reshape(1, 1, 1, 1)
    check(Case(lambda a, g: topi.image.grid_sample(a, g, method, "NCHW", "reflection"), (x, grid), wanted))
