"""topi's functions of one and of two elements against NumPy."""

from __future__ import annotations

from functools import partial
from math import ceil, erf, log2
from typing import Any

import numpy as np
import pytest

from tensorexpr import topi

from .operator_draws import ALL, FLOATS, INTEGERS, NUMBERS, SIGNED, Values
from .topi_cases import Case, Table, check_table, into

CASES: Table = {}
case = into(CASES)


def _truncated(a: Any, b: Any) -> Any:
    return (
        np.trunc(a / b)
        if a.dtype.kind == "f"
        else (np.sign(a.astype(object)) * np.sign(b.astype(object)) * (abs(a) // abs(b))).astype(a.dtype)
    )


def unary(names: str, wanted: Any, dtypes: Any = FLOATS[:2], low: float = -3, high: float = 3) -> None:
    def make(d: Values, name: str) -> Case:
        x = d.values(d.shape(), d.of(dtypes), low, high)
        return Case(getattr(topi, name), (x,), (wanted or getattr(np, name))(x))

    CASES.update({name: partial(make, name=name) for name in names.split()})


def binary(
    names: str, wanted: Any = None, dtypes: Any = NUMBERS, first: tuple[float, float] = (-3, 3), second: tuple[float, float] = (-3, 3)
) -> None:
    def make(d: Values, name: str) -> Case:
        dtype, shape = d.of(dtypes), d.shape()
        a, b = d.values(shape, dtype, *first, special=False), d.values(d.pair(shape), dtype, *second, special=False)
        if d.coin() and first == second:
            a, b = b, a
        function = wanted or getattr(np, name)
        return Case(getattr(topi, name), (a, b), function(a, b))

    CASES.update({name: partial(make, name=name) for name in names.split()})


unary("sinh cosh tan", None)
unary("asin", np.arcsin, low=-1, high=1)
unary("acos", np.arccos, low=-1, high=1)
unary("asinh", np.arcsinh)
unary("acosh", np.arccosh, low=1, high=9)
unary("atanh", np.arctanh, low=-0.9, high=0.9)
unary("fast_exp", np.exp)
unary("fast_tanh", np.tanh)
unary("fast_erf", np.vectorize(erf, otypes=[float]))
unary("logical_not", None, ("bool",))
unary("ceil_log2", np.vectorize(lambda x: max(0, int(x) - 1).bit_length(), otypes=[int]), INTEGERS, 0, 100)
binary("equal not_equal less less_equal greater greater_equal")
binary("logical_and logical_or logical_xor", None, ("bool",))
binary("left_shift", None, INTEGERS, (-5, 5), (0, 7))
binary("right_shift", None, INTEGERS, (-100, 100), (0, 7))
binary("floor_divide", lambda a, b: np.floor(a / b) if a.dtype.kind == "f" else a // b, NUMBERS, (-100, 100), (1, 5))
binary("floor_mod", np.mod, NUMBERS, (-100, 100), (1, 5))
binary("trunc_divide", _truncated, INTEGERS, (-100, 100), (1, 5))
binary("div", lambda a, b: a / b if a.dtype.kind == "f" else _truncated(a, b), NUMBERS, (-100, 100), (1, 5))


@case("floor_divide by what is negative")
@case("floor_mod by what is negative")
@case("trunc_divide by what is negative")
def _negative(d: Values) -> Case:
    dtype, shape = d.of(SIGNED), d.shape()
    a, b = d.values(shape, dtype, -100, 100), d.values(shape, dtype, -5, -1)
    kind = d.of(("floor_divide", "floor_mod", "trunc_divide"))
    wanted: Any = {"floor_divide": np.floor_divide, "floor_mod": np.mod, "trunc_divide": _truncated}[kind]
    return Case(getattr(topi, kind), (a, b), wanted(a, b))


@case("ceil_log2 of floats")
def _ceil_log2(d: Values) -> Case:
    x = d.values(d.shape(), d.of(FLOATS[:2]), 0.1, 100, special=False)
    return Case(topi.ceil_log2, (x,), np.vectorize(lambda v: ceil(log2(v)), otypes=[float])(x))


@case("elemwise_sum")
def _sum(d: Values) -> Case:
    shape, dtype = d.shape(), d.of(NUMBERS)
    parts = tuple(d.values(shape, dtype, special=False) for _ in range(d.number(1, 4)))
    return Case(lambda *x: topi.elemwise_sum(x), parts, np.sum(parts, 0, dtype=dtype))


@case("collapse_sum")
def _collapse(d: Values) -> Case:
    shape, dtype = d.shape(least=1), d.of((*FLOATS[:2], "int32", "int64"))
    target, x = d.pair(shape), d.values(shape, dtype, special=False)
    kept = x.sum(tuple(range(len(shape) - len(target)))) if len(shape) > len(target) else x
    wanted = kept.sum(tuple(n for n, e in enumerate(target) if e == 1), keepdims=True)
    return Case(lambda t: topi.collapse_sum(t, target), (x,), wanted)


@case("fixed_point_multiply_per_axis")
def _fixed(d: Values) -> Case:
    shape = d.shape(1, 3, 1)
    axis = d.number(0, len(shape) - 1)
    left, right = d.coin(), d.coin()
    x = d.values(shape, "int32", -(2**20), 2**20)
    factors = d.values((shape[axis],), "int32", 2**30, 2**31 - 1)
    shifts = [d.values((shape[axis],), "int32", 0, 4) for _ in range(2)]
    lshift, rshift = (one.astype(object) * use for one, use in zip(shifts, (left, right), strict=True))
    across = [-1 if n == axis else 1 for n in range(len(shape))]
    y, up, down = (one.astype(object).reshape(across) for one in (factors, lshift, rshift))
    total = (x.astype(object) * 2**up) * y
    wanted = (total + 2 ** (30 + down)) // 2 ** (31 + down)
    return Case(lambda a, m, ls, rs: topi.fixed_point_multiply_per_axis(a, m, ls, rs, left, right, [axis]), (x, factors, *shifts), wanted)


@case("scale_shift")
def _scale(d: Values) -> Case:
    batch, chunks, height, width, lanes = (d.number(1, 3) for _ in range(5))
    layout, dtype = d.of(("nchw", "nhwc", "nchwc")), d.of(FLOATS[:2])
    shape = {"nchw": (batch, chunks, height, width), "nhwc": (batch, height, width, chunks), "nchwc": (batch, chunks, height, width, lanes)}
    per = (chunks, lanes) if layout == "nchwc" else (chunks,)
    x, scale, shift = d.values(shape[layout], dtype, special=False), d.values(per, dtype), d.values(per, dtype)
    across = {"nchw": (chunks, 1, 1), "nhwc": (chunks,), "nchwc": (chunks, 1, 1, lanes)}[layout]
    return Case(getattr(topi.nn, f"scale_shift_{layout}"), (x, scale, shift), x * scale.reshape(across) + shift.reshape(across))


@case("simulated_quantize")
@case("simulated_dequantize")
def _simulated(d: Values) -> Case:
    shape, kind = d.shape(1), d.of(("disable", "int8", "uint8", "int32"))
    axis, code = d.axis(len(shape)), np.array(topi.nn.SQNN_DTYPE_TO_CODE[kind], "int32")
    x = d.values(shape, "float32", -300, 300, special=False)
    per = () if d.coin() else (shape[axis] or 1,)
    scale, zero = d.rng.choice([0.5, 1, 2, 4], per).astype("float32"), d.values(per, "int32", -9, 9)
    across = [-1 if n == axis % len(shape) else 1 for n in range(len(shape))]
    by, offset = (np.resize(one, shape[axis]).reshape(across) for one in (scale, zero))
    if d.coin():
        limits = np.iinfo("int32" if kind == "disable" else kind)
        held = np.clip(np.copysign(np.floor(np.abs(x / by) + 0.5), x) + offset, limits.min, limits.max)
        return Case(
            lambda a, c, s, z: topi.nn.simulated_quantize(a, c, s, z, axis), (x, code, scale, zero), x if kind == "disable" else held
        )
    wanted = x if kind == "disable" else (x - offset) * by
    return Case(lambda a, c, s, z: topi.nn.simulated_dequantize(a, c, s, z, axis), (x, code, scale, zero), wanted)


@case("softmax")
def _softmax(d: Values) -> Case:
    shape = d.shape(1, 3, 1)
    axis, x = d.axis(len(shape)), d.values(shape, d.of(FLOATS[:2]), -30, 30, special=False)
    e = np.exp(x - x.max(axis, keepdims=True))
    make = d.of((topi.nn.fast_softmax, topi.nn.softmax_common))
    return Case(lambda t: make(t, axis), (x,), e / e.sum(axis, keepdims=True))


@case("eye")
def _eye(d: Values) -> Case:
    n, m, k, dtype = d.number(0, 4), d.of((None, 0, 1, 3)), d.number(-3, 3), d.of(ALL)
    return Case(lambda: topi.eye(n, m, k, dtype), (), np.eye(n, m, k, dtype))


@pytest.mark.parametrize("name", CASES)
def test_elements(name: str) -> None:
    check_table(CASES, name)
