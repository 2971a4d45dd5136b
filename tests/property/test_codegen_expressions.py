"""Random expressions: compiled code gives what the interpreter gives, one lane or many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.tir import arithmetic as ops
from tensorexpr.tir.buffer import Buffer
from tensorexpr.tir.dtype import int_limits, parse_dtype, to_numpy, with_lanes
from tensorexpr.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    And,
    Broadcast,
    Call,
    Cast,
    Div,
    FloorDiv,
    FloorMod,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Select,
    Sub,
    Var,
)  # fmt: skip
from tensorexpr.tir.function import PrimFunc
from tensorexpr.tir.interpreter import interpret
from tensorexpr.tir.stmt import seq
from tests.effort import share_of

from ..unit.codegen.harness import compile_function, flat, load, primfunc, ramp, store

INTEGERS = ("int8", "uint8", "int32", "int64", "uint32")
FLOATS = ("float32", "float64", "float16")
COUNT = 8


@st.composite
def expressions(draw: st.DrawFn, dtype: str, inputs: dict[str, list[PrimExpr]], depth: int) -> PrimExpr:
    """An expression of `dtype` (with lanes) over the inputs, whose value is defined for all of them."""
    scalar = str(parse_dtype(dtype).scalar)
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from([*inputs[scalar], *_constants(dtype)]))

    def sub(kind: str = scalar) -> PrimExpr:
        return draw(expressions(with_lanes(kind, parse_dtype(dtype).lanes), inputs, depth - 1))

    if scalar == "bool":
        kind = draw(st.sampled_from((*INTEGERS, *FLOATS)))
        choice = draw(st.integers(0, 3))
        if choice == 0:
            return draw(st.sampled_from((And, Or)))(sub(), sub())
        return Not(sub()) if choice == 1 else draw(st.sampled_from((EQ, NE, LT, LE, GT, GE)))(sub(kind), sub(kind))
    choice = draw(st.integers(0, 7))
    if choice == 0:
        return Select(sub("bool"), sub(), sub())
    if choice == 1:
        return Call(dtype, "tir.if_then_else", (sub("bool"), sub(), sub()))
    if choice == 2:
        return Cast(dtype, sub(draw(st.sampled_from((*INTEGERS, "bool")))))
    if choice == 3:
        var = Var("v", dtype)
        value = sub()
        return Let(var, value, draw(st.sampled_from((Max, Min)))(var, sub()))
    if scalar in FLOATS:
        return draw(st.sampled_from((Min, Max, Div)))(sub(), sub())
    if choice == 4:
        divisor = Max(sub(), _of(dtype, 1)) if draw(st.booleans()) else _of(dtype, draw(st.sampled_from((1, 2, 3, 7, 8))))
        return draw(st.sampled_from((FloorDiv, FloorMod, Div, Mod)))(sub(), divisor)
    if choice == 5:
        amount = _of(dtype, draw(st.integers(0, parse_dtype(dtype).bits - 1)))
        return Call(dtype, draw(st.sampled_from(("tir.shift_left", "tir.shift_right"))), (sub(), amount))
    if choice == 6:
        return Call(dtype, draw(st.sampled_from(("tir.bitwise_and", "tir.bitwise_or", "tir.bitwise_xor"))), (sub(), sub()))
    return draw(st.sampled_from((Add, Sub, Mul, Min, Max)))(sub(), sub())


def _of(dtype: str, value: float) -> PrimExpr:
    parsed = parse_dtype(dtype)
    constant = ops.const(value, str(parsed.scalar))
    return constant if parsed.lanes == 1 else Broadcast(constant, parsed.lanes)


def _constants(dtype: str) -> list[PrimExpr]:
    parsed = parse_dtype(dtype)
    if parsed.is_float:
        return [_of(dtype, value) for value in (0.0, -0.0, 1.5, -2.0, float("inf"), float("nan"))]
    low, high = int_limits(str(parsed.scalar))
    return [_of(dtype, value) for value in (0, 1, 5, low, high) if low <= value <= high]


def _data(dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, COUNT).astype(bool)
    if "float" in dtype:
        return np.where(
            rng.integers(0, 4, COUNT) == 0, rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan], COUNT), rng.normal(0, 20, COUNT)
        ).astype(dtype)
    low, high = int_limits(dtype)
    edges = rng.choice([v for v in (0, 1, -1, low, high) if low <= v <= high], COUNT)
    small = rng.integers(max(low, -20), min(high, 20), COUNT)
    return np.where(rng.integers(0, 3, COUNT) == 0, edges, small).astype(dtype)


def _same(got: Any, expected: Any) -> bool:
    """Equal bit by bit but for what NaN holds."""
    if got.dtype.kind != "f":
        return bool((got == expected).all())
    nan = np.isnan(expected)
    return bool((np.isnan(got) == nan).all() and (got == expected)[~nan].all() and (np.signbit(got) == np.signbit(expected))[~nan].all())


@st.composite
def functions_of_expressions(draw: st.DrawFn) -> tuple[PrimFunc, list[Any]]:
    """A function that stores some expressions of inputs of all types, and its arrays: inputs, then results."""
    dtypes = (*INTEGERS, *FLOATS, "bool")
    lanes = draw(st.sampled_from((1, 4, 8)))
    results = draw(st.lists(st.sampled_from(dtypes), min_size=2, max_size=4))
    sources = {dtype: flat(f"in_{dtype}", COUNT, dtype) for dtype in dtypes}
    outs: list[Buffer] = [flat(f"out{i}", COUNT, dtype) for i, dtype in enumerate(results)]
    body = []
    at = draw(st.sampled_from(range(0, COUNT, lanes)))
    index = ramp(at, lanes) if lanes > 1 else ops.const(at)
    inputs = {dtype: [load(buffer, index)] for dtype, buffer in sources.items()}
    for out, dtype in zip(outs, results, strict=True):
        body.append(store(out, index, draw(expressions(with_lanes(dtype, lanes), inputs, 4))))
    seed = draw(st.integers(0, 1000))
    arrays = [*(_data(dtype, seed) for dtype in dtypes), *(np.zeros(COUNT, to_numpy(dtype)) for dtype in results)]
    return primfunc([*sources.values(), *outs], seq(*body)), arrays


def same_bits(got: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether arrays are equal bit by bit but for what NaN holds."""
    return all(map(_same, got, expected))


@settings(deadline=None, derandomize=True, max_examples=share_of(150))
@given(functions_of_expressions())
def test_compiled_expressions_equal_interpreted_ones(drawn: tuple[PrimFunc, list[Any]]) -> None:
    func, arrays = drawn
    compiled, interpreted = ([a.copy() for a in arrays] for _ in range(2))
    interpret(func, interpreted)
    assert compile_function(func)(*compiled) == 0
    assert same_bits(compiled, interpreted), func


@settings(deadline=None, derandomize=True, max_examples=share_of(60))
@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=8, max_size=8), st.sampled_from((-100, -16, -7, -1, 1, 3, 5, 8, 12, 1000)))
def test_floor_division_and_remainder_recompose(values: list[int], divisor: int) -> None:
    a, out = flat("a", 8, "int32"), flat("out", 24, "int32")
    x, d = load(a, ramp(0, 8)), _of("int32x8", divisor)
    quotient, remainder = FloorDiv(x, d), FloorMod(x, d)
    body = seq(*(store(out, ramp(i * 8, 8), value) for i, value in enumerate((quotient, remainder, quotient * d + remainder))))
    result = np.zeros(24, np.int32)
    compile_function(primfunc([a, out], body))(np.array(values, np.int32), result)
    assert result[16:].tolist() == values
    assert all(0 <= r * (1 if divisor > 0 else -1) < abs(divisor) for r in result[8:16].tolist())
