"""Computations and schedules that the tests of measuring share."""

from __future__ import annotations

from tensorexpr import te
from tensorexpr.schedule.te_schedule import create_schedule
from tensorexpr.schedule.trace import Trace
from tensorexpr.te.tensor import Tensor


def matmul(size: int = 64, dtype: str = "float32") -> tuple[Tensor, Tensor, Tensor]:
    """C = A B of square matrices."""
    a = te.placeholder((size, size), name="A", dtype=dtype)
    b = te.placeholder((size, size), name="B", dtype=dtype)
    k = te.reduce_axis((0, size), name="k")
    return a, b, te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def tiled(c: Tensor, rows: int, columns: int, parallel: bool = False) -> Trace:
    """Register tiles of `rows` x `columns` elements, 16 lanes to a vector, kept through the whole reduction."""
    s = create_schedule(c.op)
    i, j = s[c].op.axis
    (k,) = s[c].op.reduce_axis
    i_outer, i_inner = s[c].split(i, factor=rows)
    j_outer, j_inner = s[c].split(j, factor=columns)
    vectors, lanes = s[c].split(j_inner, factor=16)
    s[c].reorder(i_outer, j_outer, k, i_inner, vectors, lanes)
    s[c].unroll(i_inner)
    s[c].unroll(vectors)
    s[c].vectorize(lanes)
    if parallel:
        s[c].parallel(i_outer)
    return s.trace


def elementwise(size: int = 1000, dtype: str = "float32") -> tuple[Tensor, Tensor]:
    """C = A + 1."""
    a = te.placeholder((size,), name="A", dtype=dtype)
    return a, te.compute((size,), lambda i: a[i] + te.const(1, dtype), name="C")


def softmax(rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """Softmax over rows."""
    a = te.placeholder((rows, columns), name="A")
    k, m = te.reduce_axis((0, columns), name="k"), te.reduce_axis((0, columns), name="m")
    largest = te.compute((rows,), lambda i: te.max(a[i, k], axis=k), name="largest")
    powers = te.compute((rows, columns), lambda i, j: te.exp(a[i, j] - largest[i]), name="powers")
    total = te.compute((rows,), lambda i: te.sum(powers[i, m], axis=m), name="total")
    return a, te.compute((rows, columns), lambda i, j: powers[i, j] / total[i], name="C")
