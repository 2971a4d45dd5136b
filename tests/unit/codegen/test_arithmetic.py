"""Arithmetic, comparisons, divisions, shifts and bit operations against Python's integers and NumPy's floats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tensorexpr.errors import CodegenError
from tensorexpr.tir import arithmetic as ops
from tensorexpr.tir import bitwise as bit_ops
from tensorexpr.tir import intrin
from tensorexpr.tir.dtype import int_limits, to_numpy, wrap_int
from tensorexpr.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    BinaryExpr,
    CmpExpr,
    Div,
    FloorDiv,
    FloorMod,
    Max,
    Min,
    Mod,
    PrimExpr,
    Shuffle,
    Var,
)

from .harness import Array, apply, compile_function, flat, load, loop, primfunc, store

INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")
LANES = (1, 5, 16)


def _edges(dtype: str) -> list[int]:
    low, high = int_limits(dtype)
    return [v for v in (0, 1, 2, 3, 5, 7, 8, 100, -1, -2, -3, -7, -8, -100, low, low + 1, high, high - 1) if low <= v <= high]


def _pairs(dtype: str) -> tuple[Array, Array]:
    edges = _edges(dtype)
    pairs = [(a, b) for a in edges for b in edges]
    return tuple(np.array(side, to_numpy(dtype)) for side in zip(*pairs, strict=True))  # type: ignore[return-value]


def _truncdiv(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_DIVISIONS: dict[type[BinaryExpr], Callable[[int, int], int]] = {
    Div: _truncdiv,
    Mod: lambda a, b: a - b * _truncdiv(a, b),
    FloorDiv: lambda a, b: a // b,
    FloorMod: lambda a, b: a % b,
}


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype: str, lanes: int) -> None:
    a, b = _pairs(dtype)
    for build, python in ((ops.add, int.__add__), (ops.subtract, int.__sub__), (ops.multiply, int.__mul__)):
        expected = [wrap_int(python(int(x), int(y)), dtype) for x, y in zip(a, b, strict=True)]
        assert apply(build, dtype, a, b, lanes=lanes).tolist() == expected


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_minimum_and_maximum_of_integers(dtype: str, lanes: int) -> None:
    a, b = _pairs(dtype)
    assert (apply(ops.minimum, dtype, a, b, lanes=lanes) == np.minimum(a, b)).all()
    assert (apply(ops.maximum, dtype, a, b, lanes=lanes) == np.maximum(a, b)).all()


@pytest.mark.parametrize("lanes", (1, 8))
@pytest.mark.parametrize("op", _DIVISIONS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_divisions_by_variables_are_total(dtype: str, op: type[BinaryExpr], lanes: int) -> None:
    """By zero: 0. The least integer over -1 wraps. Neither traps."""
    a, b = _pairs(dtype)
    expected = [wrap_int(_DIVISIONS[op](x, y), dtype) if y else 0 for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert apply(op, dtype, a, b, lanes=lanes).tolist() == expected


@pytest.mark.parametrize("dtype", ("int8", "int32", "uint32", "int64"))
@pytest.mark.parametrize("op", _DIVISIONS, ids=lambda op: op.__name__)
def test_divisions_by_constants(op: type[BinaryExpr], dtype: str) -> None:
    a = np.array(_edges(dtype), to_numpy(dtype))
    for divisor in (v for v in (1, 2, 3, 7, 8, 64, 100, -1, -2, -3, -8) if int_limits(dtype)[0] <= v):
        for lanes in (1, 8):
            got = apply(lambda x, d=divisor: op(x, ops.const(d, x.dtype)), dtype, a, lanes=lanes)
            expected = [wrap_int(_DIVISIONS[op](x, divisor), dtype) for x in a.tolist()]
            assert got.tolist() == expected, (op, divisor, lanes)


@pytest.mark.parametrize("op", _DIVISIONS, ids=lambda op: op.__name__)
def test_divisions_of_loop_variables_use_their_range(op: type[BinaryExpr]) -> None:
    """A loop variable that is not negative takes the unsigned forms; one that may be takes the others."""
    divisors = (1, 3, 4, 7)
    for start in (0, -9):
        out = flat("out", 4 * 20, "int32")

        def body(i: Var, out: object = out, start: int = start) -> object:
            from tensorexpr.tir.stmt import seq

            return seq(*(store(out, i * 4 + n, op(i + start, ops.const(d, "int32"))) for n, d in enumerate(divisors)))  # type: ignore[arg-type]

        result = np.zeros(80, np.int32)
        compile_function(primfunc([out], loop("i", 20, body)))(result)  # type: ignore[arg-type]
        assert result.tolist() == [_DIVISIONS[op](i + start, d) for i in range(20) for d in divisors]


@pytest.mark.parametrize("op", _DIVISIONS, ids=lambda op: op.__name__)
def test_divisors_that_are_negative_may_be_minus_one(op: type[BinaryExpr]) -> None:
    """The least integer over -1 traps on most machines, so a range that ends with -1 needs the careful form."""
    a, out = flat("a", 4, "int32"), flat("out", 4, "int32")
    compiled = compile_function(primfunc([a, out], loop("i", 4, lambda i: store(out, i, op(load(a, i), i - 4)))))
    assert "select" in compiled.text, "calling it would end the process"
    given, result = np.array([-(1 << 31), 7, -7, -(1 << 31)], np.int32), np.zeros(4, np.int32)
    compiled(given, result)
    assert result.tolist() == [wrap_int(_DIVISIONS[op](x, i - 4), "int32") for i, x in enumerate(given.tolist())]


def test_unsigned_forms_are_chosen() -> None:
    out = flat("out", 20, "int32")
    text = compile_function(primfunc([out], loop("i", 20, lambda i: store(out, i, i // 3 + i % 8)))).text
    assert "udiv" in text and "and i32" in text and "sdiv" not in text and "select" not in text


def test_division_in_a_dead_branch_does_not_trap() -> None:
    a, b = np.arange(8, dtype=np.int32), np.array([0, 1, 2, 0, 3, -1, 0, 5], np.int32)
    for lanes in (1, 4):
        got = apply(lambda x, y: intrin.if_then_else(ops.compare(NE, y, 0), FloorDiv(x, y), x * 0 - 7), "int32", a, b, lanes=lanes)
        assert got.tolist() == [x // y if y else -7 for x, y in zip(a.tolist(), b.tolist(), strict=True)]


_COMPARISONS: dict[type[CmpExpr], Callable[[Array, Array], Array]] = {
    EQ: np.equal,
    NE: np.not_equal,
    LT: np.less,
    LE: np.less_equal,
    GT: np.greater,
    GE: np.greater_equal,
}
_FLOATS = np.array([0.0, -0.0, 1.0, -1.0, 1.5, 3e38, -3e38, 1e-45, np.inf, -np.inf, np.nan])


def _float_pairs(dtype: str) -> tuple[Array, Array]:
    with np.errstate(over="ignore"):
        values = _FLOATS.astype(to_numpy(dtype))
    return np.repeat(values, len(values)), np.tile(values, len(values))


@pytest.mark.parametrize("lanes", (1, 16))
@pytest.mark.parametrize("dtype", ("int8", "uint8", "uint32", "int64", "float32", "float64", "float16", "bfloat16", "bool"))
def test_comparisons(dtype: str, lanes: int) -> None:
    if dtype == "bool":
        a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    else:
        a, b = _float_pairs(dtype) if "float" in dtype else _pairs(dtype)
    with np.errstate(invalid="ignore"):
        for op, expected in _COMPARISONS.items():
            assert (apply(op, "bool", a, b, lanes=lanes) == expected(a, b)).all(), op


@pytest.mark.parametrize("lanes", (1, 3, 16))
@pytest.mark.parametrize("dtype", ("float32", "float64", "float16", "bfloat16"))
def test_floats_are_ieee(dtype: str, lanes: int) -> None:
    a, b = _float_pairs(dtype)
    wide = np.float32 if dtype in ("float16", "bfloat16") else a.dtype
    with np.errstate(all="ignore"):
        for build, op in ((ops.add, np.add), (ops.subtract, np.subtract), (ops.multiply, np.multiply), (ops.div, np.divide)):
            expected = op(a.astype(wide), b.astype(wide)).astype(a.dtype)
            _assert_same(apply(build, dtype, a, b, lanes=lanes), expected)


@pytest.mark.parametrize("lanes", (1, 16))
@pytest.mark.parametrize("dtype", ("float32", "float64", "float16", "bfloat16"))
def test_minimum_and_maximum_of_floats_are_comparisons(dtype: str, lanes: int) -> None:
    """Min is a < b ? a : b, so a NaN on either side and equal zeros give b."""
    a, b = _float_pairs(dtype)
    with np.errstate(invalid="ignore"):
        _assert_same(apply(Min, dtype, a, b, lanes=lanes), np.where(a < b, a, b))
        _assert_same(apply(Max, dtype, a, b, lanes=lanes), np.where(a > b, a, b))


def _assert_same(got: Array, expected: Array) -> None:
    """Equal as values, NaN with NaN, and zeros with their sign."""
    nan = np.isnan(expected)
    assert (np.isnan(got) == nan).all()
    assert (got[~nan] == expected[~nan]).all()
    assert (np.signbit(got[~nan]) == np.signbit(expected[~nan])).all()


def test_negation_flips_the_sign_of_zero() -> None:
    a = np.array([0.0, -0.0, 1.0, np.inf], np.float32)
    _assert_same(apply(ops.negate, "float32", a, lanes=4), -a)


def test_a_product_and_a_sum_are_fused() -> None:
    a = np.full(16, 1 + 2.0**-12, np.float32)
    got = apply(lambda x, y: x * x - y, "float32", a, np.full(16, np.float32(a[0] * a[0])), lanes=16)
    assert (got == 2.0**-24).all()  # the rounding error of the product, which two roundings would lose


def test_low_precision_rounds_each_operation() -> None:
    a = np.random.default_rng(0).normal(size=64).astype(np.float16)
    got = apply(lambda x: x * x + x, "float16", a, lanes=16)
    assert (got == ((a * a) + a)).all()


@pytest.mark.parametrize("lanes", (1, 16))
@pytest.mark.parametrize("dtype", INTEGERS)
def test_bit_operations(dtype: str, lanes: int) -> None:
    a, b = _pairs(dtype)
    for build, op in ((bit_ops.bitwise_and, np.bitwise_and), (bit_ops.bitwise_or, np.bitwise_or), (bit_ops.bitwise_xor, np.bitwise_xor)):
        assert (apply(build, dtype, a, b, lanes=lanes) == op(a, b)).all()
    assert (apply(bit_ops.bitwise_not, dtype, a, lanes=lanes) == np.bitwise_not(a)).all()
    for build_one, name in ((intrin.popcount, "tir.popcount"), (intrin.clz, "tir.clz")):
        evaluate = intrin.INTRINSICS[name].evaluate
        assert evaluate is not None
        assert (apply(build_one, dtype, a, lanes=lanes) == evaluate(a)).all(), name


@pytest.mark.parametrize("lanes", (1, 16))
@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_by_any_amount(dtype: str, lanes: int) -> None:
    bits = to_numpy(dtype).itemsize * 8
    values = _edges(dtype)
    amounts = [0, 1, 3, bits - 1, bits, bits + 5]
    a = np.array([v for v in values for _ in amounts], to_numpy(dtype))
    b = np.array([n for _ in values for n in amounts], to_numpy(dtype))
    left = [wrap_int(v << n, dtype) if n < bits else 0 for v in values for n in amounts]
    right = [v >> n for v in values for n in amounts]
    assert apply(bit_ops.shift_left, dtype, a, b, lanes=lanes).tolist() == left
    assert apply(bit_ops.shift_right, dtype, a, b, lanes=lanes).tolist() == right


@pytest.mark.parametrize("lanes", (1, 16))
def test_logic(lanes: int) -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert (apply(ops.logical_and, "bool", a, b, lanes=lanes) == (a & b)).all()
    assert (apply(ops.logical_or, "bool", a, b, lanes=lanes) == (a | b)).all()
    assert (apply(ops.logical_not, "bool", a, lanes=lanes) == ~a).all()
    assert (apply(Min, "bool", a, b, lanes=lanes) == (a & b)).all()


def test_a_bool_byte_is_true_unless_zero() -> None:
    raw = np.array([0, 1, 2, 255], np.uint8).view(bool)
    got = apply(lambda x: ops.cast(x, "int32x4"), "int32", raw, lanes=4)
    assert got.tolist() == [0, 1, 1, 1]


def test_select_evaluates_lane_by_lane() -> None:
    a = np.arange(-8, 8, dtype=np.float32)
    got = apply(lambda x: intrin.select(ops.compare(GT, x, 0.0), x, x * 0.5), "float32", a, lanes=16)
    assert (got == np.where(a > 0, a, a * np.float32(0.5))).all()


def test_float_division_kinds_without_meaning_are_refused() -> None:
    x = np.ones(4, np.float32)
    with pytest.raises(CodegenError, match=r"FloorMod of float32; floats take"):
        apply(FloorMod, "float32", x, x)


def test_constants_of_every_dtype() -> None:
    for dtype, value in (("float16", 1.5), ("bfloat16", -2.25), ("float32", 0.1), ("float64", 0.1), ("uint8", 200), ("int64", -(1 << 62))):
        x = np.zeros(8, to_numpy(dtype))
        expected = np.full(8, value).astype(to_numpy(dtype)) if "float" in dtype else np.full(8, value, to_numpy(dtype))
        for lanes in (1, 8):

            def shifted(e: PrimExpr, dtype: str = dtype, value: float = value) -> PrimExpr:
                return e + ops.const(value, dtype)

            assert (apply(shifted, dtype, x, lanes=lanes) == expected).all()


def test_sums_over_lanes_stay_before_the_next_loop() -> None:
    """LLVM moves what only a later block needs behind the loops between, with all the vectors that it is made of."""
    a, out = flat("a", 8), flat("out", 8)
    vector = Shuffle(tuple(load(a, lane) for lane in range(4)), (0, 1, 2, 3))
    total = ops.add(Shuffle((vector,), (0,)), Shuffle((vector,), (1,)))
    function = compile_function(primfunc([a, out], store(out, 0, total)))
    assert function.text.count("constrained.fadd") == 1
    values, result = np.arange(1, 9, dtype=np.float32), np.zeros(8, np.float32)
    assert function(values, result) == 0
    assert result[0] == 3.0
