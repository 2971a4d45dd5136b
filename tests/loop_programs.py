"""Functions of blocks for the primitives on nests, reductions and memory; small, so that they can be interpreted."""

# mypy: disable-error-code="valid-type, no-untyped-def, name-defined, type-arg"

from __future__ import annotations

from tensorexpr import tir
from tensorexpr.script import tir as T


@T.prim_func
def matmul(A: T.Buffer((8, 12), "float32"), B: T.Buffer((12, 16), "float32"), C: T.Buffer((8, 16), "float32")):
    for i, j, k in T.grid(8, 16, 12):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def biased(A: T.Buffer((8, 12), "float32"), D: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
    E = T.alloc_buffer((8,))
    for i in range(8):
        with T.block("E"):
            vi = T.axis.spatial(8, i)
            E[vi] = D[vi] * T.float32(2)
        for k in range(12):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = E[vi]
                C[vi] = C[vi] + A[vi, vk]


@T.prim_func
def chain(A: T.Buffer((8, 12), "float32"), C: T.Buffer((8, 12), "float32")):
    B = T.alloc_buffer((8, 12))
    for i, j in T.grid(8, 12):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(8, 12):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)


@T.prim_func
def shifted(A: T.Buffer((16,), "float32"), C: T.Buffer((15,), "float32")):
    B = T.alloc_buffer((16,))
    for i in range(15):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi + 1] = A[vi + 1] * T.float32(2)
    for i in range(15):
        with T.block("C"):
            vi = T.axis.spatial(15, i)
            C[vi] = B[T.max(vi + 1, 3)] + T.float32(1)


@T.prim_func
def reversed_sum(A: T.Buffer((16,), "float32"), C: T.Buffer((15,), "float32")):
    B = T.alloc_buffer((16,))
    for i in range(15):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
    for i in range(15):
        with T.block("C"):
            vi = T.axis.spatial(15, i)
            C[vi] = B[14 - vi] + T.float32(1)


@T.prim_func
def argmax(N: T.Buffer((4, 12), "int32"), V: T.Buffer((4, 12), "float32"), P: T.Buffer((4,), "int32"), M: T.Buffer((4,), "float32")):
    for i, j in T.grid(4, 12):
        with T.block("P"):
            vi, vk = T.axis.remap("SR", [i, j])
            with T.init():
                P[vi] = -1
                M[vi] = T.min_value("float32")
            place: T.int32 = T.Select(M[vi] >= V[vi, vk], P[vi], N[vi, vk])
            value: T.float32 = T.Select(M[vi] >= V[vi, vk], M[vi], V[vi, vk])
            P[vi] = place
            M[vi] = value


@T.prim_func
def tiles(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    for m in range(4):
        for i, j in T.grid(4, 16):
            with T.block("B"):
                vi = T.axis.spatial(16, m * 4 + i)
                vj = T.axis.spatial(16, j)
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(4, 16):
            with T.block("C"):
                vi = T.axis.spatial(16, m * 4 + i)
                vj = T.axis.spatial(16, j)
                C[vi, vj] = A[vi, vj] * T.float32(3)


@T.prim_func
def windows(A: T.Buffer((10,), "float32"), C: T.Buffer((8,), "float32")):
    B = T.alloc_buffer((10,))
    for i in range(10):
        with T.block("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = A[vi] * T.float32(2)
    for i, k in T.grid(8, 3):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + B[vi + vk]


@T.prim_func
def dot_description(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 4), offset_factor=1)
    B = T.match_buffer(b, (4, 4), offset_factor=1)
    C = T.match_buffer(c, (4, 4), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 4):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def dot_implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 4), offset_factor=1, strides=[T.int32(), T.int32()])
    B = T.match_buffer(b, (4, 4), offset_factor=1, strides=[T.int32(), T.int32()])
    C = T.match_buffer(c, (4, 4), offset_factor=1, strides=[T.int32(), T.int32()])
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:4], B[0:4, 0:4])
        T.writes(C[0:4, 0:4])
        for k, i, j in T.grid(4, 4, 4):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]


def register_dot() -> str:
    """The name of an intrinsic for products of 4 x 4."""
    tir.TensorIntrin.register("test_dot_4x4", dot_description, dot_implementation, override=True)
    return "test_dot_4x4"
