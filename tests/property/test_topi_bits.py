"""topi's products of few bits and of signs against integers in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import topi
from tensorexpr.topi.testing import conv_python

from .operator_draws import Values
from .topi_cases import Array, Case, Table, check_table, into

CASES: Table = {}
case = into(CASES)
WIDTHS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


def words(bits: Array, axis: int, dtype: str) -> Array:
    """Zeros and ones along an axis as words, the first one in the highest bit."""
    width = WIDTHS[dtype]
    rows = np.moveaxis(bits.astype(object), axis, -1)
    rows = rows.reshape(*rows.shape[:-1], -1, width) * np.array([1 << width - 1 - n for n in range(width)], object)
    return np.asarray(np.moveaxis(rows.sum(-1), -1, axis).astype(dtype))


def planes(x: Array, count: int) -> list[Array]:
    return [np.asarray(x >> b & 1) for b in range(count)]


def meaning(weight: Array, bits: int, unipolar: bool) -> Array:
    """What bits of weights stand for: each 0 or 1, or -1 or 1."""
    return np.asarray(sum((2 * p.astype(int) - 1 if unipolar else p.astype(int)) << b for b, p in enumerate(planes(weight, bits))))


@case("bitpack")
def _bitpack(d: Values) -> Case:
    word, bits = d.of(("uint8", "uint16", "uint32", "uint64")), d.number(1, 3)
    shape = [d.number(1, 3) for _ in range(d.number(1, 3))]
    axis = d.axis(len(shape))
    shape[axis] = WIDTHS[word] * d.number(1, 2)
    place = d.axis(len(shape) + 1)
    x = d.values(shape, d.of(("uint8", "int32", "uint32", "int8")), 0, 15)
    wanted = np.stack([words(plane, axis % len(shape), word) for plane in planes(x, bits)], place)
    return Case(lambda a: topi.nn.bitpack(a, bits, axis, place, word), (x,), wanted)


@case("binarize_pack")
def _binarize(d: Values) -> Case:
    shape = [d.number(1, 3) for _ in range(d.number(1, 3))]
    axis = d.axis(len(shape))
    shape[axis] = 32 * d.number(1, 2)
    x = d.values(shape, d.of(("float32", "int32", "float64")), -2, 2, special=False)
    given = None if axis in (-1, len(shape) - 1) and d.coin() else axis
    return Case(lambda a: topi.nn.binarize_pack(a, given), (x,), words(x >= 0, axis % len(shape), "uint32"))


@case("binary_dense")
def _binary_dense(d: Values) -> Case:
    m, n, k = d.number(1, 4), d.number(1, 4), 32 * d.number(1, 3)
    x, w = (d.rng.integers(0, 2, (rows, k)) for rows in (m, n))
    packed = tuple(words(one, 1, "uint32") for one in (x, w))
    return Case(topi.nn.binary_dense, packed, (2 * x - 1) @ (2 * w - 1).T)


@case("bitserial_dense")
def _dense(d: Values) -> Case:
    word, bits, unipolar = d.of(("uint8", "uint16", "uint32", "uint64")), (d.number(1, 3), d.number(1, 3)), d.coin()
    k = WIDTHS[word] * d.number(1, 2)
    x, w = (d.rng.integers(0, 1 << b, (d.number(1, 4), k)).astype(d.of(("uint8", "uint32", "int32"))) for b in bits)
    given = np.stack([words(plane, 1, word) for plane in planes(w, bits[1])], 1) if d.coin() else w
    wanted = x.astype(int) @ meaning(w, bits[1], unipolar).T
    return Case(lambda a, b: topi.nn.bitserial_dense(a, b, *bits, word, "int32", unipolar), (x, given), wanted)


@case("bitserial_conv2d_nchw")
@case("bitserial_conv2d_nhwc")
def _conv(d: Values) -> Case:
    word, bits, unipolar, last = d.of(("uint8", "uint16", "uint32")), (d.number(1, 2), d.number(1, 2)), d.coin(), d.coin()
    taps, steps = ([d.number(1, 3) for _ in range(2)] for _ in range(2))
    pairs = [(d.number(0, tap - 1), d.number(0, tap - 1)) for tap in taps]
    extents = [d.number(max(1, tap - sum(pair)), 5) for tap, pair in zip(taps, pairs, strict=True)]
    channels = WIDTHS[word] * d.number(1, 2)
    x = d.rng.integers(0, 1 << bits[0], (d.number(1, 2), channels, *extents)).astype("uint32")
    w = d.rng.integers(0, 1 << bits[1], (d.number(1, 3), channels, *taps)).astype("uint32")
    wanted = conv_python(x, meaning(w, bits[1], unipolar), steps, pairs, (1, 1))
    data = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if last else x
    kernel = np.ascontiguousarray(w.transpose(2, 3, 1, 0)) if last else w
    if d.coin():
        kernel = np.stack([words(plane, 2 if last else 1, word) for plane in planes(kernel, bits[1])], 4)
    conv = topi.nn.bitserial_conv2d_nhwc if last else topi.nn.bitserial_conv2d_nchw
    padding = [*(low for low, _ in pairs), *(high for _, high in pairs)]
    return Case(
        lambda a, k: conv(a, k, steps, padding, *bits, word, "int32", unipolar),
        (data, kernel),
        wanted.transpose(0, 2, 3, 1) if last else wanted,
    )


@pytest.mark.parametrize("name", CASES)
def test_bits(name: str) -> None:
    check_table(CASES, name)
