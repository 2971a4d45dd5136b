"""What operators mean, on NumPy's arrays, where NumPy has no function for it: the oracle of every pass and kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ... import topi
from ...te.elementwise import elementwise as of_pairs
from ...tir import intrin
from ...tir.arithmetic import const, maximum, minimum
from ...tir.dtype import parse_dtype, to_numpy
from ...tir.expr import PrimExpr
from ...topi.math import elementwise

Array: TypeAlias = Any
_erf = np.vectorize(math.erf, otypes=[np.float64])


def cast(x: Array, dtype: str) -> Array:
    """Elements in another dtype; towards zero from floats to integers."""
    with np.errstate(invalid="ignore"):
        return x.astype(to_numpy(dtype))


def erf(x: Array) -> Array:
    """The error function."""
    return (_erf(x.astype(np.float64)) if x.size else x).astype(x.dtype)


def round(x: Array) -> Array:
    """To the nearest integer, halves to even ones."""
    return np.rint(x) if x.dtype.kind == "f" else x


def rounded_to_bytes(x: Array) -> Array:
    """The numbers that unsigned bytes for an array stand for (ONNX, DynamicQuantizeLinear)."""
    low, high = np.minimum(x.min(initial=0), 0), np.maximum(x.max(initial=0), 0)
    scale = (high - low) / x.dtype.type(255) or x.dtype.type(1)
    zero = np.rint(-low / scale)
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale


def rsqrt(x: Array) -> Array:
    """One by the square root."""
    return (1 / np.sqrt(x)).astype(x.dtype)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


def divide(a: Array, b: Array) -> Array:
    """Of integers the quotient towards zero, as the loops have it."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    quotient = np.floor_divide(np.abs(a), np.abs(b))
    return np.where((a < 0) != (b < 0), -quotient, quotient).astype(a.dtype)


def at_least(value: Any, low: Any) -> PrimExpr:
    """The value, or `low` where it is less; of a float NaN stays, which `max(value, low)` would make `low`."""
    # max(low, value) would do, too, but expressions have their constants on the right. One instruction either way.
    return intrin.select(value < low, low, value) if parse_dtype(value.dtype).is_float else maximum(value, low)


def at_most(value: Any, high: Any) -> PrimExpr:
    """The value, or `high` where it is greater; NaN stays."""
    return intrin.select(value > high, high, value) if parse_dtype(value.dtype).is_float else minimum(value, high)


def power(a: Array, b: Array) -> Array:
    """a ** b; of integers as `te_power` has it."""
    if a.dtype.kind not in "iu":
        return np.power(a, b)
    bits = 8 * a.dtype.itemsize
    found = np.power(a, np.where(b >= bits, bits - 2 + (b & 1), np.maximum(b, 0)).astype(a.dtype))
    # Behind an unsigned exponent nothing is below 0.
    return np.where(b < 0, np.where(np.abs(a) == 1, np.where(b & 1, a, 1), 0), found).astype(a.dtype)


def te_power(x1: Any, x2: Any) -> Any:
    """The same of tensors. Powers of integers are exact, and wrap where they don't fit; of exponents below 0 they are cut towards zero.

    An exponent of as many as the dtype has bits, or more, only fits with bases of -1, 0 and 1; others wrap by a smaller one.
    """
    kind = parse_dtype(x1.dtype)
    if not kind.is_int:
        return topi.power(x1, x2)

    def one(base: Any, exponent: Any) -> Any:
        def k(value: int) -> Any:
            return const(value, x1.dtype)

        # 13 is 1101 in binary: base, base^4 and base^8 are multiplied. The last bits say enough of large exponents.
        left = intrin.select(exponent < k(kind.bits), exponent, k(kind.bits - 2) + (exponent & k(1)))
        found, square = k(1), base
        for bit in range(kind.bits.bit_length() - 1):
            found = found * intrin.select(((left >> k(bit)) & k(1)) == k(1), square, k(1))
            square = square * square
        if not kind.is_signed:
            return found
        turned = intrin.select(base == k(1), k(1), intrin.select(base == k(-1), intrin.select((exponent & k(1)) == k(1), base, k(1)), k(0)))
        return intrin.select(exponent < k(0), turned, found)

    return of_pairs("T_power", one, x1, x2)


def relu(x: Array) -> Array:
    """No less than 0."""
    return np.maximum(x, x.dtype.type(0))


def silu(x: Array) -> Array:
    """x times its sigmoid."""
    return x * sigmoid(x)


def gelu(x: Array) -> Array:
    """x times the normal distribution's function (Hendrycks and Gimpel 2016)."""
    return (x * 0.5 * (1 + erf(x / math.sqrt(2)))).astype(x.dtype)


def gelu_tanh(x: Array) -> Array:
    """The same by its approximation with tanh."""
    return (x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))).astype(x.dtype)


def te_gelu(x: Any, tanh: bool) -> Any:
    """GELU of a tensor."""

    def number(value: float) -> Any:
        return const(value, x.dtype)

    if tanh:
        cube = topi.multiply(x, topi.multiply(x, x))
        inner = topi.multiply(number(math.sqrt(2 / math.pi)), topi.add(x, topi.multiply(number(0.044715), cube)))
        inside = topi.tanh(inner)
    else:
        inside = topi.erf(topi.multiply(x, number(math.sqrt(0.5))))
    return topi.multiply(x, topi.multiply(number(0.5), topi.add(number(1.0), inside)))


def te_silu(x: Any) -> Any:
    """x times its sigmoid, elements of a tensor; of float32 below -87, where that is -1.4e-36 at most, 0.

    From -92 on the product is below the least normal number, and the multiply-adds of the convolution behind it take a hundred times as
    long on each: 3,352 of 204,800 elements made one of 0.13 ms one of 2.8 ms (Ice Lake server, two cores).
    """
    if x.dtype != "float32":
        return topi.multiply(x, topi.sigmoid(x))
    least, zero = const(-87.0, x.dtype), const(0.0, x.dtype)
    # The sigmoid is 0, not the product: -inf * 0 is NaN, as it is by the formula. NaN isn't below anything, so it stays what it is.
    return elementwise(x, lambda v: v * intrin.select(v < least, zero, intrin.sigmoid(v)), "T_silu")


def softmax(x: Array, axis: int) -> Array:
    """Exponentials by their sum along an axis."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x: Array, axis: int) -> Array:
    """The logarithm of that."""
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def normalized(x: Array, axes: Sequence[int], epsilon: float) -> Array:
    """With a mean of 0 and a variance of 1 along axes, in float64."""
    wide = x.astype(np.float64)
    mean, variance = wide.mean(tuple(axes), keepdims=True), wide.var(tuple(axes), keepdims=True)
    return (wide - mean) / np.sqrt(variance + epsilon)


def windows(x: Array, size: Sequence[int], strides: Sequence[int], dilation: Sequence[int]) -> Array:
    """A view of the windows on the last axes: positions, then offsets inside a window."""
    rank, reach = len(size), [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    # Windows as wide as the taps reach, of which every d-th element is one; nothing is copied.
    view = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(-rank, 0)))
    steps = [slice(None)] * (x.ndim - rank)
    index = (*steps, *(slice(None, None, s) for s in strides), *(slice(None, None, d) for d in dilation))
    return view[index]
