"""Conversions between all dtypes, and the 16-bit floats on CPUs with and without hardware for them."""

from __future__ import annotations

import math
from functools import partial

import ml_dtypes
import numpy as np
import pytest

from tensorexpr.target import Target
from tensorexpr.tir import arithmetic as ops
from tensorexpr.tir import intrin
from tensorexpr.tir.dtype import int_limits, narrowed, parse_dtype, rounded_float, to_numpy, with_lanes, wrap_int
from tensorexpr.tir.expr import Cast, PrimExpr
from tensorexpr.tir.interpreter.arithmetic import converted

from .harness import Array, apply

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
CPUS = ("llvm", "llvm -mcpu=haswell", "llvm -mcpu=x86-64")


def _cast(x: PrimExpr, dtype: str) -> PrimExpr:
    return Cast(with_lanes(dtype, parse_dtype(x.dtype).lanes), x)


def _integers(dtype: str) -> Array:
    low, high = int_limits(dtype)
    return np.array([v for v in (0, 1, 2, 100, 127, 128, 255, -1, -128, low, high, high // 3) if low <= v <= high], to_numpy(dtype))


@pytest.mark.parametrize("lanes", (1, 7))
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_anything(source: str, lanes: int) -> None:
    a = _integers(source)
    for wanted in INTEGERS:
        expected = [wrap_int(v, wanted) for v in a.tolist()]
        assert apply(lambda x, w=wanted: _cast(x, w), wanted, a, lanes=lanes).tolist() == expected, wanted
    assert (apply(lambda x: _cast(x, "bool"), "bool", a, lanes=lanes) == (a != 0)).all()
    for wanted in ("float32", "float64"):
        assert (apply(lambda x, w=wanted: _cast(x, w), wanted, a, lanes=lanes) == a.astype(to_numpy(wanted))).all()
    small = a[np.abs(a.astype(np.float64)) <= 40000]
    for wanted in ("float16", "bfloat16"):
        expected_floats = small.astype(np.float64).astype(to_numpy(wanted))
        assert (apply(lambda x, w=wanted: _cast(x, w), wanted, small, lanes=lanes) == expected_floats).all()


def _to_nearest(value: int, bits: int) -> float:
    """An integer rounded once to a significand of `bits` bits, to even."""
    cut = max(0, abs(value).bit_length() - bits)
    kept, lost = divmod(abs(value), 1 << cut)
    kept += 2 * lost > 1 << cut or (2 * lost == 1 << cut and kept & 1 == 1)
    return math.copysign(float(kept << cut), value)


@pytest.mark.parametrize("source", ("int64", "uint64"))
def test_large_integers_are_rounded_once(source: str) -> None:
    # A tie of bfloat16, its neighbours, and what float64 and float32 would make a tie.
    ties = [(1 << 62) + (odd << 54) for odd in (1, 3)] + [(1 << 40) + (1 << 32), (1 << 54) + (1 << 46)]
    near = [tie + step for tie in ties for step in (0, 1, -1, 3, -3, 1 << 20, -(1 << 20))]
    low, high = int_limits(source)
    numbers = [*near, *((-v for v in near) if low else ((v << 1) + 1 for v in near)), low, high, 0, 3, 1 << 53, (1 << 53) + 1, -(low != 0)]
    expected = [_to_nearest(v, 8) for v in numbers]
    a = np.array(numbers, to_numpy(source))
    for lanes in (1, len(numbers)):
        assert apply(lambda x: _cast(x, "bfloat16"), "bfloat16", a, lanes=lanes).astype(np.float64).tolist() == expected
    # The reference and constants agree with compiled code.
    assert narrowed(a, "bfloat16").astype(np.float64).tolist() == expected
    assert [float(converted(partial(int, v), source, "bfloat16")()) for v in numbers] == expected
    assert [ops.cast(ops.const(v, source), "bfloat16").value for v in numbers] == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(("wanted", "fraction"), (("bfloat16", 7), ("float16", 10), ("e4m3_float8", 3), ("e5m2_float8", 2)))
def test_doubles_are_rounded_once(wanted: str, fraction: int) -> None:
    tie = 1 + 2.0 ** -(fraction + 1)
    values = [tie, tie + 2.0**-40, -tie - 2.0**-40, tie - 2.0**-40, 3 * tie + 2.0**-40]
    upper = 1 + 2.0**-fraction
    expected = [1.0, upper, -upper, 1.0]
    for lanes in (1, len(values)):
        got = apply(lambda x: _cast(x, wanted), wanted, np.array(values), lanes=lanes).astype(np.float64).tolist()
        assert got[:4] == expected
        assert got == narrowed(np.array(values), wanted).astype(np.float64).tolist()
    assert got == [float(converted(partial(float, v), "float64", wanted)()) for v in values] == [rounded_float(v, wanted) for v in values]


@pytest.mark.parametrize("lanes", (1, 16))
@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("wanted", INTEGERS)
def test_floats_to_integers_truncate_and_saturate(source: str, wanted: str, lanes: int) -> None:
    values = np.array([0.0, -0.0, 0.5, -0.5, 1.75, -1.75, 100.9, -100.9, 300.0, -300.0, 6e4, np.inf, -np.inf, np.nan])
    a = values.astype(to_numpy(source))
    low, high = int_limits(wanted)
    exact = [float(v) for v in a]
    expected = [0 if np.isnan(v) else low if v < low else high if v > high else int(v) for v in exact]
    assert apply(lambda x: _cast(x, wanted), wanted, a, lanes=lanes).tolist() == expected


@pytest.mark.parametrize("lanes", (1, 16))
@pytest.mark.parametrize("wanted", ("int8", "uint8", "int16", "int32"))
@pytest.mark.parametrize("largest_first", (False, True))
def test_floats_between_limits_need_no_others(wanted: str, largest_first: bool, lanes: int) -> None:
    a = np.array([0.0, -0.0, 0.5, -1.75, 100.9, -100.9, 1e3, -1e3, 3e9, -3e9, np.inf, -np.inf, np.nan], "float32")
    low, high = (0, 200) if wanted == "uint8" else (-100, 90)

    def inside(x: PrimExpr) -> PrimExpr:
        least, most = (ops.const(float(limit), x.dtype) for limit in (low, high))
        return ops.maximum(ops.minimum(x, most), least) if largest_first else ops.minimum(ops.maximum(x, least), most)

    of_nan = high if largest_first else low  # a comparison with NaN doesn't hold
    expected = [of_nan if np.isnan(v) else int(min(max(float(v), low), high)) for v in a]
    assert apply(lambda x: _cast(inside(x), wanted), wanted, a, lanes=lanes).tolist() == expected


@pytest.mark.parametrize("lanes", (1, 7, 16))
@pytest.mark.parametrize("wanted", ("int8", "uint8", "int16", "int32"))
@pytest.mark.parametrize("cpu", CPUS)
def test_the_conversion_itself_rounds(wanted: str, lanes: int, cpu: str) -> None:
    """Halves go to the even number, and nothing is rounded in a step of its own."""
    a = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 99.5, 100.5, -100.9, 1e3, -1e3, 3e9, -3e9, np.inf, -np.inf, np.nan], "float32")
    low, high = (0, 200) if wanted == "uint8" else (-100, 90)

    def nearest(x: PrimExpr) -> PrimExpr:
        inside = ops.minimum(ops.maximum(x, ops.const(float(low), x.dtype)), ops.const(float(high), x.dtype))
        return _cast(intrin.nearbyint(inside), wanted)

    expected = [low if np.isnan(v) else int(np.rint(min(max(float(v), low), high))) for v in a]
    assert apply(nearest, wanted, a, lanes=lanes, target=Target(cpu)).tolist() == expected


@pytest.mark.parametrize("limit", (400.0, np.inf))
def test_limits_that_the_integer_has_not_are_its_own(limit: float) -> None:
    a = np.array([300.0, -300.0, 5e9], "float32")

    def inside(x: PrimExpr) -> PrimExpr:
        return ops.minimum(ops.maximum(x, ops.const(-limit, x.dtype)), ops.const(limit, x.dtype))

    assert apply(lambda x: _cast(inside(x), "int8"), "int8", a, lanes=4).tolist() == [127, -128, 127]


@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_bool(source: str) -> None:
    a = np.array([0.0, -0.0, 1e-7, -2.0, np.inf, np.nan]).astype(to_numpy(source))
    for lanes in (1, 8):
        assert (apply(lambda x: _cast(x, "bool"), "bool", a, lanes=lanes) == (a != 0)).all()


def _doubles() -> Array:
    rng = np.random.default_rng(0)
    spread = np.exp(rng.uniform(-20, 12, 3000)) * rng.choice([-1.0, 1.0], 3000)
    halves = np.arange(0, 0x7C00, 7, dtype=np.uint16).view(np.float16).astype(np.float64)
    # Halfway between two halves, and a hair to either side: where rounding twice goes wrong.
    ties = (halves[:-1] + halves[1:]) / 2
    return np.concatenate(
        [spread, ties, np.nextafter(ties, np.inf), np.nextafter(ties, 0), [0.0, -0.0, np.inf, -np.inf, np.nan, 7e4, 1e300]]
    )


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("wanted", ("float16", "bfloat16", "float32"))
@pytest.mark.parametrize("source", ("float32", "float64"))
def test_rounding_to_narrower_floats(source: str, wanted: str, cpu: str) -> None:
    with np.errstate(over="ignore"):
        a = _doubles().astype(to_numpy(source))
        expected = _nearest(a.astype(np.float64), wanted)
    for lanes in (1, 8):
        got = apply(lambda x: _cast(x, wanted), wanted, a, lanes=lanes, target=Target(cpu))
        assert _bits(got) == _bits(expected)


def _nearest(doubles: Array, dtype: str) -> Array:
    """Rounded once; ml_dtypes would go through float32."""
    if dtype != "bfloat16":
        return doubles.astype(to_numpy(dtype))
    rounded = doubles.astype(np.float32)
    inexact = (rounded.astype(np.float64) != doubles) & np.isfinite(doubles) & np.isfinite(rounded)
    bits = rounded.view(np.uint32)
    above = np.abs(rounded.astype(np.float64)) > np.abs(doubles)
    odd = np.where(inexact, (bits - above) | 1, bits).astype(np.uint32).view(np.float32)
    return odd.astype(ml_dtypes.bfloat16)


def _bits(values: Array) -> list[object]:
    """Bit patterns, all NaNs alike."""
    width = {2: np.uint16, 4: np.uint32, 8: np.uint64}[values.dtype.itemsize]
    with np.errstate(invalid="ignore"):
        not_numbers = np.isnan(values.astype(np.float64))
    return ["nan" if nan else int(bits) for nan, bits in zip(not_numbers, values.view(width), strict=True)]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("source", ("float16", "bfloat16"))
def test_every_16_bit_float_widens_exactly(source: str, cpu: str) -> None:
    a = np.arange(1 << 16, dtype=np.uint16).view(to_numpy(source))
    for lanes in (1, 16):
        got = apply(lambda x: _cast(x, "float32"), "float32", a, lanes=lanes, target=Target(cpu))
        assert _bits(got) == _bits(a.astype(np.float32))


def test_between_the_two_16_bit_floats() -> None:
    a = np.array([1.5, -3.0, 65504.0, 1e-7, np.inf], np.float16)
    assert (apply(lambda x: _cast(x, "bfloat16"), "bfloat16", a, lanes=8) == a.astype(np.float32).astype(ml_dtypes.bfloat16)).all()


def test_reinterpret_keeps_the_bits() -> None:
    a = np.array([1.0, -0.0, np.inf, 1e-45], np.float32)
    assert (apply(lambda x: intrin.reinterpret(with_lanes("int32", 4), x), "int32", a, lanes=4) == a.view(np.int32)).all()
    assert (apply(lambda x: intrin.reinterpret("uint32", x), "uint32", a) == a.view(np.uint32)).all()


def test_bool_to_numbers() -> None:
    a = np.array([True, False])
    for wanted in ("int8", "uint64", "float32", "float16"):
        assert apply(lambda x, w=wanted: ops.cast(x, with_lanes(w, 2)), wanted, a, lanes=2).tolist() == [1, 0]


@pytest.mark.parametrize("wanted", ("int32", "uint32"))
def test_vectors_become_words_without_a_conversion_for_each_lane(wanted: str) -> None:
    low, high = int_limits(wanted)
    edges = [math.nan, math.inf, -math.inf, -0.5, 2147483520.0, 2147483648.0, -2147483648.0, -2147483904.0, 4294967040.0, 4294967296.0]
    a = np.array(edges, "float32")
    expected = [0 if math.isnan(x) else min(max(math.trunc(min(max(x, -1e30), 1e30)), low), high) for x in a.tolist()]
    for lanes in (1, 5, 10):
        assert apply(lambda x: _cast(x, wanted), wanted, a, lanes=lanes).tolist() == expected
