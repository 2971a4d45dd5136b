"""Expressions as NumPy programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import te
from tensorexpr.te.blocks import boxes, open_grid
from tensorexpr.te.evaluation import Array, compile_program
from tensorexpr.tir import arithmetic, intrin
from tensorexpr.tir.expr import Let, PrimExpr, ProducerLoad, Var

i = Var("i", "int32")
x = Var("x", "float32")
A = te.placeholder((8,), name="A")


def run(expr: PrimExpr, **values: Any) -> Array:
    return compile_program([expr]).run({var: values[var.name] for var in (i, x) if var.name in values})[0]


@pytest.mark.parametrize(
    ("expr", "expected"),
    [
        (arithmetic.floordiv(i, 3), [-3, -1, 0, 2]),
        (arithmetic.floormod(i, 3), [2, 2, 0, 1]),
        (arithmetic.truncdiv(i, 3), [-2, 0, 0, 2]),
        (arithmetic.truncmod(i, 3), [-1, -1, 0, 1]),
        (arithmetic.truncdiv(i, -3), [2, 0, 0, -2]),
        (i * 1000000000 * 3, [-7 * 3000000000 + 5 * (1 << 32), -3000000000 + (1 << 32), 0, 7 * 3000000000 - 5 * (1 << 32)]),
        (arithmetic.negate(i), [7, 1, 0, -7]),
        ((i << 2) ^ 1, [-27, -3, 1, 29]),
        (i >> 1, [-4, -1, 0, 3]),
        (i.astype("int8") * arithmetic.const(100, "int8"), [68, -100, 0, -68]),
        (i.astype("uint8"), [249, 255, 0, 7]),
        (intrin.select(i < 0, 0, i), [0, 0, 0, 7]),
        (arithmetic.all(i > -2, arithmetic.logical_not(i > 0)), [False, True, True, False]),
        (arithmetic.convert(i) * 0 + 5, [5, 5, 5, 5]),
    ],
)
def test_integers(expr: PrimExpr, expected: list[Any]) -> None:
    values = np.array([-7, -1, 0, 7], np.int32)
    np.testing.assert_array_equal(np.broadcast_to(run(expr, i=values), 4), expected)


def test_minimum_and_maximum_treat_nan_as_their_definition_says() -> None:
    nan, one = np.array([np.nan], np.float32), np.float32(1)
    y = arithmetic.const(1.0)
    assert run(arithmetic.maximum(x, y), x=nan) == one and run(arithmetic.minimum(x, y), x=nan) == one
    assert np.isnan(run(arithmetic.maximum(y.astype("float32") + x * 0, x), x=nan))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_functions_keep_their_dtype(dtype: str) -> None:
    v = Var("x", dtype)
    value = compile_program([te.exp(v), v + 1, te.sqrt(te.abs(v))]).run({v: run(x.astype(dtype), x=np.array([0.5], np.float32))})
    assert [str(result.dtype) for result in value] == [dtype] * 3
    np.testing.assert_allclose(value[0].astype(np.float64), np.exp(0.5), rtol=1e-2)


def test_let_binds() -> None:
    assert run(Let(x, arithmetic.const(3.0), x * x)) == 9


def test_reinterpret_keeps_the_bits() -> None:
    assert run(intrin.reinterpret("int32", x), x=np.array([1.0], np.float32))[0] == 0x3F800000


def test_guards_reach_loads_and_nest() -> None:
    masks: dict[str, Any] = {}

    def load(node: ProducerLoad, indices: Any, mask: Any) -> Array:
        masks[str(node)] = mask
        return np.zeros(4, np.float32)

    inner = te.if_then_else(i < 3, A[i], A[i + 1])
    expr = te.if_then_else(i >= 1, inner, A[0]) + A[2]
    compile_program([expr]).run({i: np.arange(4, dtype=np.int32)}, load)
    assert {name: None if mask is None else mask.tolist() for name, mask in masks.items()} == {
        "A[i]": [False, True, True, False],
        "A[i + 1]": [False, False, False, True],
        "A[0]": [True, False, False, False],
        "A[2]": None,
    }


def test_deep_and_shared_expressions_are_evaluated_once() -> None:
    deep: PrimExpr = x
    for _ in range(5000):
        deep = deep * 1.5 - deep
    program = compile_program([deep])
    assert len(program.steps) < 10100 and program.peak < 10
    assert program.run({x: np.float32(1)})[0] == pytest.approx(0.0, abs=1e-30)


def test_boxes_cover_in_order_and_stay_small() -> None:
    for extents in ((), (5,), (3, 4, 5), (7, 1, 2), (2, 0, 3)):
        for volume in (1, 2, 7, 20, 1000):
            points = [p for box in boxes(extents, volume) for p in np.ndindex(*(e - b for b, e in box)) for p in [_shift(p, box)]]
            assert points == list(np.ndindex(*extents))
            assert all(np.prod([e - b for b, e in box]) <= volume for box in boxes(extents, volume))


def _shift(point: tuple[int, ...], box: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    return tuple(p + begin for p, (begin, _) in zip(point, box, strict=True))


def test_open_grid_lies_along_its_dimensions() -> None:
    grid = open_grid(((1, 3), (0, 4)), 1, 3, [10, 0], [np.dtype(np.int32), np.dtype(np.int64)])
    assert [g.shape for g in grid] == [(1, 2, 1), (1, 1, 4)] and grid[0].reshape(-1).tolist() == [11, 12]
    assert [g.dtype.name for g in grid] == ["int32", "int64"]
