"""Numbers of few bits, signs, and quantisation in floats, against integer arithmetic in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te, topi
from tensorexpr.errors import DeclarationError
from tensorexpr.topi import testing
from tests.operators import RNG, Array, assert_same, run, values


def small(*shape: int, bits: int) -> Array:
    return RNG.integers(0, 1 << bits, shape).astype("uint32")


def weights_of(kernel: Array, bits: int, unipolar: bool) -> Array:
    """What a kernel of bits stands for: each bit 0 or 1, or -1 or 1."""
    planes = [(kernel >> b & 1).astype(np.int64) for b in range(bits)]
    return np.asarray(sum((2 * plane - 1 if unipolar else plane) << b for b, plane in enumerate(planes)))


@pytest.mark.parametrize(("bits", "dtype"), [(1, "uint8"), (3, "uint16"), (2, "uint32")])
def test_bit_planes(bits: int, dtype: str) -> None:
    data = small(3, 64, bits=4)
    width = np.dtype(dtype).itemsize * 8
    found = run(lambda x: topi.nn.bitpack(x, bits, 1, 0, dtype), data)
    assert found.dtype == dtype and found.shape == (bits, 3, 64 // width)
    for b in range(bits):
        for k in range(width):
            assert_same(found[b] >> (width - 1 - k) & 1, data[:, k::width] >> b & 1)


@pytest.mark.parametrize("unipolar", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_products_of_few_bits(unipolar: bool, packed: bool) -> None:
    data, weight = small(2, 32, bits=2), small(4, 32, bits=2)
    wanted = data.astype(np.int64) @ weights_of(weight, 2, unipolar).T
    given = run(lambda w: topi.nn.bitpack(w, 2, 1, 1, "uint32"), weight) if packed else weight
    assert_same(run(lambda x, w: topi.nn.bitserial_dense(x, w, 2, 2, "uint32", "int16", unipolar), data, given), wanted)


@pytest.mark.parametrize("unipolar", [False, True])
def test_convolutions_of_few_bits(unipolar: bool) -> None:
    data, kernel = small(1, 8, 4, 5, bits=2), small(3, 8, 3, 3, bits=1)
    wanted = testing.conv_python(data, weights_of(kernel, 1, unipolar), (2, 1), [(0, 0), (0, 0)], (1, 1))
    rest: Any = ((2, 1), 0, 2, 1, "uint8", "int32", unipolar)
    assert_same(run(lambda x, w: topi.nn.bitserial_conv2d_nchw(x, w, *rest), data, kernel), wanted)
    moved = run(
        lambda x, w: topi.nn.bitserial_conv2d_nhwc(x, w, *rest),
        np.ascontiguousarray(data.transpose(0, 2, 3, 1)),
        np.ascontiguousarray(kernel.transpose(2, 3, 1, 0)),
    )
    assert_same(moved.transpose(0, 3, 1, 2), wanted)


def test_products_of_signs() -> None:
    data, weight = values(2, 64), values(3, 64)
    packed = [run(topi.nn.binarize_pack, x) for x in (data, weight)]
    found = run(topi.nn.binary_dense, *packed)
    assert_same(found, np.where(data >= 0, 1, -1) @ np.where(weight >= 0, 1, -1).T)


def test_words_must_be_full() -> None:
    with pytest.raises(DeclarationError, match="the extent 20 of axis 1 is no multiple of the 8 bits of a word"):
        topi.nn.bitpack(te.placeholder((2, 20), "uint8"), 1, 1, 1, "uint8")
    with pytest.raises(DeclarationError, match="bits are packed in uint8, uint16, uint32, uint64, not in int32"):
        topi.nn.bitpack(te.placeholder((2, 32), "uint8"), 1, 1, 1, "int32")


@pytest.mark.parametrize("dtype", ["disable", "int8", "uint8", "int32"])
def test_quantisation_in_floats(dtype: str) -> None:
    x, scale, zero = values(3, 4, low=-300, high=300), np.array([0.5, 1, 2, 3], "float32"), np.array([0, 1, -2, 3], "int32")
    code = np.array(topi.nn.SQNN_DTYPE_TO_CODE[dtype], "int32")
    quantised = run(lambda a, d, s, z: topi.nn.simulated_quantize(a, d, s, z, 1), x, code, scale, zero)
    if dtype == "disable":
        assert_same(quantised, x)
    else:
        limits = np.iinfo(dtype)
        assert_same(quantised, np.clip(np.round(x / scale) + zero, limits.min, limits.max))
    back = run(lambda a, d, s, z: topi.nn.simulated_dequantize(a, d, s, z, 1), quantised, code, scale, zero)
    assert_same(back, quantised if dtype == "disable" else (quantised - zero) * scale)
    assert topi.nn.SQNN_CODE_TO_DTYPE[int(code)] == dtype


def test_convolutions_of_bytes_in_larger_blocks() -> None:
    data, kernel = RNG.integers(0, 9, (1, 2, 4, 4, 8)).astype("uint8"), RNG.integers(-4, 5, (1, 2, 3, 3, 2, 4, 4)).astype("int8")
    plain = data.transpose(0, 1, 4, 2, 3).reshape(1, 16, 4, 4)
    weights = kernel.transpose(0, 5, 1, 4, 6, 2, 3).reshape(4, 16, 3, 3)
    wanted = testing.conv_python(plain, weights, (1, 1), [(1, 1), (1, 1)], (1, 1))
    found = run(lambda a, k: topi.nn.conv2d_NCHWc_int8(a, k, 1, 1, 1, "NCHW8c", "NCHW4c", "int32", n_elems=4), data, kernel)
    assert_same(found[:, 0].transpose(0, 3, 1, 2), wanted)
