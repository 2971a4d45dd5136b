"""Computations that several tests use."""

from __future__ import annotations

from tensorexpr import te
from tensorexpr.te import Tensor
from tensorexpr.tir.arithmetic import const
from tensorexpr.tir.expr import PrimExpr, Var
from tensorexpr.tir.intrin import select


def matmul_add(n: int = 64, dtype: str = "float32", names: str = "ABC") -> tuple[Tensor, ...]:
    A, B, C = (te.placeholder((n, n), dtype, name=name) for name in names)
    k = te.reduce_axis((0, n), name="k")
    matmul = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="matmul")
    out = te.compute((n, n), lambda i, j: matmul[i, j] + C[i, j], name="out")
    return A, B, C, out


def conv2d(n: int = 8, channels: int = 4) -> tuple[Tensor, ...]:
    data = te.placeholder((1, n, n, channels), name="data")
    kernel = te.placeholder((3, 3, channels, channels), name="kernel")

    def inside(y: Var, x: Var) -> PrimExpr:
        return te.all(y >= 1, y < n + 1, x >= 1, x < n + 1)

    pad = te.compute(
        (1, n + 2, n + 2, channels), lambda b, y, x, c: te.if_then_else(inside(y, x), data[b, y - 1, x - 1, c], 0.0), name="pad"
    )
    ry, rx, rc = te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx"), te.reduce_axis((0, channels), "rc")
    conv = te.compute(
        (1, n, n, channels),
        lambda b, y, x, f: te.sum(pad[b, y + ry, x + rx, rc] * kernel[ry, rx, rc, f], axis=[ry, rx, rc]),
        name="conv",
    )
    relu = te.compute((1, n, n, channels), lambda *i: te.max(conv(*i), 0.0), name="relu")
    return data, kernel, relu


def softmax(m: int = 8, n: int = 8) -> tuple[Tensor, ...]:
    A = te.placeholder((m, n), name="A")
    k1, k2 = te.reduce_axis((0, n), "k"), te.reduce_axis((0, n), "k")
    largest = te.compute((m,), lambda i: te.max(A[i, k1], axis=k1), name="maxelem")
    exp = te.compute((m, n), lambda i, j: te.exp(A[i, j] - largest[i]), name="exp")
    total = te.compute((m,), lambda i: te.sum(exp[i, k2], axis=k2), name="expsum")
    return A, te.compute((m, n), lambda i, j: exp[i, j] / total[i], name="norm")


def argmax(m: int = 8, n: int = 8) -> tuple[Tensor, ...]:
    A = te.placeholder((m, n), name="A")
    k = te.reduce_axis((0, n), "k")
    reducer = te.comm_reducer(
        lambda x, y: (select(x[1] >= y[1], x[0], y[0]), select(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (const(-1, t0), te.min_value(t1)),
        name="argmax",
    )
    index, value = te.compute((m,), lambda i: reducer((k, A[i, k]), axis=k), name="argmax")
    return A, index, value


def diamond() -> tuple[Tensor, ...]:
    V = te.placeholder((8,), name="V")
    a = te.compute((8,), lambda i: V[i] + 1.0, name="a")
    b = te.compute((8,), lambda i: a[i] * 2.0, name="b")
    c = te.compute((8,), lambda i: a[i] * 3.0, name="c")
    return V, a, b, c, te.compute((8,), lambda i: c[i] + b[i], name="d")
