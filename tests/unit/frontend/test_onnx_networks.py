"""Operators of ONNX for networks: each model's results are those of the standard's own evaluator."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import ModelError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.frontend.onnx import from_onnx

onnx = pytest.importorskip("onnx")
helper = onnx.helper

CASES: dict[str, tuple[str, int, list[Any], dict[str, Any]]] = {
    "conv": ("Conv", 18, [(1, 4, 7, 6), (6, 2, 3, 3), (6,)], {"group": 2, "auto_pad": "SAME_LOWER", "strides": [2, 1]}),
    "conv of rows": ("Conv", 18, [(1, 2, 9), (3, 2, 4)], {"pads": [2, 1], "dilations": [2]}),
    "transposed": ("ConvTranspose", 18, [(1, 2, 3, 4), (2, 3, 3, 3)], {"strides": [3, 2], "pads": [1, 0, 1, 2], "output_padding": [2, 1]}),
    "transposed, same": ("ConvTranspose", 18, [(1, 2, 3, 4), (2, 3, 3, 3), (3,)], {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    "columns": ("Col2Im", 18, [(1, 8, 4), [4, 5], [2, 2]], {"strides": [2, 3]}),
    "greatest, with places": ("MaxPool", 18, [(1, 2, 5, 5)], {"kernel_shape": [3, 2], "strides": [2, 2], "storage_order": 1}),
    "mean": ("AveragePool", 19, [(1, 2, 5, 6)], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "pads": [1, 0, 1, 1]}),
    "norm of windows": ("LpPool", 18, [(1, 2, 6)], {"kernel_shape": [2], "strides": [2], "p": 3}),
    "hardmax": ("Hardmax", 13, [(2, 3, 4)], {"axis": 1}),
    "layer norm with results between": ("LayerNormalization", 17, [(2, 3, 4), (3, 4)], {"axis": 1}),
    "slopes that broadcast": ("PRelu", 16, [(2, 3, 4), (3, 1)], {}),
    "group norm": ("GroupNormalization", 21, [(2, 4, 3), (4,), (4,)], {"num_groups": 2}),
    "resize": ("Resize", 19, [(1, 2, 5, 6), [0.0], [1.5, 0.6]], {"axes": [3, 2], "mode": "linear", "antialias": 1}),
    "upsample": ("Upsample", 9, [(1, 1, 2, 3), [1.0, 1.0, 2.0, 3.0]], {}),
    "grid": ("GridSample", 20, [(1, 2, 4, 5), (1, 3, 3, 2)], {"mode": "cubic", "padding_mode": "reflection"}),
}
INTEGERS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {
    "product": ("MatMulInteger", [((3, 4), "uint8"), ((4, 5), "int8"), ((), "uint8"), ((5,), "int8")], {}),
    "product, rows": ("MatMulInteger", [((2, 3, 4), "uint8"), ((4, 5), "uint8"), ((2, 3, 1), "uint8")], {}),
    "convolution": (
        "ConvInteger",
        [((1, 4, 5, 6), "uint8"), ((6, 2, 3, 3), "int8"), ((), "uint8")],
        {"group": 2, "pads": [1, 0, 2, 1], "strides": [1, 2]},
    ),
    "convolution, zeros": ("ConvInteger", [((1, 2, 5, 6), "uint8"), ((6, 2, 3, 3), "uint8"), ((), "uint8"), ((6,), "uint8")], {}),
}
RESULTS = {"greatest, with places": 2, "layer norm with results between": 3}


def model(name: str) -> tuple[Any, list[Any]]:
    """A model of one node, and the arrays that go in; lists are initializers."""
    op, opset, operands, attrs = CASES[name]
    rng = np.random.default_rng(len(name))
    inputs, initial, arrays, names = [], [], [], []
    for n, operand in enumerate(operands):
        names.append(f"x{n}")
        if isinstance(operand, list):
            dtype = "float32" if isinstance(operand[0], float) else "int64"
            value = np.array([] if operand == [0.0] else operand, dtype)
            initial.append(onnx.numpy_helper.from_array(value, names[-1]))
        else:
            arrays.append(rng.uniform(-1, 1, operand).astype("float32"))
            inputs.append(helper.make_tensor_value_info(names[-1], onnx.TensorProto.FLOAT, operand))
    results = [f"y{n}" for n in range(RESULTS.get(name, 1))]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attrs)], "g", inputs, [onnx.ValueInfoProto(name=one) for one in results], initial
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]), arrays


def run(made: Any, arrays: Sequence[Any]) -> list[Any]:
    found = relax.VirtualMachine(relax.build(from_onnx(made), "llvm"), tvm.cpu())["main"](*arrays)
    return [one.numpy() for one in (found if isinstance(found, tuple | list) else [found])]


@pytest.mark.parametrize("name", CASES)
def test_a_node_alone(name: str) -> None:
    from onnx.reference import ReferenceEvaluator

    made, arrays = model(name)
    expected = ReferenceEvaluator(made).run(None, {f"x{n}": array for n, array in enumerate(arrays)})
    for one, other in zip(run(made, arrays), expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_less_what_stands_for_zero(name: str) -> None:
    op, operands, attrs = INTEGERS[name]
    rng = np.random.default_rng(len(name))
    arrays = [rng.integers(-100 if dtype == "int8" else 0, 120, shape).astype(dtype) for shape, dtype in operands]
    inputs = [helper.make_tensor_value_info(f"x{n}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in enumerate(arrays)]
    node = helper.make_node(op, [one.name for one in inputs], ["y"], **attrs)
    made = helper.make_model(helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")]))
    wide = [one.astype("int64") for one in arrays]
    zeros = [*wide[2:], *[np.array(0)] * (4 - len(wide))]
    if op == "MatMulInteger":
        expected = (wide[0] - zeros[0]) @ (wide[1] - zeros[1])
    else:
        x, w = wide[0] - zeros[0], wide[1] - zeros[1].reshape(-1, *[1] * 3 if zeros[1].ndim else ())
        top, left, bottom, right = attrs.get("pads", [0] * 4)
        x = np.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)])
        (down, across), groups = attrs.get("strides", [1, 1]), attrs.get("group", 1)
        view = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, ::down, ::across]
        parts = np.split(view, groups, 1), np.split(w, groups, 0)
        expected = np.concatenate([np.einsum("nchvxy,ocxy->nohv", a, b) for a, b in zip(*parts, strict=True)], 1)
    found = run(made, arrays)[0]
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)


def test_softmax_of_old_is_over_all_axes_behind_one() -> None:
    CASES["softmax"] = ("Softmax", 11, [(2, 3, 4)], {"axis": 1})
    made, (x,) = model("softmax")
    del CASES["softmax"]
    expected = np.exp(x) / np.exp(x).sum((1, 2), keepdims=True)
    np.testing.assert_allclose(run(made, [x])[0], expected, rtol=1e-5)


def test_windows_over_four_axes_are_refused() -> None:
    node = helper.make_node("GlobalMaxPool", ["x"], ["y"]), helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[1, 1, 1, 1])
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 1, 2, 2, 2, 2])
    graph = helper.make_graph([node[1]], "g", [info], [onnx.ValueInfoProto(name="y")])
    with pytest.raises(ModelError, match="windows over 4 axes; there are kernels for one to three"):
        from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))


def _as_bytes(x: Any) -> Any:
    """What unsigned bytes for an array stand for, by the text of DynamicQuantizeLinear."""
    low, high = min(0, x.min()), max(0, x.max())
    scale = np.float32(high - low) / np.float32(255) if high > low else np.float32(1)
    zero = np.clip(np.rint(-low / scale), 0, 255)
    return ((np.clip(np.rint(x / scale) + zero, 0, 255) - zero) * scale).astype("float32")


def _lstm_of_bytes(x: Any, w: Any, r: Any, b: Any) -> Any:
    """All states of both directions [time, direction, batch, hidden]; weights [direction, gates, inputs]."""
    time, batch, _ = x.shape
    hidden = r.shape[2]
    found = np.zeros((time, 2, batch, hidden), "float32")
    for way, one in itertools.product(range(2), range(batch)):
        gates = _as_bytes(x)[:, one] @ w[way].T + b[way][: 4 * hidden] + b[way][4 * hidden :]
        state = cells = np.zeros(hidden, "float32")
        for t in range(time) if way == 0 else reversed(range(time)):
            i, o, f, c = np.split(gates[t] + _as_bytes(state) @ r[way].T, 4)
            sigmoid = [1 / (1 + np.exp(-one)) for one in (i, o, f)]
            cells = sigmoid[2] * cells + sigmoid[0] * np.tanh(c)
            found[t, way, one] = state = (sigmoid[1] * np.tanh(cells)).astype("float32")
    return found


@pytest.mark.parametrize("of_columns", [False, True])
@pytest.mark.parametrize("hidden", [3, 40])
def test_recurrent_weights_of_eight_bits(of_columns: bool, hidden: int) -> None:
    """An LSTM with quantised weights rounds its data and states to bytes, as ONNX Runtime does where that is installed."""
    rng, inputs = np.random.default_rng(0), 5
    scales = (2, 4 * hidden) if of_columns else (2,)
    levels = {"w": rng.integers(0, 255, (2, inputs, 4 * hidden)), "r": rng.integers(0, 255, (2, hidden, 4 * hidden))}
    initial: dict[str, Any] = {name: value.astype("uint8") for name, value in levels.items()}
    floats: dict[str, Any] = {"b": rng.standard_normal((2, 8 * hidden)).astype("float32")}
    for name, value in levels.items():
        scale, zero = rng.uniform(0.004, 0.006, scales).astype("float32"), rng.integers(100, 150, scales).astype("uint8")
        initial |= {f"{name}_scale": scale, f"{name}_zero": zero}
        wide = (2, 1, -1)
        real = (value.astype("float32") - zero.reshape(wide)) * scale.reshape(wide)
        floats[name] = np.ascontiguousarray(real.transpose(0, 2, 1))
    # one sequence: of several, ONNX Runtime rounds those that share a thread by one range
    x = rng.standard_normal((4, 1, inputs)).astype("float32")
    rest = ["w_scale", "w_zero", "r_scale", "r_zero"]
    attrs = {"hidden_size": hidden, "direction": "bidirectional"}
    node = helper.make_node("DynamicQuantizeLSTM", ["x", "w", "r", "b", "", "", "", "", *rest], ["y"], domain="com.microsoft", **attrs)
    given = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, x.shape)]
    out = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)]
    weights = [onnx.numpy_helper.from_array(v, n) for n, v in {**initial, "b": floats["b"]}.items()]
    opsets = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", given, out, weights), opset_imports=opsets, ir_version=8)
    mod = from_onnx(model)
    found = relax.VirtualMachine(relax.build(mod))["main"](x).numpy()
    np.testing.assert_allclose(found, _lstm_of_bytes(x, floats["w"], floats["r"], floats["b"]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found, Evaluator(mod)("main", x), rtol=1e-4, atol=1e-5)
    # it takes one zero for all columns
    if not of_columns and importlib.util.find_spec("onnxruntime") is not None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        # without it, sums of two products saturate in CPUs that have no instruction for dot products of bytes
        options.add_session_config_entry("session.x64quantprecision", "1")
        peer = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(found, peer.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)
