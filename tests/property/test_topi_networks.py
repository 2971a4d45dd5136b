"""topi's operators of networks that have no row of relax against NumPy: pooling, moved and compared taps, gradients, recurrence, bits."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.topi.testing import adaptive_pool_python, conv_python, conv_transpose_python, pool_python

from .operator_draws import FLOATS, Values
from .topi_cases import Array, Case, Table, check_table, into

CASES: Table = {}
case = into(CASES)


def laid(array: Array, given: str, wanted: str) -> Array:
    return np.ascontiguousarray(array.transpose([given.index(letter) for letter in wanted]))


@case("pool1d")
@case("pool3d")
def _pool(d: Values) -> Case:
    dims = d.of((1, 3))
    spatial = "DHW"[3 - dims :]
    taps, steps, apart = ([d.number(1, 3) for _ in spatial] for _ in range(3))
    spans = [(t - 1) * a + 1 for t, a in zip(taps, apart, strict=True)]
    low, high = ([d.number(0, span - 1) for span in spans] for _ in range(2))
    extents = [d.number(max(1, span - a - b), 6 if dims == 1 else 4) for span, a, b in zip(spans, low, high, strict=True)]
    kind, up, counts_pad, dtype = d.of(("max", "avg")), d.coin(), d.coin(), d.of(("float32", "float64", "int32"))
    dtype = "float32" if kind == "avg" else dtype
    x = d.values((d.number(1, 2), d.number(1, 3), *extents), dtype, special=False)
    wanted = pool_python(x, taps, steps, apart, list(zip(low, high, strict=True)), kind, up, counts_pad)
    layout, pool = d.of((f"NC{spatial}", f"N{spatial}C")), getattr(topi.nn, f"pool{dims}d")
    return Case(
        lambda a: pool(a, taps, steps, apart, [*low, *high], kind, up, layout, counts_pad),
        (laid(x, f"NC{spatial}", layout),),
        laid(wanted, f"NC{spatial}", layout),
    )


@case("adaptive_pool1d")
@case("adaptive_pool3d")
def _adaptive(d: Values) -> Case:
    dims = d.of((1, 3))
    spatial = "DHW"[3 - dims :]
    x = d.values((d.number(1, 2), d.number(1, 3), *(d.number(1, 6) for _ in spatial)), d.of(FLOATS[:2]), special=False)
    size, kind, layout = [d.number(1, 7) for _ in spatial], d.of(("max", "avg")), d.of((f"NC{spatial}", f"N{spatial}C"))
    wanted = adaptive_pool_python(x, size, kind)
    pool = getattr(topi.nn, f"adaptive_pool{dims}d")
    return Case(lambda a: pool(a, size, kind, layout), (laid(x, f"NC{spatial}", layout),), laid(wanted, f"NC{spatial}", layout))


@case("pool_grad")
def _pool_grad(d: Values) -> Case:
    taps, steps = ([d.number(1, 3) for _ in range(2)] for _ in range(2))
    low, high = ([d.number(0, tap - 1) for tap in taps] for _ in range(2))
    extents = [d.number(max(1, tap - a - b), 5) for tap, a, b in zip(taps, low, high, strict=True)]
    kind, up, counts_pad, layout = d.of(("max", "avg")), d.coin(), d.coin(), d.of(("NCHW", "NHWC"))
    rooms = [e + a + b - t for e, a, b, t in zip(extents, low, high, taps, strict=True)]
    counts = [(-(-room // step) if up else room // step) + 1 for room, step in zip(rooms, steps, strict=True)]
    batch = d.number(1, 2), d.number(1, 2)
    x = (d.rng.permutation(prod((*batch, *extents))) / 8).astype("float32").reshape(*batch, *extents)
    grads, wanted = d.values((*batch, *counts), "float32", special=False), np.zeros(x.shape)
    for n, c, i, j in np.ndindex(*grads.shape):
        rows, columns = (
            [p for p in range(at * s - a, at * s - a + t) if 0 <= p < e]
            for at, s, a, t, e in zip((i, j), steps, low, taps, extents, strict=True)
        )
        own = np.ix_([n], [c], rows, columns)
        if rows and columns and kind == "avg":
            ends = zip((i, j), steps, taps, extents, low, high, strict=True)
            within = prod(min(at * s + t, a + e + b) - at * s for at, s, t, e, a, b in ends)
            wanted[own] += grads[n, c, i, j] / (within if counts_pad else len(rows) * len(columns))
        elif rows and columns:
            at = np.unravel_index(x[own].argmax(), (len(rows), len(columns)))
            wanted[n, c, rows[at[0]], columns[at[1]]] += grads[n, c, i, j]
    arrays = laid(grads, "NCHW", layout), laid(x, "NCHW", layout)
    return Case(
        lambda g, a: topi.nn.pool_grad(g, a, taps, steps, [*low, *high], kind, up, counts_pad, layout), arrays, laid(wanted, "NCHW", layout)
    )


@case("correlation_nchw")
def _correlation(d: Values) -> Case:
    size, far, step, apart, border = d.of((1, 3)), d.number(0, 2), d.number(1, 2), d.number(1, 2), d.number(0, 3)
    least = max(1, 2 * (far + size // 2) + 1 - 2 * border)
    shape = d.number(1, 2), d.number(1, 3), d.number(least, least + 3), d.number(least, least + 3)
    is_product, (a, b) = d.coin(), (d.values(shape, "float32", special=False) for _ in range(2))
    first, second = (np.pad(one.astype(float), [(0, 0), (0, 0), (border, border), (border, border)]) for one in (a, b))
    radius = far // apart
    height, width = (-(-(e - 2 * (far + size // 2)) // step) for e in first.shape[2:])
    moves = [(y * apart, x * apart) for y in range(-radius, radius + 1) for x in range(-radius, radius + 1)]
    wanted = np.empty((shape[0], len(moves), height, width))
    for q, (dy, dx) in enumerate(moves):
        for i, j in np.ndindex(height, width):
            y, x = i * step + far, j * step + far
            one, other = first[:, :, y : y + size, x : x + size], second[:, :, y + dy : y + dy + size, x + dx : x + dx + size]
            wanted[:, q, i, j] = (one * other if is_product else abs(one - other)).mean((1, 2, 3))
    return Case(lambda x, y: topi.nn.correlation_nchw(x, y, size, far, step, apart, border, is_product), (a, b), wanted)


@case("deformable_conv2d_nchw")
@case("deformable_conv2d_nhwc")
def _deformable(d: Values) -> Case:
    groups, moved, last = d.number(1, 2), d.number(1, 2), d.coin()
    channels, outputs = groups * moved * d.number(1, 2), groups * d.number(1, 2)
    taps, steps, apart, pads = ([d.number(low, 2) for _ in range(2)] for low in (1, 1, 1, 0))
    extents = [d.number(3, 5) for _ in range(2)]
    sizes = [(e + 2 * p - (t - 1) * a - 1) // s + 1 for e, p, t, a, s in zip(extents, pads, taps, apart, steps, strict=True)]
    x, w = (
        d.values((1, channels, *extents), "float32", special=False),
        d.values((outputs, channels // groups, *taps), "float32", special=False),
    )
    # Sixteenths off the whole: nothing lies on the border, where one rounding decides.
    offset = (d.rng.integers(-20, 20, (1, moved * prod(taps) * 2, *sizes)) / 8 + 1 / 16).astype("float32")
    wanted = np.zeros((1, outputs, *sizes))
    for o, i, j in np.ndindex(outputs, *sizes):
        for n, ky, kx in np.ndindex(channels // groups, *taps):
            c = o // (outputs // groups) * (channels // groups) + n
            tap = 2 * (c // (channels // moved) * prod(taps) + ky * taps[1] + kx)
            y = i * steps[0] - pads[0] + ky * apart[0] + offset[0, tap, i, j]
            z = j * steps[1] - pads[1] + kx * apart[1] + offset[0, tap + 1, i, j]
            if 0 <= y < extents[0] and 0 <= z < extents[1]:
                for row, column in np.ndindex(*extents):
                    wanted[0, o, i, j] += x[0, c, row, column] * w[o, n, ky, kx] * max(0, 1 - abs(y - row)) * max(0, 1 - abs(z - column))
    conv = topi.nn.deformable_conv2d_nhwc if last else topi.nn.deformable_conv2d_nchw
    layout, weights = ("NHWC", "HWIO") if last else ("NCHW", "OIHW")
    arrays = laid(x, "NCHW", layout), laid(offset, "NCHW", layout), laid(w, "OIHW", weights)
    return Case(lambda a, b, k: conv(a, b, k, steps, pads, apart, moved, groups, None), arrays, laid(wanted, "NCHW", layout))


def windows(d: Values, most: int = 6) -> tuple[list[int], list[int], list[tuple[int, int]], list[int]]:
    """Taps, strides, borders and extents of two axes."""
    taps, steps = ([d.number(1, 3) for _ in range(2)] for _ in range(2))
    pairs = [(d.number(0, tap - 1), d.number(0, tap - 1)) for tap in taps]
    return taps, steps, pairs, [d.number(max(1, tap - sum(pair)), most) for tap, pair in zip(taps, pairs, strict=True)]


@case("depthwise_conv2d_backward_input_nhwc")
@case("depthwise_conv2d_backward_weight_nhwc")
def _backward(d: Values) -> Case:
    taps, steps, pairs, extents = windows(d)
    batch, channels, multiplier = (d.number(1, 3) for _ in range(3))
    padding = [*(low for low, _ in pairs), *(high for _, high in pairs)]
    counts = [(e + sum(pair) - t) // s + 1 for e, pair, t, s in zip(extents, pairs, taps, steps, strict=True)]
    x, w = (
        d.values((batch, *extents, channels), "float32", special=False),
        d.values((*taps, channels, multiplier), "float32", special=False),
    )
    g = d.values((batch, *counts, channels * multiplier), "float32", special=False)
    by_x, by_w = np.zeros(x.shape), np.zeros(w.shape)
    for n, i, j, c, m, ky, kx in np.ndindex(batch, *counts, channels, multiplier, *taps):
        row, column = i * steps[0] + ky - pairs[0][0], j * steps[1] + kx - pairs[1][0]
        if 0 <= row < extents[0] and 0 <= column < extents[1]:
            by_x[n, row, column, c] += g[n, i, j, c * multiplier + m] * w[ky, kx, c, m]
            by_w[ky, kx, c, m] += g[n, i, j, c * multiplier + m] * x[n, row, column, c]
    if d.coin():
        return Case(lambda k, o: topi.nn.depthwise_conv2d_backward_input_nhwc(k, o, g.shape, x.shape, steps, padding), (w, g), by_x)
    return Case(lambda a, o: topi.nn.depthwise_conv2d_backward_weight_nhwc(a, o, g.shape, w.shape, steps, padding), (x, g), by_w)


@case("depthwise_conv2d_NCHWc")
@case("unpack_NCHWc_to_nchw")
def _depthwise_blocks(d: Values) -> Case:
    taps, steps, pairs, extents = windows(d)
    block, chunks, multiplier = d.number(1, 3), d.number(1, 2), d.number(1, 2)
    channels = block * chunks
    out_block = d.of([n for n in (1, 2, 3, 4) if channels * multiplier % n == 0])
    x, w = (
        d.values((1, channels, *extents), "float32", special=False),
        d.values((channels * multiplier, 1, *taps), "float32", special=False),
    )
    wanted = conv_python(x, w, steps, pairs, (1, 1), channels)
    data = np.ascontiguousarray(x.reshape(1, chunks, block, *extents).transpose(0, 1, 3, 4, 2))
    kernel = np.ascontiguousarray(w.reshape(-1, out_block, *taps).transpose(0, 2, 3, 1)[:, None, :, :, None])
    padding = [*(low for low, _ in pairs), *(high for _, high in pairs)]

    def make(a: Any, k: Any) -> Any:
        return topi.nn.unpack_NCHWc_to_nchw(topi.nn.depthwise_conv2d_NCHWc(a, k, steps, padding, 1), "float32")

    return Case(make, (data, kernel), wanted)


@case("conv2d_NCHWc_int8")
def _int8(d: Values) -> Case:
    taps, steps, pairs, extents = windows(d)
    chunks, groups, outs, lanes, dtype = d.number(1, 2), d.number(1, 2), d.number(1, 2), d.of((1, 4)), d.of(("uint8", "int8"))
    x = d.values((1, chunks * groups * 4, *extents), dtype, -9, 9)
    w = d.values((outs * lanes, chunks * groups * 4, *taps), "int8", -9, 9)
    wanted = conv_python(x, w, steps, pairs, (1, 1))
    wanted = wanted.reshape(1, outs, lanes, *wanted.shape[2:])
    data = np.ascontiguousarray(x.reshape(1, chunks, groups * 4, *extents).transpose(0, 1, 3, 4, 2))
    kernel = w.reshape(outs, lanes, chunks, groups, 4, *taps).transpose(0, 2, 5, 6, 3, 1, 4)
    kernel = np.ascontiguousarray(kernel[:, :, :, :, 0] if groups == 1 and d.coin() else kernel)
    padding = [*(low for low, _ in pairs), *(high for _, high in pairs)]
    return Case(lambda a, k: topi.nn.conv2d_NCHWc_int8(a, k, steps, padding, 1), (data, kernel), wanted.transpose(0, 1, 3, 4, 2))


@case("dense_pack")
def _dense_pack(d: Values) -> Case:
    m, k, block, blocks, has_bias = d.number(1, 5), d.number(1, 5), d.of((1, 3, 8)), d.number(1, 3), d.coin()
    x, w = d.values((m, k), "float32", special=False), d.values((blocks * block, k), "float32", special=False)
    bias = d.values((blocks * block,), "float32", special=False)
    given = np.ascontiguousarray(w.reshape(blocks, block, k).transpose(0, 2, 1)) if d.coin() else w
    return Case(topi.nn.dense_pack, (x, given, *[bias] * has_bias), x @ w.T + (bias if has_bias else 0))


@case("conv2d_winograd without weight transform")
def _winograd(d: Values) -> Case:
    taps, last = d.of((2, 3, 5)), d.coin()
    low, high = d.number(0, taps - 1), d.number(0, taps - 1)
    height, width = d.of((max(5, taps), 8)), d.number(taps, 9)
    x, w = (
        d.values((d.number(1, 2), d.number(1, 3), height, width), "float32", special=False),
        d.values((d.number(1, 3), 1, taps, taps), "float32", special=False),
    )
    w = np.repeat(w, x.shape[1], 1)
    wanted = conv_python(x, w, (1, 1), [(low, high)] * 2, (1, 1))
    m, layout = 4 if height % 8 == 0 else 2, "NHWC" if last else "NCHW"
    conv = topi.nn.conv2d_winograd_nhwc_without_weight_transform if last else topi.nn.conv2d_winograd_nchw_without_weight_transform

    def make(a: Any, k: Any) -> Any:
        return conv(a, topi.nn.conv2d_winograd_weight_transform(k, m), 1, [low, low, high, high], 1)

    return Case(make, (laid(x, "NCHW", layout), w), laid(wanted, "NCHW", layout), 1e-3)


@case("winograd_transform_matrices")
def _matrices(d: Values) -> Case:
    m, r = d.number(1, 4), d.number(2, 4)
    x, g = d.values((m + r - 1,), "float64", special=False), d.values((r,), "float64", special=False)
    wanted = np.array([x[i : i + r] @ g for i in range(m)])

    def make(data: Any, taps: Any) -> Any:
        a, b, c = topi.nn.winograd_transform_matrices(m, r, "float64")
        j, k = te.reduce_axis((0, m + r - 1)), te.reduce_axis((0, r))
        tile = te.compute(x.shape, lambda i: te.sum(b[j, i] * data[j], axis=j))
        weights = te.compute(x.shape, lambda i: te.sum(c[i, k] * taps[k], axis=k))
        n = te.reduce_axis((0, m + r - 1))
        return te.compute((m,), lambda i: te.sum(a[n, i] * tile[n] * weights[n], axis=n))

    return Case(make, (x, g), wanted)


@case("declaration_conv2d_transpose_impl conv2d_transpose_nchw_preprocess")
@case("declaration_conv3d_transpose_impl conv3d_transpose_ncdhw_preprocess")
def _transposed(d: Values) -> Case:
    dims = d.of((2, 3))
    taps, steps, extents = ([d.number(1, 3) for _ in range(dims)] for _ in range(3))
    more = [d.number(0, step - 1) for step in steps]
    pads = [d.number(0, min(tap - 1, ((e - 1) * s + tap - 1) // 2)) for tap, e, s in zip(taps, extents, steps, strict=True)]
    x, w = d.values((1, d.number(1, 3), *extents), "float32", special=False), d.values((1, d.number(1, 3), *taps), "float32", special=False)
    w = np.repeat(w, x.shape[1], 0)
    wanted = conv_transpose_python(x, w, steps, [(p, p) for p in pads], more)
    declared, prepared, conv = (
        (topi.nn.declaration_conv2d_transpose_impl, topi.nn.conv2d_transpose_nchw_preprocess, topi.nn.conv2d_nchw)
        if dims == 2
        else (topi.nn.declaration_conv3d_transpose_impl, topi.nn.conv3d_transpose_ncdhw_preprocess, topi.nn.conv3d_ncdhw)
    )
    if d.coin():
        return Case(lambda a, k: declared(a, k, steps, pads, "float32", more), (x, w), wanted)
    return Case(lambda a, k: conv(*prepared(a, k, steps, pads, "float32", more), 1, 0, 1), (x, w), wanted)


@case("lstm")
def _lstm(d: Values) -> Case:
    steps, batch, features, hidden = (d.number(1, 3) for _ in range(4))
    projected, layout, reverse = d.coin(), d.of(("IFGO", "IOFG", "GOFI")), d.coin()
    outputs = d.number(1, 3) if projected else hidden
    shapes = {"Xs": (steps, batch, features), "Wi": (4 * hidden, features), "Wh": (4 * hidden, outputs)}
    shapes |= {name: (4 * hidden,) for name in ("Bi", "Bh") if d.coin()} | ({"h_init": (batch, outputs)} if d.coin() else {})
    shapes |= {name: (batch, hidden) for name in ("c_init", "p_i", "p_f", "p_o") if d.coin()}
    shapes |= {"proj": (outputs, hidden)} if projected else {}
    given = {name: d.values(shape, "float32", -1, 1, special=False) for name, shape in shapes.items()}
    h, c = given.get("h_init", np.zeros((batch, outputs))), given.get("c_init", np.zeros((batch, hidden)))
    seen: list[list[Array]] = [[], []]
    for x in given["Xs"][::-1] if reverse else given["Xs"]:
        total = x @ given["Wi"].T + h @ given["Wh"].T + given.get("Bi", 0) + given.get("Bh", 0)
        part = {letter: total[:, n * hidden : (n + 1) * hidden] for n, letter in enumerate(layout)}
        forget, enter = (1 / (1 + np.exp(-part[k] - given.get(p, 0) * c)) for k, p in (("F", "p_f"), ("I", "p_i")))
        c = forget * c + enter * np.tanh(part["G"])
        h = np.tanh(c) / (1 + np.exp(-part["O"] - given.get("p_o", 0) * c))
        h = h @ given["proj"].T if projected else h
        seen[0].append(h)
        seen[1].append(c)
    names = list(given)
    return Case(
        lambda *t: topi.nn.lstm(**dict(zip(names, t, strict=True)), reverse=reverse, weight_layout=layout),
        tuple(given.values()),
        [np.stack(one) for one in seen],
    )


@pytest.mark.parametrize("name", CASES)
def test_networks(name: str) -> None:
    check_table(CASES, name)
