"""Kernels for the tests of PTX, written with threads, shared memory and barriers."""

from __future__ import annotations

from typing import Any

import tensorexpr as tvm
from tensorexpr import te
from tensorexpr.script import tir as T


def elementwise(size: int = 1000) -> tuple[Any, list[Any]]:
    """exp(a) * 2 in blocks of 128 threads, with a guard."""
    a = te.placeholder((size,), name="A")
    b = te.compute((size,), lambda i: te.exp(a[i]) * 2.0, name="B")
    s = te.create_schedule(b.op)
    bx, tx = s[b].split(b.op.axis[0], factor=128)
    s[b].bind(bx, te.thread_axis("blockIdx.x"))
    s[b].bind(tx, te.thread_axis("threadIdx.x"))
    return s, [a, b]


def copies(lanes: int, dtype: str = "float32", size: int = 1024) -> tuple[Any, list[Any]]:
    """a + 1 with accesses of `lanes` elements."""
    a = te.placeholder((size,), dtype, name="A")
    b = te.compute((size,), lambda i: a[i] + tvm.tir.const(1, dtype), name="B")
    s = te.create_schedule(b.op)
    bx, tx = s[b].split(b.op.axis[0], factor=32 * lanes)
    tx, v = s[b].split(tx, factor=lanes)
    s[b].bind(bx, te.thread_axis("blockIdx.x"))
    s[b].bind(tx, te.thread_axis("threadIdx.x"))
    s[b].vectorize(v)
    return s, [a, b]


@T.prim_func
def reverse(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):  # type: ignore[no-untyped-def,valid-type]
    for bx in T.thread_binding(8, "blockIdx.x"):
        S = T.allocate([128], "float32", "shared")
        for tx in T.thread_binding(128, "threadIdx.x"):
            Sb = T.Buffer((128,), "float32", data=S, scope="shared")
            Sb[tx] = A[bx * 128 + tx]
            T.evaluate(T.tvm_storage_sync("shared"))
            B[bx * 128 + tx] = Sb[127 - tx]


@T.prim_func
def reduction(A: T.Buffer((64, 256), "float32"), B: T.Buffer((64,), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """Sums of rows by a tree in shared memory."""
    for bx in T.thread_binding(64, "blockIdx.x"):
        S = T.allocate([128], "float32", "shared")
        for tx in T.thread_binding(128, "threadIdx.x"):
            Sb = T.Buffer((128,), "float32", data=S, scope="shared")
            Sb[tx] = A[bx, tx] + A[bx, tx + 128]
            T.evaluate(T.tvm_storage_sync("shared"))
            for step in range(7):
                if tx < T.shift_right(64, step):
                    Sb[tx] = Sb[tx] + Sb[tx + T.shift_right(64, step)]
                T.evaluate(T.tvm_storage_sync("shared"))
            if tx == 0:
                B[bx] = Sb[0]


@T.prim_func
def softmax(A: T.Buffer((8, 128), "float32"), B: T.Buffer((8, 128), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """A row for each warp, four elements for each thread, reduced by shuffles."""
    for bx in T.thread_binding(4, "blockIdx.x"):
        for ty in T.thread_binding(2, "threadIdx.y"):
            for tx in T.thread_binding(32, "threadIdx.x"):
                row = T.allocate([4], "float32", "local")
                acc = T.allocate([2], "float32", "local")
                R = T.Buffer((4,), "float32", data=row, scope="local")
                X = T.Buffer((2,), "float32", data=acc, scope="local")
                for i in T.vectorized(4):
                    R[i] = A[bx * 2 + ty, tx * 4 + i]
                X[0] = T.max(T.max(R[0], R[1]), T.max(R[2], R[3]))
                for s in T.unroll(5):
                    X[0] = T.max(
                        X[0],
                        T.tvm_warp_shuffle_down(T.uint32(0xFFFFFFFF), X[0], T.shift_right(16, s), 32, 32),
                    )
                X[0] = T.tvm_warp_shuffle(T.uint32(0xFFFFFFFF), X[0], 0, 32, 32)
                for i in T.unroll(4):
                    R[i] = T.exp(R[i] - X[0])
                X[1] = R[0] + R[1] + (R[2] + R[3])
                for s in T.unroll(5):
                    X[1] = X[1] + T.tvm_warp_shuffle_down(T.uint32(0xFFFFFFFF), X[1], T.shift_right(16, s), 32, 32)
                X[1] = T.tvm_warp_shuffle(T.uint32(0xFFFFFFFF), X[1], 0, 32, 32)
                for i in T.vectorized(4):
                    B[bx * 2 + ty, tx * 4 + i] = R[i] / X[1]


@T.prim_func
def gemm(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """Tiles of 32 x 32 by 64 threads of 4 x 4, through shared memory."""
    for by in T.thread_binding(2, "blockIdx.y"):
        for bx in T.thread_binding(2, "blockIdx.x"):
            sa = T.allocate([512], "float32", "shared")
            sb = T.allocate([512], "float32", "shared")
            for ty in T.thread_binding(8, "threadIdx.y"):
                for tx in T.thread_binding(8, "threadIdx.x"):
                    SA = T.Buffer((512,), "float32", data=sa, scope="shared")
                    SB = T.Buffer((512,), "float32", data=sb, scope="shared")
                    acc = T.allocate([16], "float32", "local")
                    R = T.Buffer((16,), "float32", data=acc, scope="local")
                    for i in T.unroll(16):
                        R[i] = T.float32(0)
                    for ko in range(4):
                        T.evaluate(T.tvm_storage_sync("shared"))
                        for r in T.unroll(8):
                            SA[tx * 64 + ty * 8 + r] = A[by * 32 + ty * 4 + r // 2, ko * 16 + (r % 2) * 8 + tx]
                        for r in T.unroll(2):
                            for v in T.vectorized(4):
                                SB[(r * 8 + ty) * 32 + tx * 4 + v] = B[ko * 16 + r * 8 + ty, bx * 32 + tx * 4 + v]
                        T.evaluate(T.tvm_storage_sync("shared"))
                        for k in T.unroll(16):
                            for i in T.unroll(4):
                                for j in T.vectorized(4):
                                    R[i * 4 + j] = R[i * 4 + j] + SA[(k % 8) * 64 + ty * 8 + i * 2 + k // 8] * SB[k * 32 + tx * 4 + j]
                    for i in T.unroll(4):
                        for j in T.vectorized(4):
                            C[by * 32 + ty * 4 + i, bx * 32 + tx * 4 + j] = R[i * 4 + j]


@T.prim_func
def tensor_cores(A: T.Buffer((16, 64), "float16"), B: T.Buffer((64, 8), "float16"), C: T.Buffer((16, 8), "float32")):  # type: ignore[no-untyped-def,valid-type]
    """One tile by one warp: two stages of asynchronous copies, ldmatrix, mma.sync."""
    for _bx in T.thread_binding(1, "blockIdx.x"):
        sa = T.allocate([512], "float16", "shared")
        sb = T.allocate([256], "float16", "shared")
        for tx in T.thread_binding(32, "threadIdx.x"):
            fa = T.allocate([8], "float16", "local")
            fb = T.allocate([4], "float16", "local")
            fc = T.allocate([4], "float32", "local")
            FC = T.Buffer((4,), "float32", data=fc, scope="local")
            for i in T.unroll(4):
                FC[i] = T.float32(0)
            T.evaluate(T.ptx_cp_async("float16", sa, tx * 8, A.data, tx // 2 * 64 + tx % 2 * 8, 16))
            T.evaluate(T.ptx_cp_async("float16", sb, tx * 4, B.data, tx * 4, 8))
            T.evaluate(T.ptx_commit_group())
            for k in T.unroll(4):
                if k < 3:
                    stage = (k + 1) % 2
                    T.evaluate(T.ptx_cp_async("float16", sa, stage * 256 + tx * 8, A.data, tx // 2 * 64 + (k + 1) * 16 + tx % 2 * 8, 16))
                    T.evaluate(T.ptx_cp_async("float16", sb, stage * 128 + tx * 4, B.data, (k + 1) * 128 + tx * 4, 8))
                T.evaluate(T.ptx_commit_group())
                T.evaluate(T.ptx_wait_group(1))
                T.evaluate(T.tvm_storage_sync("shared"))
                T.evaluate(T.ptx_ldmatrix("float16", False, 4, ".b16", fa, 0, sa, k % 2 * 256 + tx % 16 * 16 + tx // 16 * 8))
                T.evaluate(T.ptx_ldmatrix("float16", True, 2, ".b16", fb, 0, sb, k % 2 * 128 + tx % 16 * 8))
                T.evaluate(T.ptx_mma("float32", "m16n8k16", "row", "col", "fp16", "fp16", "fp32", fa, 0, fb, 0, fc, 0, False))
                T.evaluate(T.tvm_storage_sync("shared"))
            for r in T.unroll(4):
                C[tx // 4 + r // 2 * 8, tx % 4 * 2 + r % 2] = FC[r]
