"""Lesson 8: a graph of a tensor function, an operator and a library call; weights bound, one layer tuned and replaced.

python examples/08_network.py [--size N] [--trials T]
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np

import tensorexpr as tvm
from tensorexpr import meta_schedule as ms
from tensorexpr import relax
from tensorexpr.script import ir as I
from tensorexpr.script import relax as R
from tensorexpr.script import tir as T


@tvm.register_func("lesson8.linear", override=True)
def library_linear(x: tvm.nd.NDArray, w: tvm.nd.NDArray, b: tvm.nd.NDArray, out: tvm.nd.NDArray) -> None:
    """A layer by NumPy, which fills its last argument; nothing is copied on the way in or out."""
    np.from_dlpack(out)[...] = np.from_dlpack(x) @ np.from_dlpack(w).T + np.from_dlpack(b)


def network(inputs: int, hidden: int) -> tvm.IRModule:
    """library_linear(relu(linear0(x))), weights with a row for each output."""

    @I.ir_module
    class Network:
        @T.prim_func
        def linear0(
            X: T.Buffer((1, inputs), "float32"),
            W: T.Buffer((hidden, inputs), "float32"),
            B: T.Buffer((hidden,), "float32"),
            Z: T.Buffer((1, hidden), "float32"),
        ) -> None:
            Y = T.alloc_buffer((1, hidden), "float32")
            for i, j, k in T.grid(1, hidden, inputs):
                with T.block("Y"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        Y[vi, vj] = T.float32(0)
                    Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
            for i, j in T.grid(1, hidden):
                with T.block("Z"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    Z[vi, vj] = Y[vi, vj] + B[vj]

        @R.function
        def main(
            x: R.Tensor((1, inputs), "float32"),
            w0: R.Tensor((hidden, inputs), "float32"),
            b0: R.Tensor((hidden,), "float32"),
            w1: R.Tensor((10, hidden), "float32"),
            b1: R.Tensor((10,), "float32"),
        ) -> R.Tensor((1, 10), "float32"):
            cls = Network
            with R.dataflow():
                lv0 = R.call_tir(cls.linear0, (x, w0, b0), out_sinfo=R.Tensor((1, hidden), "float32"))
                lv1 = R.nn.relu(lv0)
                out = R.call_dps_packed("lesson8.linear", (lv1, w1, b1), out_sinfo=R.Tensor((1, 10), "float32"))
                R.output(out)
            return out

    return Network


def main() -> None:
    """Build and run the network, then again with a tuned layer."""
    parser = argparse.ArgumentParser(description="A network by hand.")
    parser.add_argument("--size", type=int, default=128, help="of the hidden layer")
    parser.add_argument("--trials", type=int, default=32)
    options = parser.parse_args()
    inputs, hidden = 784, options.size
    plain = network(inputs, hidden)
    rng = np.random.default_rng(0)
    weights = {
        name: rng.standard_normal(shape).astype("float32")
        for name, shape in (("w0", (hidden, inputs)), ("b0", (hidden,)), ("w1", (10, hidden)), ("b1", (10,)))
    }
    x = rng.standard_normal((1, inputs)).astype("float32")
    expected = np.maximum(x @ weights["w0"].T + weights["b0"], 0) @ weights["w1"].T + weights["b1"]

    bound = relax.transform.BindParams("main", weights)(plain)
    with tempfile.TemporaryDirectory() as folder:
        layer = tvm.IRModule.from_expr(plain["linear0"].with_attr("global_symbol", "main"))
        database = ms.tune_tir(layer, "llvm --num-cores=1", folder, options.trials, num_trials_per_iter=16)
        tuned = ms.tir_integration.compile_tir(database, layer, "llvm --num-cores=1")
    replaced = bound.clone()
    replaced.update_func("linear0", tuned.mod["main"])

    for name, module in (("by rules", bound), ("tuned", replaced)):
        executable = relax.build(module, target="llvm")
        machine = relax.VirtualMachine(executable, tvm.cpu())
        np.testing.assert_allclose(machine["main"](tvm.nd.array(x)).numpy(), expected, rtol=1e-3, atol=1e-3)
        timed = machine.time_evaluator("main", tvm.cpu(), number=50, repeat=3)(tvm.nd.array(x))
        print(f"{name}: {timed.median * 1e6:.0f} us; schedules: {executable.origins}")
    print("both networks compute what NumPy does")


if __name__ == "__main__":
    main()
