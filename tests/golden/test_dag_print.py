"""The listings of compute DAGs, as tuning logs and papers show them. Every notation was compared with TVM 0.19."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tensorexpr import te
from tensorexpr.te import Tensor
from tensorexpr.te.dag_text import format_dag
from tensorexpr.tir import arithmetic, intrin
from tensorexpr.tir.arithmetic import const
from tensorexpr.tir.expr import PrimExpr, Var

A, B = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
V, D, H = te.placeholder((8,), name="V"), te.placeholder((8,), "float64", "D"), te.placeholder((8,), "float16", "H")
I32, I64, U8 = (te.placeholder((8,), dtype, name) for dtype, name in (("int32", "I"), ("int64", "L"), ("uint8", "U")))
n = te.var("n")
P = te.placeholder((n, 8), name="P")
s = te.placeholder((), name="s")
k, q = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 8), "q")


def vector(body: Callable[[Any], Any]) -> Any:
    return te.compute((8,), body, name="C")


def pairwise_argmax(choose: Callable[[Any, Any, Any], Any]) -> Any:
    argmax = te.comm_reducer(
        lambda x, y: (choose(x[1] >= y[1], x[0], y[0]), choose(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (const(-1, t0), te.min_value(t1)),
        name="argmax",
    )
    return vector(lambda i: argmax((k.var, A[i, k]), axis=k))


def matmul_add(extent: int) -> list[Tensor]:
    X, Y, Z = (te.placeholder((extent, extent), name=name) for name in "ABC")
    r = te.reduce_axis((0, extent), "k")
    matmul = te.compute((extent, extent), lambda i, j: te.sum(X[i, r] * Y[r, j], axis=r), name="matmul")
    return [X, Y, Z, te.compute((extent, extent), lambda i, j: matmul[i, j] + Z[i, j], name="out")]


def softmax() -> Any:
    largest = te.compute((8,), lambda i0: te.max(A[i0, k], axis=k), name="maxelem")
    exp = te.compute((8, 8), lambda i0, i1: te.exp(A[i0, i1] - largest[i0]), name="exp")
    total = te.compute((8,), lambda i0: te.sum(exp[i0, q], axis=q), name="expsum")
    return te.compute((8, 8), lambda i0, i1: exp[i0, i1] / total[i0], name="norm")


def conv() -> Any:
    data, w = te.placeholder((1, 4, 8, 8), name="data"), te.placeholder((4, 4, 3, 3), name="w")

    def inside(y: Var, x: Var) -> PrimExpr:
        return te.all(y >= 1, y < 9, x >= 1, x < 9)

    pad = te.compute((1, 4, 10, 10), lambda b, c, y, x: te.if_then_else(inside(y, x), data[b, c, y - 1, x - 1], 0.0), name="pad_temp")
    rc, ry, rx = te.reduce_axis((0, 4), "rc"), te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx")
    out = te.compute(
        (1, 4, 8, 8), lambda b, f, y, x: te.sum(pad[b, rc, y + ry, x + rx] * w[f, rc, ry, rx], axis=[rc, ry, rx]), name="conv2d"
    )
    return te.compute((1, 4, 8, 8), lambda *i: te.max(out(*i), 0.0), name="relu")


def pool() -> Any:
    data = te.placeholder((1, 8, 8, 4), name="data")
    ry, rx = te.reduce_axis((0, 2), "rv0"), te.reduce_axis((0, 2), "rv1")
    return te.compute((1, 4, 4, 4), lambda *ax: te.max(data[ax[0], ax[1] * 2 + ry, ax[2] * 2 + rx, ax[3]], axis=[ry, rx]), name="pool_max")


def several() -> Any:
    x, y = te.compute((8,), lambda i: (V[i] * 2.0, V[i] + 1.0), name="xy")
    return te.compute((8,), lambda i: x[i] + y[i], name="z")


def product() -> Any:
    prod = te.comm_reducer(lambda x, y: x * y, lambda t: const(1, t), name="prod")
    every = te.comm_reducer(lambda x, y: te.all(x, y), lambda t: const(True, t), name="every")
    return [vector(lambda i: prod(A[i, k], axis=k)), vector(lambda i: every(A[i, k] > 0.0, axis=k))]


def expressions() -> list[Any]:
    floats = [
        lambda i: V[i] * 0.1 + 1e10 + 1e-10 + 3.14159265,
        lambda i: V[i] * 100000.0 + 1000000.0 + 123456.7 + 0.0001 + 0.00001,
        lambda i: D[i] * 1e-7 + 1e7 + 123456789.0,
        lambda i: H[i] * const(1.5, "float16"),
        lambda i: V[i] * te.min_value("float32") + float("inf") - float("nan"),
        lambda i: (V[i] - (V[i] - V[i])) / (V[i] * (V[i] / V[i])),
        lambda i: -V[i],
        lambda i: te.max(te.min(V[i], 1.0), 0.0) + te.power(V[i], 2.0),
    ]
    integers = [
        lambda i: te.floordiv(I32[i], 3) + te.floormod(I32[i], 3) + te.truncdiv(I32[i], 3) + te.truncmod(I32[i], 3),
        lambda i: (I64[i] + 3) * (U8[i] + const(200, "uint8")).astype("int64"),
        lambda i: (I32[i] << 2) + (I32[i] >> 1) + ((I32[i] & 3) | (I32[i] ^ 1)) + ~I32[i] - 2,
        lambda i: I32[i].astype("float32") * V[i].astype("int32").astype("float32") + arithmetic.cast(i, "float32"),
    ]
    conditions = [
        lambda i: te.all(V[i] > 0, V[i] <= 1, te.any(V[i].equal(0.5), V[i] != 0.25)),
        lambda i: intrin.select(arithmetic.logical_not(i < 1), V[i], 1.5),
        lambda i: const(True),
        lambda i: V[te.max(te.min(I32[i], 7), 0)] * s() + P[0, i],
    ]
    return [vector(body) for body in (*floats, *integers, *conditions)]


PROGRAMS: dict[str, Callable[[], Any]] = {
    "matmul_add": lambda: matmul_add(1024),
    "softmax": softmax,
    "conv2d_relu": conv,
    "max_pool": pool,
    "argmax_select": lambda: pairwise_argmax(intrin.select),
    "argmax_if_then_else": lambda: pairwise_argmax(te.if_then_else),
    "several_outputs": several,
    "product": product,
    "where_and_init": lambda: vector(lambda i: te.sum(A[i, k], axis=k, where=k < 4, init=5.0)),
    "rank_0": lambda: te.compute((), lambda: te.sum(A[k, q] * B[k, q], axis=[k, q]), name="C"),
    "symbolic": lambda: te.compute((n, 8), lambda i, j: P[i, j] + 1.0, name="C"),
    "reshape": lambda: te.compute((8, 8), lambda i, j: A[te.floordiv(i * 8 + j, 8), te.floormod(i * 8 + j, 8)], name="C"),
    "constants_only": lambda: te.compute((4, 4), lambda i, j: intrin.select(i.equal(j), 1.0, 0.0), name="C"),
    "expressions": expressions,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_listing(name: str, golden: Callable[[str, str], None]) -> None:
    made = PROGRAMS[name]()
    tensors: Sequence[Tensor] = made if isinstance(made, (list, tuple)) else [made]
    listings = (
        [format_dag([tensor]).splitlines()[-1] for tensor in tensors] if name == "expressions" else [format_dag(tensors).rstrip("\n")]
    )
    golden(f"dag/{name}.txt", "\n".join(listings))
