"""The workloads of tests/golden/records/v06.json: the same definitions were tuned with TVM 0.19."""

from __future__ import annotations

from tensorexpr import auto_scheduler, te
from tensorexpr.te.tensor import Tensor
from tensorexpr.tir.expr import PrimExpr


@auto_scheduler.register_workload
def v06_matmul_add(n: int, m: int, k: int) -> list[Tensor]:
    """out = A B + C."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    c = te.placeholder((n, m), name="C")
    r = te.reduce_axis((0, k), name="k")
    matmul = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="matmul")
    return [a, b, c, te.compute((n, m), lambda i, j: matmul[i, j] + c[i, j], name="out")]


@auto_scheduler.register_workload
def v06_matmul(n: int, m: int, k: int) -> list[Tensor]:
    """matmul = A B."""
    a, b = te.placeholder((n, k), name="A"), te.placeholder((k, m), name="B")
    r = te.reduce_axis((0, k), name="k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="matmul")]


@auto_scheduler.register_workload
def v06_row_min(n: int, m: int) -> list[Tensor]:
    """The least of each row."""
    a = te.placeholder((n, m), name="A")
    r = te.reduce_axis((0, m), name="k")
    return [a, te.compute((n,), lambda i: te.min(a[i, r], axis=r), name="B")]


@auto_scheduler.register_workload
def v06_softmax(n: int, m: int) -> list[Tensor]:
    """Softmax over rows."""
    a = te.placeholder((n, m), name="A")
    k, k2 = te.reduce_axis((0, m), name="k"), te.reduce_axis((0, m), name="k2")
    mx = te.compute((n,), lambda i: te.max(a[i, k], axis=k), name="mx")
    ex = te.compute((n, m), lambda i, j: te.exp(a[i, j] - mx[i]), name="ex")
    sm = te.compute((n,), lambda i: te.sum(ex[i, k2], axis=k2), name="sm")
    return [a, te.compute((n, m), lambda i, j: ex[i, j] / sm[i], name="out")]


@auto_scheduler.register_workload
def v06_conv_relu(n: int, ci: int, h: int, w: int, co: int) -> list[Tensor]:
    """relu(convolution of 3 x 3 with a border of one)."""
    x, f = te.placeholder((n, ci, h, w), name="X"), te.placeholder((co, ci, 3, 3), name="W")

    def padded(b: te.Var, c: te.Var, y: te.Var, z: te.Var) -> PrimExpr:
        inside = te.all(y >= 1, y < h + 1, z >= 1, z < w + 1)
        return te.if_then_else(inside, x[b, c, y - 1, z - 1], 0.0)

    pad = te.compute((n, ci, h + 2, w + 2), lambda b, c, y, x: padded(b, c, y, x), name="pad")
    rc = te.reduce_axis((0, ci), name="rc")
    ry, rx = te.reduce_axis((0, 3), name="ry"), te.reduce_axis((0, 3), name="rx")
    conv = te.compute(
        (n, co, h, w), lambda b, o, y, x: te.sum(pad[b, rc, y + ry, x + rx] * f[o, rc, ry, rx], axis=[rc, ry, rx]), name="conv"
    )
    return [x, f, te.compute((n, co, h, w), lambda b, o, y, x: te.max(conv[b, o, y, x], 0.0), name="relu")]
