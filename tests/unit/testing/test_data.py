"""Random data and tolerances."""

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import te
from tensorexpr.testing import Tolerance, random_array, random_inputs, reduction_length, special_values, tolerance
from tensorexpr.tir.dtype import to_numpy

DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "uint32", "bool")


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_have_the_dtype_and_repeat_for_a_seed(dtype: str) -> None:
    a, b, c = (random_array((50,), dtype, seed) for seed in (1, 1, 2))
    assert a.dtype == to_numpy(dtype) and a.shape == (50,)
    assert a.tobytes() == b.tobytes() != c.tobytes()
    assert np.isfinite(a.astype(np.float64)).all() and (np.abs(a.astype(np.float64)) <= 100).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_values_appear_when_asked(dtype: str) -> None:
    array = random_array((2000,), dtype, special=True)
    found = {value.tobytes() for value in array}
    assert all(value.tobytes() in found for value in special_values(dtype))
    assert random_array((0, 3), dtype, special=True).shape == (0, 3) and random_array((), dtype).shape == ()


def test_special_floats_are_what_they_should_be() -> None:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        values = special_values(dtype).astype(np.float64)
        assert np.isnan(values).sum() == 1 and np.isinf(values).sum() == 2
        assert np.signbit(values[values == 0]).tolist() == [False, True]
        finite = values[np.isfinite(values)]
        assert 0 < np.abs(finite[finite != 0]).min() < 1e-7 and finite.max() > 60000


def test_inputs_cover_all_placeholders_and_symbols() -> None:
    n = te.var("n")
    A, B = te.placeholder((n, 3), name="A"), te.placeholder((3,), "int8", name="B")
    C = te.compute((n,), lambda i: A[i, 0] + B[1])
    arrays = random_inputs([C], seed=3, symbols={n: 5})
    assert {t.name: (a.shape, a.dtype.name) for t, a in arrays.items()} == {"A": ((5, 3), "float32"), "B": ((3,), "int8")}


def test_tolerance_grows_with_length_and_magnitude_and_shrinks_with_precision() -> None:
    base = tolerance("float32")
    assert tolerance("float32", 1000).atol > base.atol and tolerance("float32", 1, 100.0).atol > base.atol
    assert tolerance("float64").rtol < base.rtol < tolerance("float16").rtol < tolerance("bfloat16").rtol
    assert tolerance("int32", 1000, 100.0) == Tolerance(0.0, 0.0)


def test_float32_sums_stay_within_it_and_wrong_ones_do_not() -> None:
    terms = random_array((4096, 64), "float32")
    exact = terms.astype(np.float64).sum(axis=0)
    forward = np.zeros(64, np.float32)
    for row in terms:
        forward += row
    allowed = tolerance("float32", 4096)
    assert allowed.mismatch(forward, exact.astype(np.float32)) == ""
    assert allowed.mismatch(forward + terms[0] * np.float32(0.5), exact.astype(np.float32))


def test_reduction_length_adds_up_along_a_path() -> None:
    A = te.placeholder((4, 5, 6), name="A")
    k, q, r = (te.reduce_axis((0, extent)) for extent in (5, 6, 4))
    inner = te.compute((4,), lambda i: te.sum(A[i, k, q], axis=[k, q]))
    outer = te.compute((), lambda: te.sum(inner[r], axis=r))
    assert (reduction_length([A]), reduction_length([inner]), reduction_length([outer])) == (1, 31, 35)


def test_infinities_and_nan_match_only_themselves() -> None:
    a = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert Tolerance(0.1, 0.1).allows(a, a).all()
    assert not Tolerance(0.1, 0.1).allows(a, np.array([1.0, -np.inf, 0.0, np.nan], np.float32)).any()
