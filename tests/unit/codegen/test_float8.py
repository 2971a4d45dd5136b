"""Conversions from and to floats of 8 bits: all numbers that they have, and what lies between and beyond them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.codegen.signature import BufferParam, Signature
from tensorexpr.runtime.header import c_header
from tensorexpr.target import Target
from tensorexpr.tir.expr import IntImm

SMALL = {"e4m3_float8": ml_dtypes.float8_e4m3fn, "e5m2_float8": ml_dtypes.float8_e5m2}
CONVERT = """
@T.prim_func
def convert(A: T.Buffer(({n},), "{source}"), B: T.Buffer(({n},), "{wanted}")):
    for i in {loop}({n}):
        B[i] = T.Cast("{wanted}", A[i])
"""


def converted(values: Any, source: str, wanted: str, loop: str = "range", target: str = "llvm") -> Any:
    kinds = {**SMALL, "bfloat16": ml_dtypes.bfloat16}
    result = np.zeros(len(values), kinds.get(wanted, wanted))
    func = tvm.build(tvm.script.from_source(CONVERT.format(n=len(values), source=source, wanted=wanted, loop=loop)), target=Target(target))
    func(values.astype(kinds.get(source, source)), result)
    return result


def same(found: Any, expected: Any) -> None:
    """Equal bits: of zeros the sign counts, and NaN are equal."""
    with np.errstate(invalid="ignore"):
        nan = np.isnan(expected.astype("float64"))
        assert (np.isnan(found.astype("float64")) == nan).all()
    assert found[~nan].tobytes() == expected[~nan].tobytes()


@pytest.mark.parametrize("loop", ["range", "T.vectorized"])
@pytest.mark.parametrize("wanted", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("small", SMALL)
def test_all_numbers_become_wide_ones(small: str, wanted: str, loop: str) -> None:
    values = np.arange(256, dtype="uint8").view(SMALL[small])
    kind = ml_dtypes.bfloat16 if wanted == "bfloat16" else wanted
    same(converted(values, small, wanted, loop), values.astype("float32").astype(kind))


@pytest.mark.parametrize("small", SMALL)
def test_wide_numbers_are_rounded_to_the_nearest(small: str) -> None:
    numbers = np.sort(np.arange(128, dtype="uint8").view(SMALL[small]).astype("float32"))
    numbers = numbers[np.isfinite(numbers)]
    between = (numbers[1:] + numbers[:-1]) / 2  # ties
    beyond = np.array(
        [464, 472, 479.99, 480, 496, 511, 512, 57344, 61439, 61440, 65536, 1e30, np.inf, np.nan, 1e-40, 2**-10, 2**-17], "float32"
    )
    exact = np.concatenate([numbers, between, beyond])
    around = np.concatenate([exact, np.nextafter(exact, np.float32(0)), np.nextafter(exact, np.float32(np.inf))])
    values = np.concatenate([around, -around])
    same(converted(values, "float32", small), values.astype(SMALL[small]))
    # A double is rounded once, not by way of float32, where these would be ties.
    ties = between.astype("float64")
    same(converted(ties * (1 + 1e-14), "float64", small), numbers[1:].astype(SMALL[small]))
    same(converted(ties * (1 - 1e-14), "float64", small), numbers[:-1].astype(SMALL[small]))


def test_integers_and_conditions() -> None:
    numbers = np.arange(-128, 128, dtype="int8")
    same(converted(numbers, "int8", "e4m3_float8"), numbers.astype("float32").astype(SMALL["e4m3_float8"]))
    floats = np.arange(256, dtype="uint8").view(SMALL["e5m2_float8"])
    floats = floats[np.isfinite(floats.astype("float32"))]
    np.testing.assert_array_equal(converted(floats, "e5m2_float8", "int32"), floats.astype("float32").astype("int32"))
    np.testing.assert_array_equal(converted(floats, "e5m2_float8", "bool"), floats.astype("float32") != 0)


@pytest.mark.parametrize(("dtype", "element"), [("e5m2_float8", "uint8_t"), ("bfloat16", "uint16_t"), ("float32", "float")])
def test_headers_name_elements_by_their_width(dtype: str, element: str) -> None:
    param = BufferParam("A", dtype, (IntImm("int32", 4),), (), IntImm("int32", 0), 4, True, False)
    assert f"const {element} *A" in c_header([Signature("f", (param,), ())], "lib")
