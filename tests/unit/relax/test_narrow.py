"""Elements of 8 bits and less pass through the machine as NumPy's arrays of them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import DeclarationError
from tensorexpr.relax.ops.narrow import NARROW, narrow_dtype

X = np.array([0.0, -0.0, 0.3, -1.5, 3.0, 1e6, -1e6, np.inf, -np.inf, np.nan], "float32")


def cast(x: Any, dtype: str, **attrs: Any) -> Any:
    """There and back in the machine: the narrow array, and what it is in float32."""
    var = relax.Var("x", relax.TensorStructInfo(x.shape, str(x.dtype)))
    bb = relax.BlockBuilder()
    with bb.function("main", [var]):
        narrow = bb.emit(relax.op.narrow_cast(var, dtype, **attrs))
        bb.emit_func_output((narrow, bb.emit(relax.op.narrow_cast(narrow, "float32"))))
    return relax.VirtualMachine(relax.build(bb.get(), "llvm"), tvm.cpu())["main"](x)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"])
def test_floats_of_8_bits(dtype: str) -> None:
    narrow, back = cast(X, dtype)
    assert (narrow.numpy() if hasattr(narrow, "numpy") else narrow).dtype == narrow_dtype(dtype)
    largest = float(ml_dtypes.finfo(narrow_dtype(dtype)).max)  # type: ignore[no-untyped-call]
    np.testing.assert_allclose(back.numpy()[:5], X[:5], rtol=0.1)
    np.testing.assert_array_equal(back.numpy()[5:9], [largest, -largest, largest, -largest])
    assert np.isnan(back.numpy()[9])
    assert not np.isfinite(cast(X, dtype, saturate=False)[1].numpy()[5:]).any()


@pytest.mark.parametrize(("mode", "expected"), [("up", [0.5, 1, 2, 2, 4]), ("down", [0.5, 0.5, 1, 1, 2]), ("nearest", [0.5, 0.5, 1, 2, 4])])
def test_powers_of_two(mode: str, expected: list[float]) -> None:
    x = np.array([0.5, 0.7, 1.25, 1.5, 3.0], "float32")
    np.testing.assert_array_equal(cast(x, "float8_e8m0fnu", round_mode=mode)[1].numpy(), expected)
    odd = cast(np.array([0.0, np.inf, np.nan, -1.0, 1e-45], "float32"), "float8_e8m0fnu", round_mode=mode)[1].numpy()
    np.testing.assert_array_equal(odd, [2.0**-127, 2.0**127, np.nan, np.nan, 2.0**-127])


def test_integers_of_less_than_a_byte() -> None:
    x = np.arange(-8, 8).astype("float32")
    np.testing.assert_array_equal(cast(x, "int4")[1].numpy(), x)
    np.testing.assert_array_equal(cast(np.arange(4).astype("int32"), "uint2")[1].numpy(), np.arange(4))


def test_what_there_is_not() -> None:
    var = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    with pytest.raises(DeclarationError, match="round_mode is one of up, down, nearest, not 'odd'"):
        relax.op.narrow_cast(var, "float8_e5m2", round_mode="odd")
    assert all(narrow_dtype(one).itemsize == 1 for one in NARROW)
