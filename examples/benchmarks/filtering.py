"""3 x 3 convolutions by minimal filtering and by their definition, in turn in one process, with weights that are packed before.

    python examples/benchmarks/filtering.py                                float32 and bytes, planes and channels of ResNet-50 and others
    python examples/benchmarks/filtering.py --sizes 40x160x160 --rounds 20

A size is pixels of a side, channels of the data and of the results. Bytes are compared to the last bit where the processor sums products of
them by twos; where it sums them by fours (VNNI) both are by the definition.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from turns import in_turn

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.lower.context import PassContext
from tensorexpr.relax import BlockBuilder, TensorStructInfo, Var, const, op

SIZES = ("56x64x64", "28x128x128", "14x256x256", "10x128x128", "28x16x16", "28x32x32", "112x16x16", "40x160x160", "20x320x320", "19x48x96")
LAYOUTS = {"data_layout": "NHWC", "kernel_layout": "HWIO"}
Array = Any


def layer(side: int, inputs: int, outputs: int, dtype: str) -> Any:
    """A convolution with a border, an offset, and a ReLU or a rounding to bytes."""
    rng = np.random.default_rng(0)
    x, bb = Var("x", TensorStructInfo((1, side, side, inputs), dtype)), BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            if dtype == "float32":
                weight = const((rng.standard_normal((3, 3, inputs, outputs)) * 0.1).astype("float32"))
                offset = const(rng.standard_normal(outputs).astype("float32"))
                made = op.nn.relu(op.nn.conv2d(x, weight, padding=1, **LAYOUTS) + offset)
            else:
                weight = const(rng.integers(-127, 128, (3, 3, inputs, outputs)).astype("int8"))
                sums = op.nn.conv2d(x, weight, padding=1, out_dtype="int32", **LAYOUTS)
                factors = const((rng.random(outputs) * 1e-3).astype("float32")), const(np.array(3, "uint8"))
                made = op.requantize(sums + const(rng.integers(-999, 999, outputs).astype("int32")), *factors, 3, "uint8")
            out = bb.emit_output(bb.normalize(made))
        bb.emit_func_output(out)
    return bb.get()


def built(mod: Any, disabled: list[str]) -> relax.VirtualMachine:
    """The machine of a module, without some passes."""
    with PassContext(opt_level=3, disabled_pass=disabled):
        return relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())


def main() -> None:
    """Build, compare and time."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", nargs="*", default=SIZES, metavar="SIDExIxO")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    for dtype in ("float32", "uint8"):
        for size in options.sizes:
            side, inputs, outputs = map(int, size.split("x"))
            mod, shape = layer(side, inputs, outputs, dtype), (1, side, side, inputs)
            data = rng.standard_normal(shape).astype(dtype) if dtype == "float32" else rng.integers(0, 256, shape).astype(dtype)
            machines, held = [built(mod, disabled) for disabled in (["MinimalFiltering"], [])], tvm.nd.array(data)
            results: list[Array] = [machine["main"](held).numpy().astype("float64") for machine in machines]
            apart = np.abs(results[0] - results[1]).max() / np.abs(results[0]).max()
            assert apart <= (1e-5 if dtype == "float32" else 0)
            plain, filtered = in_turn([lambda one=one, x=held: one["main"](x) for one in machines], options.rounds, each=8, pause=0.0)
            print(f"{dtype} {size}: {plain:.3f} ms by the definition, {filtered:.3f} filtered, {plain / filtered:.2f}x; apart {apart:.1e}")


if __name__ == "__main__":
    main()
