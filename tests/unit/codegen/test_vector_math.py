"""The math functions: accuracy over the whole range of float32, special values, and every intrinsic on every float dtype."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from functools import lru_cache

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from tensorexpr.codegen.emit import emit_module
from tensorexpr.target import Target
from tensorexpr.tir import intrin
from tensorexpr.tir.dtype import to_numpy
from tensorexpr.tir.expr import Call, IntImm, PrimExpr

from .harness import Array, apply, flat, load, primfunc, ramp, store

UNARY = (
    "exp", "exp2", "exp10", "log", "log2", "log10", "log1p", "rsqrt", "sigmoid", "tanh", "erf", "sin", "cos", "tan",
    "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "sqrt",
)  # fmt: skip
BINARY = ("pow", "atan2", "hypot")
# The lanes and instruction sets that take different code: AVX-512 in one and two registers, AVX2, SSE2 without FMA, one lane.
PLACES = (("llvm", 16), ("llvm", 1), ("llvm -mcpu=haswell", 8), ("llvm -mcpu=x86-64", 4))


def _erf(x: Array) -> Array:
    return np.array([math.erf(v) for v in x.tolist()])


def _sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    result: Array = np.where(x >= 0, 1, small) / (1 + small)
    return result


_REFERENCES: dict[str, Callable[..., Array]] = {
    "exp10": lambda x: np.power(10.0, x), "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": _sigmoid, "erf": _erf,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "pow": np.power, "atan2": np.arctan2,
}  # fmt: skip


def _reference(name: str) -> Callable[..., Array]:
    found: Callable[..., Array] = _REFERENCES.get(name) or getattr(np, name)
    return found


def intrinsic(name: str, *args: PrimExpr) -> PrimExpr:
    """A call of an intrinsic by its name."""
    return Call(args[0].dtype, f"tir.{name}", args)


@lru_cache(maxsize=1)
def _samples() -> Array:
    """Bit patterns all over, the ranges where the functions bend, and the values at which they break."""
    rng = np.random.default_rng(0)
    patterns = np.concatenate([np.arange(0, 1 << 32, 65521), rng.integers(0, 1 << 32, 40_000)]).astype(np.uint32).view(np.float32)
    ranges = np.concatenate([rng.uniform(-s, s, 20_000) for s in (1, 4, 12, 100)])
    special = [0.0, -0.0, 1, -1, 2, 0.5, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38, -3.4028235e38]
    limits = [88.72284, 88.722835, -103.97208, -103.97209, -87.33655, 89.41599, -89.41599, 128, -149, -150, 38.53184]
    with np.errstate(invalid="ignore"):
        return np.concatenate([special, limits, [1048576, 1048577, 1e9, 1e30], ranges, patterns]).astype(np.float32)


def _ulps(got: Array, exact: Array) -> Array:
    """The distance from the exact result in units of the last place of float32; infinite where they differ in kind."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(np.float32)
        exponent = np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-126)))
        distance = np.abs(got - exact) / np.exp2(np.where(np.isfinite(exponent), exponent, 0) - 23)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same, np.where(np.isfinite(distance), distance, 0), np.where(np.isfinite(distance), distance, np.inf))


def _check(name: str, args: tuple[Array, ...], target: Target, lanes: int) -> None:
    check_results(name, args, apply(lambda *xs: intrinsic(name, *xs), "float32", *args, lanes=lanes, target=target))


def check_results(name: str, args: tuple[Array, ...], got: Array) -> None:
    """Compare what code for an intrinsic gave with the exact results, and with the bound that is promised."""
    with np.errstate(all="ignore"):
        exact = _reference(name)(*(a.astype(np.float64) for a in args))
    errors = _ulps(got, exact)
    worst = int(np.argmax(errors))
    allowed = intrin.INTRINSICS[f"tir.{name}"].accuracy or 0.5
    assert errors[worst] <= allowed + 1e-3, f"{name}({', '.join(str(a[worst]) for a in args)}) = {got[worst]}, not {exact[worst]}"
    zeros = exact == 0
    assert (np.signbit(got[zeros]) == np.signbit(exact[zeros])).all(), name


@pytest.mark.parametrize(("cpu", "lanes"), PLACES)
@pytest.mark.parametrize("name", UNARY)
def test_accuracy_over_all_floats(name: str, cpu: str, lanes: int) -> None:
    _check(name, (_samples(),), Target(cpu), lanes)


@lru_cache(maxsize=1)
def _pairs() -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    values = [0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3.4e38, -3.4e38, 1e-38]
    values += [16777216, -16777217, 33554432, 0.99999994, 1.0000001, 8388607.5, -8388607.5, 1e20, -1e20]
    special = np.array(list(itertools.product(values, values))).T
    anything = rng.integers(0, 1 << 32, (2, 20_000)).astype(np.uint32).view(np.float32)
    base = np.exp(rng.uniform(-80, 80, 30_000))
    power = rng.uniform(-1, 1, 30_000) * 88 / np.abs(np.log(base))
    plane = rng.uniform(-20, 20, (2, 10_000))
    negative = np.stack([-base[:5000], np.round(power[:5000])])
    parts = [special, anything, np.stack([base, power]), negative, plane, np.stack([plane[0], np.round(plane[1])])]
    with np.errstate(invalid="ignore"):
        first, second = np.concatenate(parts, axis=1).astype(np.float32)
    return first, second


def samples(name: str) -> tuple[Array, ...]:
    """Arguments of one of `UNARY` or `BINARY`."""
    return (_samples(),) if name in UNARY else _pairs()


@pytest.mark.parametrize(("cpu", "lanes"), PLACES)
@pytest.mark.parametrize("name", BINARY)
def test_accuracy_of_two_arguments(name: str, cpu: str, lanes: int) -> None:
    _check(name, _pairs(), Target(cpu), lanes)


@pytest.mark.parametrize("lanes", (1, 16))
@pytest.mark.parametrize("name", ("fmod", "copysign", "nextafter"))
def test_exact_functions_of_two_arguments(name: str, lanes: int) -> None:
    for dtype in ("float32", "float64"):
        a, b = (x[:3000].astype(dtype) for x in _pairs())
        got = apply(lambda x, y: intrinsic(name, x, y), dtype, a, b, lanes=lanes)
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a, b)
        assert np.array_equal(got, expected, equal_nan=True)
        assert (np.signbit(got) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("lanes", (1, 8))
@pytest.mark.parametrize("dtype", ("float32", "float64", "float16", "bfloat16"))
@pytest.mark.parametrize("name", ("floor", "ceil", "trunc", "round", "nearbyint", "fabs"))
def test_rounding(name: str, dtype: str, lanes: int) -> None:
    values = [0.0, -0.0, 0.49999997, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e6, 8388609.0, np.inf, -np.inf, np.nan]
    with np.errstate(over="ignore"):
        a = np.array(values).astype(to_numpy(dtype))
    evaluate = intrin.INTRINSICS[f"tir.{name}"].evaluate
    assert evaluate is not None
    with np.errstate(invalid="ignore"):
        expected = evaluate(a.astype(np.float64))
    got = apply(lambda x: intrinsic(name, x), dtype, a, lanes=lanes).astype(np.float64)
    assert np.array_equal(got, expected, equal_nan=True), name
    assert (np.signbit(got) == np.signbit(expected))[~np.isnan(expected)].all()


def test_fabs_of_integers_wraps() -> None:
    a = np.array([0, 5, -5, -128, 127], np.int8)
    assert apply(intrin.abs, "int8", a, lanes=4).tolist() == [0, 5, 5, -128, 127]


@pytest.mark.parametrize("lanes", (1, 4))
@pytest.mark.parametrize("dtype", ("float32", "float64", "float16", "bfloat16"))
def test_predicates(dtype: str, lanes: int) -> None:
    with np.errstate(over="ignore"):
        a = np.array([0.0, -1.0, 3e38, np.inf, -np.inf, np.nan, 1e-45]).astype(to_numpy(dtype))
    for build, expected in ((intrin.isnan, np.isnan), (intrin.isinf, np.isinf), (intrin.isfinite, np.isfinite)):
        assert (apply(build, "bool", a, lanes=lanes) == expected(a.astype(np.float64))).all()


def test_fma_rounds_once() -> None:
    a = np.full(4, 1 + 2.0**-23, np.float32)
    got = apply(intrin.fma, "float32", a, a, np.full(4, -1 - 2.0**-22, np.float32), lanes=4)
    assert (got == 2.0**-46).all()


_EXACT: dict[str, Callable[..., mpmath.mpf]] = {
    "exp": mpmath.exp,
    "log": mpmath.log,
    "tanh": mpmath.tanh,
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
}


@pytest.mark.parametrize(("cpu", "lanes"), (("llvm", 8), ("llvm", 1), ("llvm -mcpu=x86-64", 2)))
@pytest.mark.parametrize(("name", "allowed"), (("exp", 1.0), ("log", 1.0), ("tanh", 2.5), ("sigmoid", 2.5), ("rsqrt", 1.5)))
def test_doubles_with_formulas_of_our_own(name: str, allowed: float, cpu: str, lanes: int) -> None:
    rng = np.random.default_rng(2)
    a = np.concatenate(
        [rng.uniform(-3, 3, 200), rng.uniform(-745, 709, 300), np.exp(rng.uniform(-700, 700, 200)), np.exp(rng.uniform(-40, 3, 200))]
    )
    if name in ("log", "rsqrt"):
        a = np.abs(a)
    a = np.concatenate([a, [5e-324, 1e-310]]) if name != "rsqrt" else a
    got = apply(lambda x: intrinsic(name, x), "float64", a, lanes=lanes, target=Target(cpu))
    with mpmath.workprec(140):
        for x, y in zip(a.tolist(), got.tolist(), strict=True):
            exact = _EXACT[name](mpmath.mpf(x))
            if abs(exact) < 1.8e308:
                assert abs(mpmath.mpf(y) - exact) <= allowed * mpmath.mpf(math.ulp(float(exact))), (name, x, y)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 710.0, -746.0, 1e308, -1e308])
    with np.errstate(all="ignore"):
        expected = _reference(name)(special)
    got = apply(lambda x: intrinsic(name, x), "float64", special, lanes=lanes, target=Target(cpu))
    np.testing.assert_allclose(got, expected, rtol=1e-15)


_FLOAT_ROWS = [row for row in intrin.INTRINSICS.values() if row.kind == "float"]


@pytest.mark.parametrize("row", _FLOAT_ROWS, ids=lambda row: row.name)
@pytest.mark.parametrize("dtype", ("float64", "float16", "bfloat16"))
def test_every_intrinsic_works_on_every_float(row: intrin.Intrinsic, dtype: str) -> None:
    rng = np.random.default_rng(3)
    args = [
        rng.uniform(1.1 if row.name == "acosh" else 0.1, 2.0 if row.name == "acosh" else 0.9, 24).astype(to_numpy(dtype))
        for _ in range(row.arity)
    ]
    assert row.evaluate is not None
    wide = [a.astype(np.float64) for a in args]
    expected = row.evaluate(*wide)
    if row.name == "nextafter" and dtype != "float64":
        expected = args[0].astype(np.float64)  # the next float32, rounded back
    tolerance = {"float64": 1e-14, "float16": 1e-3, "bfloat16": 8e-3}[dtype]
    for lanes in (1, 8):
        result = apply(lambda *xs: Call(xs[0].dtype, f"tir.{row.name}", xs), dtype, *args, lanes=lanes)
        np.testing.assert_allclose(result.astype(np.float64), expected, rtol=tolerance, atol=tolerance * 1e-2)


def test_a_vector_gives_what_its_lanes_give() -> None:
    """Whatever the lane count, padded or split."""
    a = np.linspace(-9, 9, 96).astype(np.float32)
    for name in ("exp", "tanh", "sin", "erf"):
        alone = apply(lambda x, name=name: intrinsic(name, x), "float32", a)
        for lanes in (2, 3, 24, 32):
            together = apply(lambda x, name=name: intrinsic(name, x), "float32", a, lanes=lanes)
            assert (alone == together).all(), (name, lanes)


def test_the_widest_registers_are_used() -> None:
    from tensorexpr.codegen.emit import emit_module

    from .harness import assembly, elementwise

    target = Target("llvm -mcpu=x86-64-v4")
    text = emit_module({"f": elementwise(intrin.exp, ["float32"], "float32", 16)}, target).text
    assert '"prefer-vector-width"="512"' in text
    machine_code = assembly(text, target)
    assert "zmm" in machine_code and "vscalefps" in machine_code and "call" not in machine_code


@pytest.mark.parametrize(("lanes", "scaled"), ((16, 1), (64, 4), (14, 1), (20, 2), (8, 1), (3, 1), (1, 0)))
def test_exponentials_of_any_length_are_scaled_by_one_instruction(lanes: int, scaled: int) -> None:
    a, b = flat("a", lanes), flat("b", lanes)
    index: PrimExpr = ramp(0, lanes) if lanes > 1 else IntImm("int32", 0)
    value = intrin.exp(load(a, index))
    text = emit_module({"f": primfunc([a, b], store(b, index, value))}, Target("llvm -mcpu=skylake-avx512")).text
    assert len(re.findall(r"call <\d+ x float> @llvm.x86.avx512.mask.scalef", text)) == scaled


@pytest.mark.parametrize(("dtype", "limit"), (("float32", 86.0), ("float64", 706.0)))
def test_exponentials_without_clamps_are_as_exact_up_to_their_limit(dtype: str, limit: float) -> None:
    """One lane beyond the limit, or NaN, takes its whole vector the other way, and changes no lane's result."""
    x = np.linspace(-limit, limit, 1024).astype(dtype)
    plain, beside = (
        apply(lambda x: intrinsic("exp", x), dtype, a, lanes=8, target=Target("llvm -mcpu=haswell"))
        for a in (x, np.where(np.arange(1024) % 8 == 5, np.resize([limit * 2, np.nan, -np.inf], 1024), x).astype(dtype))
    )
    exact = np.array([mpmath.exp(mpmath.mpf(float(value))) for value in x])
    errors = [abs(mpmath.mpf(float(got)) - want) / float(np.spacing(got)) for got, want in zip(plain, exact, strict=True)]
    assert max(errors) <= 1
    same = np.arange(1024) % 8 != 5
    assert (plain[same] == beside[same]).all() and plain.tobytes() != beside.tobytes()


@pytest.mark.parametrize(("cpu", "lanes", "branches"), (("haswell", 32, 1), ("haswell", 1, 0), ("skylake-avx512", 32, 0)))
def test_vectors_of_exponentials_are_scaled_by_an_addition(cpu: str, lanes: int, branches: int) -> None:
    """Within the usual range nothing is clamped; AVX-512 scales by one instruction anywhere."""
    a, b = flat("a", lanes), flat("b", lanes)
    index: PrimExpr = ramp(0, lanes) if lanes > 1 else IntImm("int32", 0)
    text = emit_module({"f": primfunc([a, b], store(b, index, intrin.exp(load(a, index))))}, Target(f"llvm -mcpu={cpu}")).text
    assert text.count("!prof") == branches
    within = text.partition("\nwithin.")[2].partition("\ndone.")[0]
    assert bool(within) == bool(branches) and " fcmp " not in within and " fmul " not in within
