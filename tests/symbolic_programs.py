"""Small programs over symbolic extents, each with the symbols that its arrays determine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tensorexpr import te
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.expr import Var


@dataclass(frozen=True)
class SymbolicProgram:
    """Inputs and outputs, and the variables in their shapes."""

    args: list[Tensor]
    symbols: tuple[Var, ...]


def scaled(dtype: str = "float32") -> SymbolicProgram:
    """B = A * 2 + 1 over n."""
    n = te.var("n")
    a = te.placeholder((n,), dtype, name="A")
    b = te.compute((n,), lambda i: a[i] * 2 + 1, name="B")
    return SymbolicProgram([a, b], (n,))


def broadcast_add(dtype: str = "float32") -> SymbolicProgram:
    """C[i, j] = (A[i, j] + B[j]) * A[i, j] over n x m, in two stages."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), dtype, name="A")
    b = te.placeholder((m,), dtype, name="B")
    t = te.compute((n, m), lambda i, j: a[i, j] + b[j], name="T")
    c = te.compute((n, m), lambda i, j: t[i, j] * a[i, j], name="C")
    return SymbolicProgram([a, b, c], (n, m))


def pairs(dtype: str = "float32") -> SymbolicProgram:
    """C[i] = A[2 i] + A[2 i + 1] + B[i + 1] with A over n * 2 and B over n + 1."""
    n = te.var("n")
    a = te.placeholder((n * 2,), dtype, name="A")
    b = te.placeholder((n + 1,), dtype, name="B")
    t = te.compute((n * 2,), lambda i: a[i] + 1, name="T")
    c = te.compute((n,), lambda i: t[i * 2] + t[i * 2 + 1] + b[i + 1], name="C")
    return SymbolicProgram([a, b, c], (n,))


def matmul(dtype: str = "float32") -> SymbolicProgram:
    """D = A @ B + 1 with all extents symbolic: n x k by k x n."""
    n, k = te.var("n"), te.var("k")
    a = te.placeholder((n, k), dtype, name="A")
    b = te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    d = te.compute((n, n), lambda i, j: c[i, j] + 1, name="D")
    return SymbolicProgram([a, b, d], (n, k))


def row_sums(dtype: str = "float32") -> SymbolicProgram:
    """C[i, j] = A[i, j] - (sum of row i), an even row length."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m * 2), dtype, name="A")
    k = te.reduce_axis((0, m * 2), name="k")
    total = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="total")
    c = te.compute((n, m * 2), lambda i, j: a[i, j] - total[i], name="C")
    return SymbolicProgram([a, c], (n, m))


def stencil(dtype: str = "float32") -> SymbolicProgram:
    """D[i] = C[i] - B[i + 2] with B = A + 1 over n + 2 and C = 2 B."""
    n = te.var("n")
    a = te.placeholder((n + 2,), dtype, name="A")
    b = te.compute((n + 2,), lambda i: a[i] + 1, name="B")
    c = te.compute((n + 2,), lambda i: b[i] * 2, name="C")
    d = te.compute((n,), lambda i: c[i] - b[i + 2], name="D")
    return SymbolicProgram([a, d], (n,))


def blur(dtype: str = "float32") -> SymbolicProgram:
    """A 3 x 3 box sum in two stages, n + 2 by m + 2 to n by m."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n + 2, m + 2), dtype, name="A")
    x = te.compute((n + 2, m), lambda i, j: a[i, j] + a[i, j + 1] + a[i, j + 2], name="X")
    y = te.compute((n, m), lambda i, j: x[i, j] + x[i + 1, j] + x[i + 2, j], name="Y")
    return SymbolicProgram([a, y], (n, m))


def padded(dtype: str = "float32") -> SymbolicProgram:
    """B[i] = P[i] + P[i + 2] where P is A with a zero on either side."""
    n = te.var("n")
    a = te.placeholder((n,), dtype, name="A")
    zero = te.const(0, dtype)
    p = te.compute((n + 2,), lambda i: te.if_then_else(te.all(i >= 1, i < n + 1), a[i - 1], zero), name="P")
    b = te.compute((n,), lambda i: p[i] + p[i + 2], name="B")
    return SymbolicProgram([a, b], (n,))


def transposed(dtype: str = "float32") -> SymbolicProgram:
    """C[j, i] = (A[i, j] + 1) * 3."""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), dtype, name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((m, n), lambda j, i: b[i, j] * 3, name="C")
    return SymbolicProgram([a, c], (n, m))


def reversed_rows(dtype: str = "float32") -> SymbolicProgram:
    """C[i] = B[n - 1 - i], the whole row read from its end."""
    n = te.var("n")
    a = te.placeholder((n,), dtype, name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    c = te.compute((n,), lambda i: b[n - 1 - i], name="C")
    return SymbolicProgram([a, c], (n,))


PROGRAMS: dict[str, Callable[[str], SymbolicProgram]] = {
    program.__name__: program
    for program in (scaled, broadcast_add, pairs, matmul, row_sums, stencil, blur, padded, transposed, reversed_rows)
}
