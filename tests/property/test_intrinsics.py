"""Scalar intrinsics on edge values: reference evaluator, interpreter and compiled code, one lane at a time and on vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tensorexpr as tvm
from tensorexpr import te, tir
from tensorexpr.te.reference import evaluate
from tensorexpr.te.tensor import Tensor
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.intrin import INTRINSICS
from tests.effort import share_of

Array = Any
FLOAT_EDGES = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, -0.49999997, 1.0, -1.0, 3.0, -7.25, 1e-40, -1e-40, 8388607.5, -8388609.0,
               1e20, -1e20, 1e-20, 3.4e38, float("inf"), float("-inf"), float("nan")]  # fmt: skip
UNARY = ["exp2", "exp10", "log1p", "log2", "log10", "trunc", "round", "nearbyint", "floor", "ceil", "fabs", "rsqrt", "sqrt"]
BINARY = ["atan2", "copysign", "hypot", "nextafter", "fmod", "pow"]


def run_all(inputs: list[Tensor], arrays: list[Array], result: Tensor) -> dict[str, Array]:
    """The values by who computed them."""
    found = {"reference": evaluate([result], dict(zip(inputs, arrays, strict=True)))[0]}
    for lanes in (1, 8):
        schedule = te.create_schedule(result.op)
        if lanes > 1:
            _, inner = schedule[result].split(result.op.axis[0], lanes)
            schedule[result].vectorize(inner)
        args = [*inputs, result]
        for name, run in (
            ("interpreter", lambda *a, s=schedule, args=args: interpret(tvm.lower(s, args)["main"], list(a))),
            ("compiled", tvm.build(schedule, args)),
        ):
            out = np.full(found["reference"].shape, 77).astype(result.dtype)
            run(*arrays, out)
            found[f"{name} with {lanes} lanes"] = out
    return found


def ulps(got: Array, exact: Array) -> Array:
    """Distance in spacings of the result's dtype; 0 where both are NaN, the same infinity, or zeros of one sign."""
    with np.errstate(over="ignore"):
        wanted = exact.astype(got.dtype)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    with np.errstate(all="ignore"):
        distance = np.abs(got.astype(np.float64) - exact) / np.spacing(np.abs(wanted)).astype(np.float64)
    return np.where(same, 0.0, np.where(np.isfinite(distance), distance, np.inf))


def check_floats(name: str, found: dict[str, Array], exact: Array) -> None:
    row = INTRINSICS[f"tir.{name}"]
    for who, got in found.items():
        wrong = ulps(got, exact) > row.accuracy + (0.5 if row.accuracy else 0)
        assert not wrong.any(), (name, who, np.flatnonzero(wrong), got[wrong], exact[wrong])
        if not row.accuracy:  # what is exact has the right sign of zero, too
            real = ~np.isnan(got)
            assert (np.signbit(got) == np.signbit(exact.astype(got.dtype)))[real].all(), (name, who)


def wide(name: str, *arrays: Array) -> Array:
    """The result in float64, which for float32 operands is as good as exact."""
    with np.errstate(all="ignore"):
        if name == "nextafter":
            return np.nextafter(*arrays).astype(np.float64)
        return np.asarray(INTRINSICS[f"tir.{name}"].evaluate(*(a.astype(np.float64) for a in arrays)))  # type: ignore[misc]


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_of_floats(name: str) -> None:
    values = np.asarray(FLOAT_EDGES, np.float32)
    a = te.placeholder(values.shape, name="a")
    build = {"fabs": tir.abs}.get(name) or getattr(tir, name)
    result = te.compute(values.shape, lambda i: build(a[i]), name="result")
    check_floats(name, run_all([a], [values], result), wide(name, values))


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_of_floats(name: str) -> None:
    grid = np.meshgrid(np.asarray(FLOAT_EDGES, np.float32), np.asarray(FLOAT_EDGES, np.float32))
    left, right = (np.ascontiguousarray(part.reshape(-1)) for part in grid)
    a, b = te.placeholder(left.shape, name="a"), te.placeholder(left.shape, name="b")
    result = te.compute(left.shape, lambda i: getattr(tir, name)(a[i], b[i]), name="result")
    check_floats(name, run_all([a, b], [left, right], result), wide(name, left, right))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ldexp(dtype: str) -> None:
    values, powers = (part.reshape(-1) for part in np.meshgrid(FLOAT_EDGES, [0, 1, -1, 10, -140, 120, -(2**31), 2**31 - 1]))
    left, right = np.asarray(values).astype(dtype), np.asarray(powers).astype(np.int32)
    a, b = te.placeholder(left.shape, dtype, name="a"), te.placeholder(left.shape, "int32", name="b")
    result = te.compute(left.shape, lambda i: tir.ldexp(a[i], b[i]), name="result")
    with np.errstate(all="ignore"):
        exact = np.ldexp(left, right)
    for who, got in run_all([a, b], [left, right], result).items():
        np.testing.assert_array_equal(got, exact, err_msg=who)
        real = ~np.isnan(exact)
        assert (np.signbit(got) == np.signbit(exact))[real].all(), who


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_ldexp_of_narrow_floats(dtype: str) -> None:
    a = te.placeholder((16,), dtype, name="a")
    result = te.compute((16,), lambda i: tir.ldexp(a[i], i - 8), name="result")
    schedule = te.create_schedule(result.op)
    schedule[result].vectorize(result.op.axis[0])
    assert_schedule_correct(schedule, [a, result])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fma_rounds_once(dtype: str) -> None:
    rng = np.random.default_rng(3)
    left, right = (rng.standard_normal(200).astype(dtype) for _ in range(2))
    third = (-(left * right)).astype(dtype)  # what is left is the rounding error of the product
    third[:4] = [np.inf, np.nan, 0, -0.0]
    left[4:6] = [np.inf, 0.0]
    a, b, c = (te.placeholder(left.shape, dtype, name=name) for name in "abc")
    result = te.compute(left.shape, lambda i: tir.fma(a[i], b[i], c[i]), name="result")
    found = run_all([a, b, c], [left, right, third], result)
    for who, got in found.items():
        np.testing.assert_array_equal(got, found["compiled with 8 lanes"], err_msg=who)
    assert (found["reference"][6:] != 0).any()


INTEGERS: dict[str, Any] = {"int8": np.int8, "int32": np.int32, "uint16": np.uint16, "int64": np.int64}
INTEGER_FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[[int, int], int]]] = {
    "popcount": (tir.popcount, lambda value, bits: (value % (1 << bits)).bit_count()),
    "clz": (tir.clz, lambda value, bits: bits - (value % (1 << bits)).bit_length()),
    "bitwise_not": (tir.bitwise_not, lambda value, bits: ~value),
    "shift_right": (lambda v: tir.shift_right(v, tir.const(3, v.dtype)), lambda value, bits: value >> 3),
    "shift_left": (lambda v: tir.shift_left(v, tir.const(5, v.dtype)), lambda value, bits: value << 5),
    "bitwise_xor": (lambda v: tir.bitwise_xor(v, tir.const(85, v.dtype)), lambda value, bits: value ^ 85),
    "ceildiv": (lambda v: tir.ceildiv(v, tir.const(7, v.dtype)), lambda value, bits: -(-value // 7)),
}


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", INTEGER_FUNCTIONS)
def test_functions_of_integers(name: str, dtype: str) -> None:
    kind = INTEGERS[dtype]
    limits = np.iinfo(kind)
    edges = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 2, 5, 8, 100, limits.max // 3]
    if name == "ceildiv":  # which adds to the dividend: near the end it wraps, as on the machine
        edges = [value for value in edges if value <= limits.max - 7]
    values = np.asarray(edges, kind)
    build, exact = INTEGER_FUNCTIONS[name]
    a = te.placeholder(values.shape, dtype, name="a")
    result = te.compute(values.shape, lambda i: build(a[i]), name="result")
    wanted = [exact(int(v), limits.bits) % (1 << limits.bits) for v in values]
    for who, got in run_all([a], [values], result).items():
        assert [int(g) % (1 << limits.bits) for g in got] == wanted, who


@settings(max_examples=share_of(12), deadline=None, derandomize=True)
@given(st.integers(0, 31), st.integers(-20, 8), st.integers(0, 2**32 - 1))
@example(0, 0, 0)  # no half to add
@example(0, 3, 0)
def test_fixed_point_products(fraction: int, shift: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    limits = (-(2**31), 2**31) if fraction + max(-shift, 0) >= 31 and shift <= 0 else (-1000, 1000)
    left, right = (rng.integers(*limits, 24).astype(np.int32) for _ in range(2))
    total = fraction + max(-shift, 0)
    exact = [((int(x) << max(shift, 0)) * int(y) + (1 << total >> 1)) >> total for x, y in zip(left, right, strict=True)]
    wanted = [(value + 2**31) % 2**32 - 2**31 for value in exact]
    a, b = te.placeholder((24,), "int32", name="a"), te.placeholder((24,), "int32", name="b")
    result = te.compute((24,), lambda i: tir.q_multiply_shift(a[i], b[i], fraction, shift), name="result")
    for who, got in run_all([a, b], [left, right], result).items():
        assert got.tolist() == wanted, who


def test_halves_of_vectors() -> None:
    vector = tir.Ramp(tir.const(0), tir.const(1), 8)
    low, high = tir.vectorlow("int32x4", vector), tir.vectorhigh(None, vector)
    b = tir.decl_buffer((8,), "int32", name="b")
    handle = tir.Var("b", "handle")
    store = tir.BufferStore(b, tir.vectorcombine("int32x8", high, low), (vector,))
    func = tir.PrimFunc((handle,), store, None, {handle: b}).with_attr("global_symbol", "main")
    runs: list[Callable[[Array], object]] = [lambda out: interpret(func, [out]), tvm.build(func)]
    for run in runs:
        out = np.zeros(8, np.int32)
        run(out)
        assert out.tolist() == [4, 5, 6, 7, 0, 1, 2, 3]


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_atomic_additions_of_threads(dtype: str) -> None:
    a = te.placeholder((200,), dtype, name="a")

    def histogram(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        x, y = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, 3, name="z") as z:
            y[z] = 0
        with ib.for_range(0, 200, name="i", kind="parallel") as i:
            ib.emit(tir.assume(i < 200))
            ib.emit(tir.atomic_add(y[i % 3], x[i]))
        with ib.if_scope(tir.isnullptr(outs[0].data)):
            y[0] = 1
        return ib.get()

    h = te.extern((3,), [a], histogram, name="h")
    values = np.arange(200).astype(dtype)
    (expected,) = evaluate([h], {a: values})
    out = np.zeros(3, dtype)
    tvm.build(te.create_schedule(h.op), [a, h])(values, out)
    assert out.tolist() == expected.tolist() == [values[k::3].sum() for k in range(3)]


def test_constants() -> None:
    assert tir.large_uint_imm("uint64", 2**32 - 1, 2**32 - 1) is tir.IntImm("uint64", 2**64 - 1)
    assert tir.undef("float32x4").dtype == "float32x4"
