"""Tolerances: what they let pass and what they don't."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import te
from tensorexpr.te.tolerance import Tolerance, reduction_length, term_magnitude, tolerance, tolerance_of
from tensorexpr.tir.dtype import to_numpy

from .programs import elementwise, matmul


def test_tolerances_grow_with_coarseness_length_and_magnitude() -> None:
    assert tolerance("float64").atol < tolerance("float32").atol < tolerance("float16").atol < tolerance("bfloat16").atol
    assert tolerance("float32", 1000).atol > 10 * tolerance("float32", 1).atol
    assert tolerance("float32", 10, 5.0).atol == pytest.approx(5 * tolerance("float32", 10, 1.0).atol)
    assert tolerance("int32", 1000, 1000.0) == Tolerance(0.0, 0.0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_not_a_number_and_infinities_match_themselves_only(dtype: str) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1.0, 0.0]).astype(to_numpy(dtype))
    allowed = tolerance(dtype)
    assert allowed.mismatch(values, values) == ""
    for position in range(5):
        wrong = values.copy()
        wrong[position] = 7.0
        assert f"differs at 1 of 5 elements; worst at [{position}]: 7" in allowed.mismatch(wrong, values)
        if position != 0:
            wrong[position] = np.nan
            assert "differs at 1 of 5" in allowed.mismatch(wrong, values)


def test_the_worst_element_of_many_blocks_is_named() -> None:
    expected = np.zeros((3, 1 << 20), np.float32)
    actual = expected.copy()
    actual[0, 5], actual[2, 7], actual[1, 9] = 0.1, -0.5, 0.2
    message = tolerance("float32").mismatch(actual, expected)
    assert message.startswith("differs at 3 of 3145728 elements; worst at [2, 7]: -0.5, expected 0.0")


def test_other_shapes_and_dtypes_do_not_match() -> None:
    allowed = tolerance("float32")
    assert allowed.mismatch(np.zeros(3, np.float32), np.zeros(4, np.float32)) == "is float32[3], expected float32[4]"
    assert allowed.mismatch(np.zeros(3), np.zeros(3, np.float32)) == "is float64[3], expected float32[3]"


def test_lengths_add_up_along_the_longest_path() -> None:
    a, _, c = matmul(64)
    k = te.reduce_axis((0, 64), name="k")
    d = te.compute((64,), lambda i: te.sum(c[i, k], axis=k), name="D")
    assert (reduction_length([a]), reduction_length([c])) == (1, 65)
    assert reduction_length([d]) == 129


def test_the_coarsest_dtype_on_the_way_counts() -> None:
    a = te.placeholder((8,), name="A", dtype="float16")
    half = te.compute((8,), lambda i: a[i] * te.const(3.0, "float16"), name="half")
    wide = te.compute((8,), lambda i: half[i].astype("float32"), name="wide")
    within = te.compute((8,), lambda i: (a[i] * te.const(3.0, "float16")).astype("float32"), name="within")
    read = te.compute((8,), lambda i: a[i].astype("float32") * 3.0, name="read")
    assert tolerance_of(wide).rtol == tolerance_of(half).rtol == tolerance_of(within).rtol == tolerance("float16").rtol
    assert tolerance_of(read).rtol == tolerance("float32").rtol


def test_integers_are_exact_unless_floats_are_rounded_to_them() -> None:
    _, exact = elementwise(8, "int32")
    a = te.placeholder((8,), name="A")
    rounded = te.compute((8,), lambda i: (te.round(a[i] * 3.0)).astype("int8"), name="rounded")
    flags = te.compute((8,), lambda i: a[i] * 3.0 > 1.0, name="flags")
    assert tolerance_of(exact) == Tolerance(0.0, 0.0)
    assert tolerance_of(rounded) == Tolerance(0.0, 1.0)
    assert tolerance_of(flags) == Tolerance(0.0, 0.0)
    one_off, expected = np.array([1, 127], np.int8), np.array([2, 126], np.int8)
    assert tolerance_of(rounded).mismatch(one_off, expected) == ""
    assert "differs at 1 of 2" in tolerance_of(rounded).mismatch(np.array([4, 127], np.int8), expected)


@pytest.mark.parametrize(
    ("values", "length", "magnitude"),
    [(np.full(1000, 8.0), 16, 2.0), (np.array([-8.0] * 32), 1, 8.0), (np.array([1.0, np.nan] * 32), 1, 1.0), (np.array([np.inf]), 4, 0.0)],
)
def test_the_size_of_terms_is_estimated_from_the_sums(values: object, length: int, magnitude: float) -> None:
    assert term_magnitude(values, length) == pytest.approx(magnitude)


def test_few_sums_may_be_small_by_chance() -> None:
    assert term_magnitude(np.ones(2), 1) == pytest.approx(4.0)
