"""Lesson 11: passes on graphs of one's own: a rewrite by a pattern, and one that walks through the bindings.

python examples/11_graph_pass.py [--size N]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.relax.dpl import is_op, rewrite_call, wildcard


def network(size: int) -> Any:
    """tanh(x w) sigmoid(tanh(x w)), as an exporter spells it that knows no SiLU."""
    x = relax.Var("x", relax.TensorStructInfo((4, size), "float32"))
    w = relax.Var("w", relax.TensorStructInfo((size, size), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, w]):
        with bb.dataflow():
            inner = bb.emit(relax.op.tanh(bb.emit(relax.op.matmul(x, w))))
            gate = bb.emit(relax.op.sigmoid(inner))
            out = bb.emit_output(relax.op.multiply(gate, inner))
        bb.emit_func_output(out)
    return bb.get()


value = wildcard()
# Either order of the factors, as multiplication has none.
silu_by_hand = is_op("relax.multiply")(value, is_op("relax.sigmoid")(value)) | is_op("relax.multiply")(is_op("relax.sigmoid")(value), value)


@relax.transform.function_pass(opt_level=0, name="RecogniseSiLU")
def recognise_silu(func: Any, mod: Any, context: Any) -> Any:
    """x sigmoid(x) becomes one operator."""
    found = rewrite_call(silu_by_hand, lambda call, match: relax.op.nn.silu(match[value]), func)
    return relax.analysis.remove_all_unused(found)


@relax.transform.function_pass(opt_level=0, name="CountCalls")
def count_calls(func: Any, mod: Any, context: Any) -> Any:
    """Says which operators a function calls; it changes nothing."""
    calls = [binding.value.op for block in func.body.blocks for binding in block.bindings if isinstance(binding.value, relax.Call)]
    print("calls:", ", ".join(str(op).removeprefix("relax.") for op in calls))
    return func


def main() -> None:
    """Run the passes by hand, and as a part of a build."""
    parser = argparse.ArgumentParser(description="Passes on graphs.")
    parser.add_argument("--size", type=int, default=64)
    options = parser.parse_args()
    mod = network(options.size)
    count_calls(mod)
    simpler = tvm.transform.Sequential([recognise_silu, count_calls])(mod)

    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((4, options.size), np.float32), rng.standard_normal((options.size, options.size), np.float32)
    inner = np.tanh(x @ w)
    for name, one in (("as given", mod), ("rewritten", simpler)):
        executable = relax.build(one, "llvm")
        found = relax.VirtualMachine(executable, tvm.cpu())["main"](x, w).numpy()
        np.testing.assert_allclose(found, inner / (1 + np.exp(-inner)), rtol=1e-4, atol=1e-5)
        print(f"{name}: kernels {', '.join(executable.origins)}")
    print("both compute what NumPy does")


if __name__ == "__main__":
    main()
