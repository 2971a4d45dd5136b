"""Small programs that the schedule tests share."""

from __future__ import annotations

from tensorexpr import te
from tensorexpr.te.tensor import Tensor


def matmul_add(n: int = 16, m: int = 16, k: int = 16, prefix: str = "") -> list[Tensor]:
    """out = A @ B + C."""
    a = te.placeholder((n, k), name=f"{prefix}A")
    b = te.placeholder((k, m), name=f"{prefix}B")
    c = te.placeholder((n, m), name=f"{prefix}C")
    r = te.reduce_axis((0, k), name="k")
    matmul = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name=f"{prefix}matmul")
    out = te.compute((n, m), lambda i, j: matmul[i, j] + c[i, j], name=f"{prefix}out")
    return [a, b, c, out]


def chain(n: int = 10) -> list[Tensor]:
    """D = (A + 1) * 2 - B(shifted), through two intermediates."""
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((n,), lambda i: b[i] * 2.0, name="C")
    d = te.compute((n - 2,), lambda i: c[i] - b[i + 2], name="D")
    return [a, d]
