"""Fragments of `wmma` on the emulator: what TVM's te programs tensorize to."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.script import from_source
from tensorexpr.testing.ptx import OutOfBounds, emulator

from .assembling import assembled, needs_ptxas

TARGET = "cuda -arch=sm_80"
_SCRIPT = """@T.prim_func
def main(A: T.Buffer(({a}, ), "{dtype}"), B: T.Buffer(({b},), "{dtype}"), C: T.Buffer(({c},), "{out}")):
    tx = T.launch_thread("threadIdx.x", 32)
    sa = T.allocate([{a}], "{dtype}", "shared")
    fa = T.allocate([{ta}], "{dtype}", "wmma.matrix_a")
    fb = T.allocate([{tb}], "{dtype}", "wmma.matrix_b")
    fc = T.allocate([{c}], "{out}", "wmma.accumulator")
    S = T.Buffer(({a},), "{dtype}", data=sa, scope="shared")
    for i in range({a} // 32):
        S[i * 32 + tx] = A[i * 32 + tx]
    T.tvm_storage_sync("shared")
    T.tvm_fill_fragment(fc, {shape}, 0, T.Cast("{out}", 0))
    for k in T.unroll(2):
        T.tvm_load_matrix_sync(fa, {shape}, 0, T.tvm_access_ptr({kind}, sa, k * {step_a}, 1, 1), {stride_a}, "{rows}")
        T.tvm_load_matrix_sync(fb, {shape}, 0, T.tvm_access_ptr({kind}, B.data, k * {step_b}, 1, 1), {stride_b}, "{cols}")
        T.tvm_mma_sync(fc, 0, fa, 0, fb, 0, fc, 0)
    T.tvm_store_matrix_sync(fc, {shape}, 0, T.tvm_access_ptr(T.type_annotation("{out}"), C.data, 0, {c}, 2), {m}, "col_major")
"""


def built(dtype: str, out: str, shape: tuple[int, int, int], rows: str, cols: str, more: int = 0) -> Any:
    """The module of a product of two tiles along the sum, whose result is stored by columns."""
    m, n, k = shape
    by_rows, by_columns = rows == "row_major", cols == "col_major"
    words = {
        **{
            "a": 2 * m * k,
            "b": 2 * n * k,
            "c": m * n,
            "ta": m * k,
            "tb": n * k,
            "m": m + more,
            "dtype": dtype,
            "out": out,
            "kind": f'T.type_annotation("{dtype}")',
        },
        **{"rows": rows, "cols": cols, "shape": f"{m}, {n}, {k}", "stride_a": 2 * k if by_rows else m, "step_a": k if by_rows else k * m},
        **{"stride_b": 2 * k if by_columns else n, "step_b": k if by_columns else k * n},
    }
    return tvm.build(from_source(_SCRIPT.format(**words)), target=TARGET)


def run(dtype: str, out: str, shape: tuple[int, int, int], rows: str, cols: str, more: int = 0) -> tuple[Any, Any]:
    """What the product is, and what it should be."""
    m, n, k = shape
    by_rows, by_columns = rows == "row_major", cols == "col_major"
    module = built(dtype, out, shape, rows, cols, more)
    rng, device = np.random.default_rng(3), emulator()
    kind: Any = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    a, b = (rng.integers(0 if dtype == "uint8" else -8, 8, size).astype(kind) for size in ((m, 2 * k), (2 * k, n)))
    result = tvm.nd.empty((m * n,), out, device)
    module(tvm.nd.array((a if by_rows else a.T).ravel(), device), tvm.nd.array((b.T if by_columns else b).ravel(), device), result)
    return result.numpy().reshape(n, m).T, a.astype("float64") @ b.astype("float64")


@pytest.mark.parametrize(
    "dtype, out, shape, rows, cols",
    [
        ("float16", "float32", (16, 16, 16), "row_major", "row_major"),
        ("float16", "float16", (32, 8, 16), "row_major", "col_major"),
        ("bfloat16", "float32", (8, 32, 16), "col_major", "row_major"),
        ("int8", "int32", (16, 16, 16), "row_major", "col_major"),
        ("uint8", "int32", (32, 8, 16), "col_major", "col_major"),
    ],
)
def test_fragments_multiply(dtype: str, out: str, shape: tuple[int, int, int], rows: str, cols: str) -> None:
    found, wanted = run(dtype, out, shape, rows, cols)
    np.testing.assert_array_equal(found, wanted)


def test_a_fragment_that_is_stored_beyond_its_array() -> None:
    with pytest.raises(OutOfBounds, match="outside all arrays"):
        run("float16", "float32", (16, 16, 16), "row_major", "row_major", more=1)


@needs_ptxas
@pytest.mark.parametrize(
    "dtype, out",
    [("float16", "float32"), ("float16", "float16"), ("bfloat16", "float32"), ("int8", "int32"), ("uint8", "int32")],
)
def test_the_assembler_takes_fragments_of_all_types(dtype: str, out: str) -> None:
    layouts = [(rows, cols) for rows in ("row_major", "col_major") for cols in ("row_major", "col_major")]
    for number, shape in enumerate([(16, 16, 16), (32, 8, 16), (8, 32, 16)]):
        for rows, cols in layouts[number::2]:
            assembly = built(dtype, out, shape, rows, cols).code.assembly
            assert "wmma.mma" in assembly and assembled(assembly, "sm_80").spilled == 0
