"""Programs of one warp on matrix units: products of fragments, of registers, and what fetches these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tensorexpr.script import from_source
from tensorexpr.tir import PrimFunc

Array = np.ndarray[Any, np.dtype[Any]]
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
WMMA = [
    ("float16", "float32", (16, 16, 16), "row_major", "row_major"),
    ("float16", "float16", (32, 8, 16), "row_major", "col_major"),
    ("bfloat16", "float32", (8, 32, 16), "col_major", "row_major"),
    ("int8", "int32", (16, 16, 16), "row_major", "col_major"),
    ("uint8", "int32", (32, 8, 16), "col_major", "col_major"),
]
"""Operands, sums, shape, and how operands lie."""


def fragment_product(dtype: str, out: str, shape: tuple[int, int, int], rows: str, cols: str, more: int = 0) -> PrimFunc:
    """The product of two tiles along the sum, whose result is stored by columns, `more` elements further apart than they are long."""
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
    func = from_source(_SCRIPT.format(**words))
    assert isinstance(func, PrimFunc)
    return func


def fragment_arrays(dtype: str, shape: tuple[int, int, int], rows: str, cols: str) -> tuple[Array, Array, Array]:
    """Both operands as they lie in memory, and their product."""
    m, n, k = shape
    rng = np.random.default_rng(3)
    a, b = (numbers(rng, size, dtype) for size in ((m, 2 * k), (2 * k, n)))
    left, right = (a if rows == "row_major" else a.T), (b.T if cols == "col_major" else b)
    return left.ravel(), right.ravel(), a.astype("float64") @ b.astype("float64")


def numbers(rng: np.random.Generator, shape: Sequence[int], dtype: str) -> Array:
    """Small integers of any dtype."""
    kind: Any = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    return rng.integers(0 if dtype == "uint8" else -8, 8, shape).astype(kind)


def register_product(shape: str, kinds: tuple[str, str, str], dtypes: tuple[str, str, str], saturate: bool = False) -> PrimFunc:
    """Threads have registers of `mma` side by side in A, B and C, which gets the sum."""
    m, n, k = (int(part) for part in shape[1:].replace("n", " ").replace("k", " ").split())
    sizes = (m * k, k * n, m * n)
    each = [size // 32 for size in sizes]
    moves = [
        f"    for e in range({count}):\n        {name}[e] = {source}[tx * {count} + e]"
        for name, source, count in zip("abc", "ABC", each, strict=True)
    ]
    head = ", ".join(f'{name}: T.Buffer(({size},), "{dtype}")' for name, size, dtype in zip("ABC", sizes, dtypes, strict=True))
    memory = [
        f'    {name}_ = T.allocate([{count}], "{dtype}", "local")\n'
        f'    {name} = T.Buffer(({count},), "{dtype}", data={name}_, scope="local")'
        for name, count, dtype in zip("abc", each, dtypes, strict=True)
    ]
    words = ", ".join(f'"{word}"' for word in (dtypes[2], shape, "row", "col", *kinds))
    call = f"    T.ptx_mma({words}, a.data, 0, b.data, 0, c.data, 0, {saturate})"
    back = f"    for e in range({each[2]}):\n        C[tx * {each[2]} + e] = c[e]"
    lines = ["@T.prim_func", f"def main({head}):", '    tx = T.launch_thread("threadIdx.x", 32)', *memory, *moves, call, back]
    func = from_source("\n".join(lines))
    assert isinstance(func, PrimFunc)
    return func


def fetched_rows(count: int, turned: bool, dtype: str, threads: int = 32) -> PrimFunc:
    """`ldmatrix` of `count` matrices: B gets the registers of each thread."""
    width, per = (8, 2) if dtype == "float16" else (16, 4)
    size = 8 * count * width
    func = from_source(f"""@T.prim_func
def main(A: T.Buffer(({size},), "{dtype}"), B: T.Buffer(({32 * count * per},), "{dtype}")):
    tx = T.launch_thread("threadIdx.x", {threads})
    s_data = T.allocate([{size}], "{dtype}", "shared")
    s = T.Buffer(({size},), "{dtype}", data=s_data, scope="shared")
    r_data = T.allocate([{count * per}], "{dtype}", "local")
    r = T.Buffer(({count * per},), "{dtype}", data=r_data, scope="local")
    for e in range({size // 32}):
        s[e * 32 + tx] = A[e * 32 + tx]
    T.tvm_storage_sync("shared")
    T.ptx_ldmatrix("{dtype}", {turned}, {count}, ".b16", r.data, 0, T.address_of(s[tx % {8 * count} * {width}]), 0)
    for e in range({count * per}):
        B[tx * {count * per} + e] = r[e]
""")
    assert isinstance(func, PrimFunc)
    return func
