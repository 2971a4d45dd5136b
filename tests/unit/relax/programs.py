# mypy: ignore-errors
# Functions under @R.function are read and never run: their annotations are no types of Python's.
"""Graphs that several tests use."""

from __future__ import annotations

import numpy as np

import tensorexpr as tvm
from tensorexpr.script import ir as I
from tensorexpr.script import relax as R
from tensorexpr.script import tir as T


@tvm.register_func("tests.relax.twice", override=True)
def twice(x: tvm.nd.NDArray, out: tvm.nd.NDArray) -> None:
    np.from_dlpack(out)[...] = np.from_dlpack(x) * 2


@I.ir_module
class Network:
    """Tensor functions, operators, a registered function, a choice and a call of another function, of symbolic size."""

    @T.prim_func
    def relu(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (n, 8), "float32")
        Y = T.match_buffer(y, (n, 8), "float32")
        for i, j in T.grid(n, 8):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor(("n", 6), "float32"), w: R.Tensor((6, 8), "float32"), c: R.Tensor((), "bool")) -> R.Tensor(("n", 8), "float32"):
        n = T.int64()
        cls = Network
        with R.dataflow():
            lv0 = R.matmul(x, w) * 2.0
            lv1 = R.call_tir(cls.relu, (lv0,), out_sinfo=R.Tensor((n, 8), "float32"))
            a, b = R.split(lv1, 2, axis=1)
            out = R.concat((b, a), axis=1)
            R.output(out)
        if c:
            y = cls.helper(out)
        else:
            e = R.exp(out)
            y = R.negative(e)
        return y

    @R.function(private=True)
    def helper(x: R.Tensor(("m", 8), "float32")) -> R.Tensor(("m", 8), "float32"):
        m = T.int64()
        y = R.call_dps_packed("tests.relax.twice", (x,), out_sinfo=R.Tensor((m, 8), "float32"))
        return y + R.const(1.0, "float32")


def inputs(rows: int = 3, choice: bool = True) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((rows, 6)).astype("float32"), rng.standard_normal((6, 8)).astype("float32"), np.array(choice)]


def expected(x: np.ndarray, w: np.ndarray, c: np.ndarray) -> np.ndarray:
    a, b = np.split(np.maximum(x @ w * 2, 0), 2, 1)
    out = np.concatenate([b, a], 1)
    return out * 2 + 1 if c else -np.exp(out)
