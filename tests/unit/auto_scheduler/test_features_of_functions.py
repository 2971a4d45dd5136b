"""The features of a function of loops, by TVM's names."""

# mypy: disable-error-code="valid-type"

from __future__ import annotations

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.auto_scheduler import feature
from tensorexpr.driver.build_module import lower
from tensorexpr.ir import IRModule
from tensorexpr.meta_schedule.feature_extractor import PerStoreFeature
from tensorexpr.script import tir as T


@T.prim_func
def product(A: T.Buffer((16, 32), "float32"), B: T.Buffer((32, 8), "float32"), C: T.Buffer((16, 8), "float32")) -> None:
    for i, j in T.grid(16, 8):
        C[i, j] = T.float32(0)
        for k in range(32):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]


@T.prim_func
def nothing(A: T.Buffer((16,), "float32")) -> None:
    T.evaluate(0)


def test_counts_bytes_and_lines_of_a_product() -> None:
    found = feature.named_features_from_primfunc(product)
    assert found is not None and list(found) == feature.get_per_store_feature_names()
    assert [float(found[name][0]) for name in ("float_addsub", "float_mul", "outer_prod")] == [4096.0] * 3
    # Of B, which moves most lines: 16 kB are read, 1 kB of them different, each for 16 rows, a row of 8 floats further each time.
    values = {"bytes": 16384.0, "unique_bytes": 1024.0, "lines": 2048.0, "reuse_ct": 16.0, "reuse_dis_iter": 256.0, "stride": 8.0}
    assert {name: float(found[f"B0.{name}"][0]) for name in values} == values
    assert found["B2.acc_type.kReadWrite"].tolist() == [1.0]


def test_scaled_they_are_those_of_meta_schedule() -> None:
    rows = feature.features_from_primfunc(product, log_scale=True)
    assert rows.dtype == np.float32 and rows.shape == (1, feature.DEFAULT_FEATURE_VEC_LEN)
    extracted = PerStoreFeature()._extract(IRModule({"main": product}), None)
    np.testing.assert_allclose(rows, extracted, rtol=1e-6)
    assert feature.features_from_primfunc(product, max_n_bufs=2).shape == (1, len(feature.get_per_store_feature_names(2)))
    halved = feature.named_features_from_primfunc(product, cache_line_bytes=32)
    assert halved is not None and halved["B1.lines"].tolist() == [512.0]


def test_a_lowered_function_has_a_row_for_each_store() -> None:
    a = te.placeholder((8, 8), name="A")
    b = te.compute((8, 8), lambda i, j: a[i, j] * 2.0, name="B")
    c = te.compute((8, 8), lambda i, j: b[i, j] + 1.0, name="C")
    func = lower(te.create_schedule(c.op), [a, c])["main"]
    assert isinstance(func, tir.PrimFunc)
    found = feature.named_features_from_primfunc(func)
    assert found is not None and sorted(found["float_mul"] + found["float_addsub"]) == [64.0, 64.0]


def test_no_stores_no_features() -> None:
    assert len(feature.features_from_primfunc(nothing)) == 0 and feature.named_features_from_primfunc(nothing) is None


@pytest.mark.parametrize("scaled", [False, True])
def test_features_are_finite(scaled: bool) -> None:
    assert np.isfinite(feature.features_from_primfunc(product, log_scale=scaled)).all()
