"""Small programs that the tests of schedules and of the search share."""

from __future__ import annotations

from tensorexpr import te
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.arithmetic import maximum


def matmul_add(n: int = 16, m: int = 16, k: int = 16, prefix: str = "") -> list[Tensor]:
    """out = A @ B + C."""
    a = te.placeholder((n, k), name=f"{prefix}A")
    b = te.placeholder((k, m), name=f"{prefix}B")
    c = te.placeholder((n, m), name=f"{prefix}C")
    r = te.reduce_axis((0, k), name="k")
    matmul = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name=f"{prefix}matmul")
    out = te.compute((n, m), lambda i, j: matmul[i, j] + c[i, j], name=f"{prefix}out")
    return [a, b, c, out]


def matmul(n: int = 16, m: int = 16, k: int = 16) -> list[Tensor]:
    """C = A @ B."""
    a = te.placeholder((n, k), name="A")
    b = te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")]


def conv_relu(c: int = 4, h: int = 6, f: int = 8) -> list[Tensor]:
    """relu(conv2d(pad(X), W)), NCHW without the batch, 3x3, stride 1."""
    x = te.placeholder((c, h, h), name="X")
    w = te.placeholder((f, c, 3, 3), name="W")
    pad = te.compute(
        (c, h + 2, h + 2),
        lambda ch, i, j: te.if_then_else(te.all(i >= 1, i < h + 1, j >= 1, j < h + 1), x[ch, i - 1, j - 1], 0.0),
        name="pad",
    )
    rc, ri, rj = te.reduce_axis((0, c), "rc"), te.reduce_axis((0, 3), "ri"), te.reduce_axis((0, 3), "rj")
    conv = te.compute((f, h, h), lambda o, i, j: te.sum(pad[rc, i + ri, j + rj] * w[o, rc, ri, rj], axis=[rc, ri, rj]), name="conv")
    out = te.compute((f, h, h), lambda o, i, j: maximum(conv[o, i, j], 0.0), name="out")
    return [x, w, out]


def softmax(n: int = 5, m: int = 12) -> list[Tensor]:
    """softmax over the last axis."""
    x = te.placeholder((n, m), name="X")
    k1, k2 = te.reduce_axis((0, m), "k1"), te.reduce_axis((0, m), "k2")
    top = te.compute((n,), lambda i: te.max(x[i, k1], axis=k1), name="top")
    e = te.compute((n, m), lambda i, j: te.exp(x[i, j] - top[i]), name="e")
    total = te.compute((n,), lambda i: te.sum(e[i, k2], axis=k2), name="total")
    return [x, te.compute((n, m), lambda i, j: e[i, j] / total[i], name="out")]


def chain(n: int = 10) -> list[Tensor]:
    """D[i] = C[i] - B[i + 2] with B = A + 1 and C = 2 B."""
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((n,), lambda i: b[i] * 2.0, name="C")
    d = te.compute((n - 2,), lambda i: c[i] - b[i + 2], name="D")
    return [a, d]
