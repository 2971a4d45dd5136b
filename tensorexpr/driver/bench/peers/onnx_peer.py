"""ONNX Runtime: each case as a model of one or two nodes, with constants as initialisers, so that it may pack them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....target import Target
from ....workloads import Case
from .base import Array, Call, Peer, Unsupported

# The nodes of a case: (operator, inputs, outputs, attributes); arguments are called x0, x1, ..., the result y.
Node = tuple[str, list[str], list[str], dict[str, Any]]
Nodes = Callable[[Case], list[Node]]


def _conv(case: Case) -> list[Node]:
    stride, padding = case.args[6], case.args[7]
    attributes = {"strides": [stride] * 2, "pads": [padding] * 4}
    return [("Conv", ["x0", "x1", "x2"], ["conv"], attributes), ("Relu", ["conv"], ["y"], {})]


def _depthwise(case: Case) -> list[Node]:
    if len(case.args) > 7 and case.args[7]:
        raise Unsupported("measured without bias")
    attributes = {"strides": [case.args[5]] * 2, "pads": [case.args[6]] * 4, "group": case.args[1]}
    return [("Conv", ["x0", "x1"], ["y"], attributes)]


def _dense(case: Case) -> list[Node]:
    activation = case.args[3] if len(case.args) > 3 else ""
    if activation == "gelu":
        raise Unsupported("no single node")
    nodes: list[Node] = [("Gemm", ["x0", "x1", "x2"], ["y" if not activation else "sum"], {"transB": 1})]
    return nodes + ([("Relu", ["sum"], ["y"], {})] if activation else [])


def _batch_gemm(case: Case) -> list[Node]:
    if case.args[-1] is not True:
        return [("MatMul", ["x0", "x1"], ["y"], {})]
    return [("Transpose", ["x1"], ["t"], {"perm": [0, 2, 1]}), ("MatMul", ["x0", "t"], ["y"], {})]


_TABLE: dict[str, Nodes] = {
    "suite.gemm": lambda case: [("MatMul", ["x0", "x1"], ["y"], {})],
    "suite.matvec": lambda case: [("MatMul", ["x0", "x1"], ["y"], {})],
    "suite.batch_gemm": _batch_gemm,
    "suite.dense": _dense,
    "suite.conv2d_bias_relu": _conv,
    "suite.depthwise_nchw": _depthwise,
    "suite.softmax": lambda case: [("Softmax", ["x0"], ["y"], {"axis": 1})],
    "suite.layer_norm": lambda case: [("LayerNormalization", ["x0", "x1", "x2"], ["y"], {"axis": 1})],
    "suite.transpose": lambda case: [("Transpose", ["x0"], ["y"], {"perm": [1, 0]})],
    "suite.elementwise": lambda case: [
        ("Mul", ["x0", "x1"], ["p"], {}),
        ("Add", ["p", "x2"], ["s"], {}),
        ("Relu", ["s"], ["y"], {}),
    ],
}


class OnnxRuntime(Peer):
    """ONNX Runtime's CPU provider with all its graph optimisations."""

    name = "onnxruntime"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        import onnx
        import onnxruntime

        self._onnx: Any = onnx
        self._runtime: Any = onnxruntime
        self.version = str(onnxruntime.__version__)

    def prepare(self, case: Case, arrays: Sequence[Array]) -> Call:
        """See `Peer.prepare`."""
        if case.workload not in _TABLE or any(a.dtype != np.float32 for a in arrays):
            raise Unsupported("ONNX has no such operator")
        session = self._session(_TABLE[case.workload](case), case, arrays)
        feed = {f"x{n}": a for n, a in enumerate(arrays) if n not in case.constants}
        return lambda: session.run(None, feed)[0]

    def _session(self, nodes: Sequence[Node], case: Case, arrays: Sequence[Array]) -> Any:
        helper, numpy_helper = self._onnx.helper, self._onnx.numpy_helper
        kind = self._onnx.TensorProto.FLOAT
        made = [helper.make_node(op, inputs, outputs, **attributes) for op, inputs, outputs, attributes in nodes]
        inputs = [helper.make_tensor_value_info(f"x{n}", kind, a.shape) for n, a in enumerate(arrays) if n not in case.constants]
        constants = [numpy_helper.from_array(a, f"x{n}") for n, a in enumerate(arrays) if n in case.constants]
        output = helper.make_tensor_value_info("y", kind, None)
        graph = helper.make_graph(made, "case", inputs, [output], constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return self._loaded(model)

    def _loaded(self, model: Any, exact: bool = False) -> Any:
        options = self._runtime.SessionOptions()
        # as many threads as we have; nodes one after the other, as our kernels run
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        options.log_severity_level = 3  # errors
        if exact:
            options.add_session_config_entry("session.x64quantprecision", "1")
        return self._runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def network(self, model: Any, feeds: Mapping[str, Array]) -> Call:
        """See `Peer.network`."""
        session, given = self._loaded(model), dict(feeds)
        return lambda: session.run(None, given)[0]

    def exact_network(self, model: Any, feeds: Mapping[str, Array]) -> Call:
        """See `Peer.exact_network`: where CPUs lack instructions for products of bytes, sums of two saturate in `network`."""
        session, given = self._loaded(model, exact=True), dict(feeds)
        return lambda: session.run(None, given)[0]
