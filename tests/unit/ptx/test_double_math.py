"""Functions of float64 on devices, by the emulator: their errors in ulp, and what they give at the ends of their ranges."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.testing.ptx import assembled, emulator

from .running import needs_ptxas

Array = np.ndarray[Any, np.dtype[np.float64]]


def _both(low: float, high: float) -> Array:
    """Arguments of either sign, those near 0 by powers of ten."""
    rng = np.random.default_rng(11)
    small = 10.0 ** rng.uniform(-12, np.log10(min(high, 1.0)), 200)
    values = np.concatenate([rng.uniform(low, high, 300), small[small < high]])
    return np.concatenate([values, -values]) if low < 0 else values


# Function -> its arguments, and how many ulp it is off at most.
CASES: dict[str, tuple[Array, float]] = {
    "exp2": (_both(-1000, 1000), 1.5),
    "exp10": (_both(-300, 300), 2.5),
    "sinh": (_both(-700, 700), 2.5),
    "cosh": (_both(-700, 700), 2.5),
    "log2": (np.concatenate([_both(0, 4), _both(0, 1e300)]), 2.0),
    "log10": (np.concatenate([_both(0, 4), _both(0, 1e300)]), 2.0),
    "log1p": (_both(-0.999, 0.999), 2.0),
    "asinh": (_both(-1e3, 1e3), 3.0),
    "acosh": (1 + _both(0, 1e3), 3.0),
    "atanh": (_both(-0.999, 0.999), 3.0),
    "sin": (np.concatenate([_both(-3, 3), _both(-1e5, 1e5)]), 2.0),
    "cos": (np.concatenate([_both(-3, 3), _both(-1e5, 1e5)]), 2.0),
    "tan": (np.concatenate([_both(-3, 3), _both(-1e5, 1e5)]), 4.0),
    "asin": (_both(-1, 1), 2.0),
    "acos": (_both(-1, 1), 2.0),
    "atan": (np.concatenate([_both(-5, 5), _both(-1e6, 1e6)]), 2.0),
    "erf": (_both(-6, 6), 2.0),
}
_EXACT: dict[str, Callable[[Any], Any]] = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "exp10": lambda x: mpmath.mpf(10) ** x,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
}


@functools.cache
def built(name: str) -> Any:
    """A kernel of the function."""
    n = te.var("n")
    a = te.placeholder((n,), "float64", name="A")
    b = te.compute((n,), lambda i: getattr(tir, name)(a[i]), name="B")
    s = te.create_schedule(b.op)
    block, thread = s[b].split(b.op.axis[0], factor=128)
    s[b].bind(block, te.thread_axis("blockIdx.x"))
    s[b].bind(thread, te.thread_axis("threadIdx.x"))
    return tvm.build(s, [a, b], target="cuda -arch=sm_80")


def computed(name: str, x: Array) -> Array:
    """What it gives."""
    device = emulator()
    out = tvm.nd.empty(x.shape, "float64", device)
    built(name)(tvm.nd.array(x, device), out)
    return np.asarray(out.numpy())


@pytest.mark.parametrize("name", CASES)
def test_errors(name: str) -> None:
    x, most = CASES[name]
    found, exact = computed(name, x), _EXACT.get(name) or getattr(mpmath, name)
    with mpmath.workdps(40):
        wanted = [exact(mpmath.mpf(float(value))) for value in x]
        errors = [
            abs(mpmath.mpf(float(got)) - want) / np.spacing(abs(float(want)) or 5e-324) for got, want in zip(found, wanted, strict=True)
        ]
    worst = int(np.argmax([float(one) for one in errors]))
    assert float(errors[worst]) <= most, (float(x[worst]), float(errors[worst]))


def computed_of_two(name: str, x: Array, y: Array) -> Array:
    """What a function of two arguments gives."""
    n, device = te.var("n"), emulator()
    a, b = te.placeholder((n,), "float64", name="A"), te.placeholder((n,), "float64", name="B")
    c = te.compute((n,), lambda i: getattr(tir, name)(a[i], b[i]), name="C")
    s = te.create_schedule(c.op)
    block, thread = s[c].split(c.op.axis[0], factor=128)
    s[c].bind(block, te.thread_axis("blockIdx.x"))
    s[c].bind(thread, te.thread_axis("threadIdx.x"))
    out = tvm.nd.empty(x.shape, "float64", device)
    tvm.build(s, [a, b, c], target="cuda -arch=sm_80")(tvm.nd.array(x, device), tvm.nd.array(y, device), out)
    return np.asarray(out.numpy())


_SIDES = (_both(-1e3, 1e3), np.random.default_rng(5).permutation(_both(-1e3, 1e3)))
# ordinary powers, large exponents of bases near 1, and results near the ends of the range
_RNG = np.random.default_rng(7)
_BASES = np.concatenate([_RNG.uniform(0, 50, 400), 1 + _RNG.uniform(-1e-3, 1e-3, 200), 10.0 ** _RNG.uniform(-300, 300, 200), [5e-324, 2.0]])
_EXPONENTS = np.concatenate(
    [_RNG.uniform(-80, 80, 400), _RNG.uniform(-6e5, 6e5, 200), _RNG.uniform(-1, 1, 200), [0.5, -1023.5]],
)


@pytest.mark.parametrize(("name", "x", "y", "most"), [("atan2", *_SIDES, 3.0), ("hypot", *_SIDES, 2.0), ("pow", _BASES, _EXPONENTS, 2.0)])
def test_errors_of_two_arguments(name: str, x: Array, y: Array, most: float) -> None:
    exact = {"pow": mpmath.power}.get(name) or getattr(mpmath, name)
    with mpmath.workdps(40):
        for first, second, got in zip(x, y, computed_of_two(name, x, y), strict=True):
            wanted = exact(mpmath.mpf(float(first)), mpmath.mpf(float(second)))
            error = float(abs(mpmath.mpf(float(got)) - wanted) / np.spacing(abs(float(wanted)) or 5e-324))
            assert error <= most, (first, second, error)


def test_powers_at_the_ends() -> None:
    ends = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, np.inf, -np.inf, np.nan, 2.0**53 + 1, 3.0, -3.0, 1e308, -1e308]
    x, y = (np.ravel(side) for side in np.meshgrid(ends, ends))
    with np.errstate(all="ignore"):
        wanted = np.float_power(x, y)
    found = computed_of_two("pow", x, y)
    np.testing.assert_allclose(found, wanted, rtol=3e-16)
    assert np.array_equal(np.signbit(found[~np.isnan(wanted)]), np.signbit(wanted[~np.isnan(wanted)]))


def test_powers_of_two_have_whole_logarithms() -> None:
    exponents = np.arange(-1070.0, 1024.0, 7.0)
    assert np.array_equal(computed("log2", 2.0**exponents), exponents)
    assert np.array_equal(computed("exp2", exponents), 2.0**exponents)


@pytest.mark.parametrize(
    "name, x, wanted",
    [
        ("exp2", [np.inf, -np.inf, 2000.0, -2000.0], [np.inf, 0, np.inf, 0]),
        ("sinh", [np.inf, -np.inf, 0.0, 800.0], [np.inf, -np.inf, 0, np.inf]),
        ("cosh", [np.inf, -np.inf, 0.0], [np.inf, np.inf, 1]),
        ("log2", [0.0, -1.0, np.inf], [-np.inf, np.nan, np.inf]),
        ("log10", [0.0, -1.0, np.inf, 1000.0], [-np.inf, np.nan, np.inf, 3.0]),
        ("log1p", [-1.0, -2.0, np.inf, 0.0], [-np.inf, np.nan, np.inf, 0.0]),
        ("asinh", [np.inf, -np.inf], [np.inf, -np.inf]),
        ("acosh", [1.0, 0.5, np.inf], [0.0, np.nan, np.inf]),
        ("atanh", [1.0, -1.0, 2.0], [np.inf, -np.inf, np.nan]),
        ("asin", [1.0, -1.0, 2.0], [np.pi / 2, -np.pi / 2, np.nan]),
        ("acos", [1.0, -1.0, 2.0], [0.0, np.pi, np.nan]),
        ("atan", [np.inf, -np.inf], [np.pi / 2, -np.pi / 2]),
        ("erf", [np.inf, -np.inf, 7.0], [1.0, -1.0, 1.0]),
    ],
)
def test_ends(name: str, x: list[float], wanted: list[float]) -> None:
    values = np.array([*x, np.nan])
    np.testing.assert_array_equal(computed(name, values), [*wanted, np.nan])


@needs_ptxas
@pytest.mark.parametrize("name", CASES)
def test_the_assembler_takes_them(name: str) -> None:
    assert assembled(built(name).code.assembly, "sm_80").spilled == 0
