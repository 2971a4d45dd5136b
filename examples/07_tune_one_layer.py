"""Lesson 7: a network of two layers as one module, of which one layer is tuned and put back.

python examples/07_tune_one_layer.py [--size N] [--trials T]
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr.script import tir as T


def network(batch: int, inputs: int, hidden: int, outputs: int) -> tvm.IRModule:
    """linear1(relu0(linear0(x))), weights with a row for each output."""

    @tvm.script.ir_module
    class Network:
        @T.prim_func
        def linear0(
            X: T.Buffer((batch, inputs), "float32"),
            W: T.Buffer((hidden, inputs), "float32"),
            B: T.Buffer((hidden,), "float32"),
            Z: T.Buffer((batch, hidden), "float32"),
        ) -> None:
            T.func_attr({"global_symbol": "linear0", "tir.noalias": True})
            Y = T.alloc_buffer((batch, hidden), "float32")
            for i, j, k in T.grid(batch, hidden, inputs):
                with T.block("Y"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        Y[vi, vj] = T.float32(0)
                    Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
            for i, j in T.grid(batch, hidden):
                with T.block("Z"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Z[vi, vj] = Y[vi, vj] + B[vj]

        @T.prim_func
        def relu0(X: T.Buffer((batch, hidden), "float32"), Y: T.Buffer((batch, hidden), "float32")) -> None:
            T.func_attr({"global_symbol": "relu0", "tir.noalias": True})
            for i, j in T.grid(batch, hidden):
                with T.block("Y"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

        @T.prim_func
        def linear1(
            X: T.Buffer((batch, hidden), "float32"),
            W: T.Buffer((outputs, hidden), "float32"),
            B: T.Buffer((outputs,), "float32"),
            Z: T.Buffer((batch, outputs), "float32"),
        ) -> None:
            T.func_attr({"global_symbol": "linear1", "tir.noalias": True})
            Y = T.alloc_buffer((batch, outputs), "float32")
            for i, j, k in T.grid(batch, outputs, hidden):
                with T.block("Y"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        Y[vi, vj] = T.float32(0)
                    Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
            for i, j in T.grid(batch, outputs):
                with T.block("Z"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Z[vi, vj] = Y[vi, vj] + B[vj]

    return Network


def run(mod: tvm.IRModule, x: np.ndarray, params: dict[str, np.ndarray]) -> np.ndarray:
    """The network's result, layer by layer, and a line on how long the first layer takes."""
    lib = tvm.build(mod, target="llvm")
    hidden = np.empty((len(x), len(params["w0"])), np.float32)
    positive, result = np.empty_like(hidden), np.empty((len(x), len(params["w1"])), np.float32)
    lib["linear0"](x, params["w0"], params["b0"], hidden)
    lib["relu0"](hidden, positive)
    lib["linear1"](positive, params["w1"], params["b1"], result)
    took = lib.time_evaluator("linear0", tvm.cpu())(x, params["w0"], params["b0"], hidden).mean
    print(f"linear0: {took * 1e6:.1f} us")
    return result


def main() -> None:
    """Run the network, tune its first layer, and run it again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=128, help="of the hidden layer")
    parser.add_argument("--trials", type=int, default=32)
    options = parser.parse_args()
    batch, inputs, hidden, outputs = 4, 784, options.size, 10
    mod = network(batch, inputs, hidden, outputs)

    rng = np.random.default_rng(0)
    shapes = {"w0": (hidden, inputs), "b0": (hidden,), "w1": (outputs, hidden), "b1": (outputs,)}
    params = {name: rng.uniform(-0.1, 0.1, shape).astype("float32") for name, shape in shapes.items()}
    x = rng.uniform(0, 1, (batch, inputs)).astype("float32")
    wanted = np.maximum(x @ params["w0"].T + params["b0"], 0) @ params["w1"].T + params["b1"]
    np.testing.assert_allclose(run(mod, x, params), wanted, rtol=1e-3, atol=1e-4)

    layer = tvm.IRModule.from_expr(mod["linear0"].with_attr("global_symbol", "main"))
    database = ms.tune_tir(
        layer, target="llvm", work_dir=tempfile.mkdtemp(), max_trials_global=options.trials, num_trials_per_iter=16, task_name="main"
    )
    best = ms.tir_integration.compile_tir(database, layer, "llvm")
    assert best is not None

    mod.update_func(mod.get_global_var("linear0"), best.mod["main"].with_attr("global_symbol", "linear0"))
    np.testing.assert_allclose(run(mod, x, params), wanted, rtol=1e-3, atol=1e-4)
    print("the tuned network computes the same")


if __name__ == "__main__":
    main()
