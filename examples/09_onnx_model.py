"""Lesson 9: a classifier in an ONNX file: imported, built, run, written as one library, and looked into.

python examples/09_onnx_model.py [--model FILE] [--size PIXELS]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.relax.frontend.onnx import from_onnx


def classifier(pixels: int) -> Any:
    """A small network: a convolution, a depthwise one with a hard swish as exporters spell it, a mean, a product, a softmax."""
    rng = np.random.default_rng(0)
    weights = {
        "w1": rng.standard_normal((16, 3, 3, 3)) / 5,
        "w2": rng.standard_normal((16, 1, 3, 3)) / 3,
        "w3": rng.standard_normal((10, 16)) / 4,
        "b3": rng.standard_normal(10),
        "three": np.array(3.0),
        "zero": np.array(0.0),
        "six": np.array(6.0),
    }
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["c1"], strides=[2, 2], pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], pads=[1] * 4, group=16),
        helper.make_node("Add", ["c2", "three"], ["a"]),
        helper.make_node("Clip", ["a", "zero", "six"], ["clipped"]),
        helper.make_node("Mul", ["c2", "clipped"], ["m"]),
        helper.make_node("Div", ["m", "six"], ["swish"]),
        helper.make_node("GlobalAveragePool", ["swish"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["g"], transB=1),
        helper.make_node("Softmax", ["g"], ["scores"], axis=1),
    ]
    given = [helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [1, 3, pixels, pixels])]
    result = [helper.make_tensor_value_info("scores", onnx.TensorProto.FLOAT, [1, 10])]
    initial = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    return helper.make_model(helper.make_graph(nodes, "classifier", given, result, initial), opset_imports=[helper.make_opsetid("", 17)])


def main() -> None:
    """Import, build, run, profile, write to a library and load it."""
    parser = argparse.ArgumentParser(description="A classifier in an ONNX file.")
    parser.add_argument("--model", type=Path, default=None, help="an ONNX file of one image; a small network that is made here, else")
    parser.add_argument("--size", type=int, default=64, help="pixels of a side")
    options = parser.parse_args()
    model = classifier(options.size) if options.model is None else onnx.load(options.model)
    shape = [1, 3, options.size, options.size]
    weights = {one.name for one in model.graph.initializer}
    (name,) = (one.name for one in model.graph.input if one.name not in weights)

    start = time.perf_counter()
    executable = relax.build(from_onnx(model, shape_dict={name: shape}), target="llvm")
    print(f"imported and built in {time.perf_counter() - start:.1f} s: {len(executable.origins)} kernels")
    print(executable.explain())

    image = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    machine = relax.VirtualMachine(executable, tvm.cpu(), profile=True)
    scores = machine["main"](image).numpy()
    print("\n".join(machine.profile("main", tvm.nd.array(image)).table().splitlines()[:3]), "\n...")
    print(f"class {scores.argmax()} with {scores.max():.0%}; all together {scores.sum():.3f}")

    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "classifier.so"
        executable.export_library(str(library))
        loaded = relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())
        same = np.array_equal(loaded["main"](image).numpy(), scores)
        print(f"a library of {library.stat().st_size // 1024} KB, weights inside; it computes the same: {same}")


if __name__ == "__main__":
    main()
