"""Networks whose batch or sequence is open, beside the same built for each size, and onnxruntime.

    chrt -f 5 python examples/benchmarks/open_sizes.py mlp
    chrt -f 5 python examples/benchmarks/open_sizes.py block
    chrt -f 5 python examples/benchmarks/open_sizes.py images

mlp is 512-1024-1024-256 with ReLUs for n rows; block a layer of a transformer, 384 wide with 12 heads, for sequences of any number and
length; images the begin of a residual network, three blocks and a classifier, for n pictures of 64 x 64. All three contenders run in turn
in one process, each after a pause, as threads of onnxruntime wait busily; printed are 20th percentiles in ms, and open is checked against
onnxruntime.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import tensorexpr as te
from tensorexpr import relax
from tensorexpr.frontend.onnx import from_onnx

ROUNDS, THREADS, PAUSE = 40, 2, 0.1
SIZES: dict[str, list[tuple[int, ...]]] = {
    "mlp": [(1, 512), (16, 512), (64, 512), (128, 512)],
    "block": [(1, 128, 384), (1, 37, 384), (2, 64, 384)],
    "images": [(1, 3, 64, 64), (4, 3, 64, 64), (16, 3, 64, 64)],
}
OPEN: dict[str, list[int | str]] = {"mlp": ["n", 512], "block": ["b", "s", 384], "images": ["n", 3, 64, 64]}


class Graph:
    """Nodes and constants of a model as they are made."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._rng = np.random.default_rng(0)

    def constant(self, value: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.constants)}"))
        return str(self.constants[-1].name)

    def __call__(self, op: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, list(inputs), [f"t{len(self.nodes)}"], **attributes))
        return str(self.nodes[-1].output[0])

    def linear(self, x: str, width: int, results: int) -> str:
        weight = self._rng.standard_normal((width, results)) / np.sqrt(width)
        product = self("MatMul", x, self.constant(weight.astype("float32")))
        return self("Add", product, self.constant(self._rng.standard_normal(results).astype("float32")))

    def convolution(self, x: str, channels: int, filters: int, window: int, stride: int = 1) -> str:
        weight = self._rng.standard_normal((filters, channels, window, window)) / (window * np.sqrt(channels))
        bias = self._rng.standard_normal(filters).astype("float32")
        given = (self.constant(weight.astype("float32")), self.constant(bias))
        return self("Conv", x, *given, pads=[window // 2] * 4, strides=[stride] * 2)


def mlp(g: Graph) -> str:
    x = "x"
    for width, results in ((512, 1024), (1024, 1024), (1024, 256)):
        x = g("Relu", g.linear(x, width, results))
    return x


def block(g: Graph) -> str:
    width, heads = 384, 12
    depth = width // heads

    def norm(x: str) -> str:
        ones, zeros = np.ones(width, "float32"), np.zeros(width, "float32")
        return g("LayerNormalization", x, g.constant(ones), g.constant(zeros), axis=-1)

    def of_heads(x: str) -> str:
        return g("Transpose", g("Reshape", x, g.constant(np.array([0, 0, heads, depth]))), perm=[0, 2, 1, 3])

    query, key, value = (of_heads(g.linear("x", width, width)) for _ in range(3))
    scores = g("Mul", g("MatMul", query, g("Transpose", key, perm=[0, 1, 3, 2])), g.constant(np.float32(depth**-0.5)))
    seen = g("Transpose", g("MatMul", g("Softmax", scores, axis=-1), value), perm=[0, 2, 1, 3])
    x = norm(g("Add", "x", g.linear(g("Reshape", seen, g.constant(np.array([0, 0, width]))), width, width)))
    inner = g.linear(x, width, 4 * width)
    erf = g("Erf", g("Mul", inner, g.constant(np.float32(0.5**0.5))))
    gelu = g("Mul", g("Mul", inner, g.constant(np.float32(0.5))), g("Add", erf, g.constant(np.float32(1))))
    return norm(g("Add", x, g.linear(gelu, 4 * width, width)))


def images(g: Graph) -> str:
    x = g("MaxPool", g("Relu", g.convolution("x", 3, 64, 7, 2)), kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    for channels, filters, stride in ((64, 64, 1), (64, 128, 2), (128, 128, 1)):
        inner = g.convolution(g("Relu", g.convolution(x, channels, filters, 3, stride)), filters, filters, 3)
        shortcut = x if stride == 1 else g.convolution(x, channels, filters, 1, stride)
        x = g("Relu", g("Add", inner, shortcut))
    return g.linear(g("Flatten", g("GlobalAveragePool", x)), 128, 100)


MAKE = {"mlp": mlp, "block": block, "images": images}


def model(make: Callable[[Graph], str], shape: Sequence[int | str]) -> Any:
    graph = Graph()
    result = make(graph)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    outputs = [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)]
    made = helper.make_graph(graph.nodes, "g", inputs, outputs, graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def built(made: Any) -> Any:
    return relax.VirtualMachine(relax.build(from_onnx(made), "llvm"), te.cpu())


def main() -> None:
    """Measure the network that is named."""
    name = sys.argv[1]
    make = MAKE[name]
    made = model(make, OPEN[name])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    opened = built(made)
    for shape in SIZES[name]:
        x = np.random.default_rng(1).standard_normal(shape).astype("float32")
        given, known = te.nd.array(x), built(model(make, shape))
        runs: dict[str, Callable[[], Any]] = {
            "open": partial(opened["main"], given),
            "known": partial(known["main"], given),
            "onnxruntime": partial(session.run, None, {"x": x}),
        }
        np.testing.assert_allclose(runs["open"]().numpy(), runs["onnxruntime"]()[0], rtol=1e-3, atol=1e-3)
        times: dict[str, list[float]] = {key: [] for key in runs}
        for _ in range(ROUNDS):
            for key, run in runs.items():
                time.sleep(PAUSE)
                began = time.perf_counter()
                run()
                times[key].append(time.perf_counter() - began)
        print(name, shape, {key: round(float(np.percentile(each, 20)) * 1e3, 3) for key, each in times.items()}, flush=True)


if __name__ == "__main__":
    main()
