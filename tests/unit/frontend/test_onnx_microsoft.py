"""Operators of ONNX Runtime's domain against ONNX Runtime, or NumPy where it isn't installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import ArgumentError, ModelError, NeedsValueError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.frontend.onnx import from_onnx

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402

RNG = np.random.default_rng(0)
F = "float32"


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(F)


def levels(*shape: int) -> Any:
    return RNG.integers(0, 255, shape).astype("uint8")


def scale(value: float, zero: int) -> list[Any]:
    return [np.array(value, F), np.array(zero, "uint8")]


X, WIDE = normal(2, 5, 8), [normal(8), normal(8), normal(8)]
WORDS = RNG.integers(0, 11, (2, 5)).astype("int32")
SEGMENTS = RNG.integers(0, 2, (2, 5)).astype("int32")
QKV = [X, normal(8, 24), normal(24)]
CASES: dict[str, tuple[str, list[Any], dict[str, Any], int]] = {
    "gelu": ("Gelu", [X], {}, 1),
    "bias gelu": ("BiasGelu", [X, WIDE[0]], {}, 1),
    "fast gelu": ("FastGelu", [X, WIDE[0]], {}, 1),
    "quick gelu": ("QuickGelu", [X], {"alpha": 1.5}, 1),
    "fused product": ("FusedMatMul", [normal(4, 3), normal(5, 4)], {"transA": 1, "transB": 1, "alpha": 0.5}, 1),
    "skip norm": ("SkipLayerNormalization", [X, normal(2, 5, 8), *WIDE], {"epsilon": 1e-4}, 1),
    "skip norm, no bias": ("SkipLayerNormalization", [X, normal(2, 5, 8), WIDE[0]], {}, 1),
    "skip norm, its sum": ("SkipLayerNormalization", [X, normal(2, 5, 8), *WIDE], {}, 4),
    "skip rms norm": ("SkipSimplifiedLayerNormalization", [X, normal(2, 5, 8), WIDE[0]], {"epsilon": 1e-5}, 1),
    "embeddings": (
        "EmbedLayerNormalization",
        [WORDS, SEGMENTS, normal(11, 8), normal(7, 8), normal(2, 8), *WIDE[:2], RNG.integers(0, 2, (2, 5)).astype("int32")],
        {},
        2,
    ),
    "embeddings without segments": ("EmbedLayerNormalization", [WORDS, None, normal(11, 8), normal(7, 8), None, *WIDE[:2]], {}, 2),
    "attention": ("Attention", QKV, {"num_heads": 2}, 1),
    "attention of lengths": ("Attention", [*QKV, np.array([3, 5], "int32")], {"num_heads": 2}, 1),
    "attention of a mask": ("Attention", [*QKV, np.array([[1, 1, 0, 1, 0], [1] * 5], "int32")], {"num_heads": 4}, 1),
    "attention back in time": ("Attention", QKV, {"num_heads": 2, "unidirectional": 1}, 1),
    "attention with a bias": ("Attention", [*QKV, None, None, normal(1, 2, 5, 5)], {"num_heads": 2}, 1),
    "sum of levels": ("QLinearAdd", [levels(3, 4), *scale(0.1, 7), levels(3, 4), *scale(0.2, 9), *scale(0.3, 5)], {}, 1),
    "product of levels": ("QLinearMul", [levels(3, 4), *scale(0.1, 7), levels(3, 4), *scale(0.2, 9), *scale(2.3, 5)], {}, 1),
    "sigmoid of levels": ("QLinearSigmoid", [levels(3, 4), *scale(0.05, 127), *scale(1 / 256, 0)], {}, 1),
    "leak of levels": ("QLinearLeakyRelu", [levels(3, 4), *scale(0.05, 127), *scale(0.06, 20)], {"alpha": 0.1}, 1),
    "softmax of levels": ("QLinearSoftmax", [levels(3, 4), *scale(0.05, 127), *scale(1 / 256, 0)], {"opset": 13, "axis": -1}, 1),
    "means of planes": ("QLinearGlobalAveragePool", [levels(1, 3, 4, 4), *scale(0.05, 127), *scale(0.05, 100)], {}, 1),
    "means of windows": (
        "QLinearAveragePool",
        [levels(1, 3, 4, 4), *scale(0.05, 127), *scale(0.05, 100)],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        1,
    ),
    "attention with its keys": ("Attention", QKV, {"num_heads": 2}, 2),
    "product plus levels": (
        "QGemm",
        [levels(3, 4), *scale(0.1, 7), levels(5, 4), normal(5) ** 2, levels(5), np.arange(5, dtype="int32"), *scale(9.0, 100)],
        {"transB": 1, "alpha": 0.5},
        1,
    ),
    "product as floats": ("QGemm", [levels(4, 3), *scale(0.1, 7), levels(4, 5), *scale(0.2, 9)], {"transA": 1}, 1),
    "levels in a row": (
        "QLinearConcat",
        [*scale(0.1, 10), levels(2, 3), *scale(0.05, 3), levels(1, 3), *scale(0.2, 30)],
        {"axis": 0},
        1,
    ),
}


BUILT = ("attention of a mask", "sum of levels", "skip norm, its sum")


def model_of(name: str) -> tuple[Any, dict[str, Any]]:
    op, operands, attrs, count = CASES[name]
    given = {f"x{n}": one for n, one in enumerate(operands) if one is not None}
    names = [f"x{n}" if one is not None else "" for n, one in enumerate(operands)]
    outputs = [f"y{n}" if n in (0, count - 1) else "" for n in range(count)]
    node = helper.make_node(op, names, outputs, domain="com.microsoft", **attrs)
    inputs = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), np.shape(a)) for n, a in given.items()]
    results = [helper.make_empty_tensor_value_info(n) for n in outputs if n]
    graph = helper.make_graph([node], "graph", inputs, results)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8), given


@pytest.mark.parametrize("name", CASES)
def test_operator(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model, given = model_of(name)
    expected = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, given)
    mod = from_onnx(model)
    found = [Evaluator(mod)("main", *given.values())]
    if name in BUILT:
        found.append(relax.VirtualMachine(relax.build(mod))["main"](*given.values()))
    for values in found:
        for one, other in zip(values if len(expected) > 1 else [values], expected, strict=True):
            array = np.asarray(one.numpy() if hasattr(one, "numpy") else one)
            assert array.dtype == other.dtype and array.shape == other.shape
            # Levels on the border of two may be rounded either way.
            np.testing.assert_allclose(array.astype(F), other.astype(F), rtol=1e-4, atol=1.0 if other.dtype == "uint8" else 2e-5)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("attention", {"do_rotary": 1}, "a past"),
        ("means of planes", {"channels_last": 1}, "channels_last"),
        ("attention of lengths", {"": np.array([1, 2, 3, 4], "int32")}, "lengths of sequences"),
    ],
)
def test_refused(name: str, change: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op, operands, attrs, count = CASES[name]
    given = [*operands[:-1], change[""]] if "" in change else operands
    monkeypatch.setitem(CASES, name, (op, given, {**attrs, **({} if "" in change else change)}, count))
    with pytest.raises(ModelError, match=said):
        from_onnx(model_of(name)[0])


def _add(*dims: Any) -> Any:
    inputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims) for name in ("a", "b")]
    node = helper.make_node("MatMul", ["a", "b"], ["y"])
    return helper.make_model(helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")]))


def test_extents_without_a_name_are_not_one() -> None:
    run: Callable[..., Any] = relax.VirtualMachine(relax.build(from_onnx(_add("?", "?"))))["main"]
    assert run(normal(2, 3), normal(3, 4)).shape == (2, 4)
    named: Any = from_onnx(_add("n", "n"))["main"]
    symbols = {str(extent) for param in named.params for extent in param.struct_info.shape.values}
    assert symbols == {"n"}


def _named(name: str) -> Any:
    return helper.make_empty_tensor_value_info(name)


def test_shapes_that_inputs_say_when_a_graph_of_relay_runs() -> None:
    from tensorexpr import relay

    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 6]),
        helper.make_tensor_value_info("s", onnx.TensorProto.INT64, [2]),
    ]
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["r"]),
        helper.make_node("ConstantOfShape", ["s"], ["c"]),
        helper.make_node("Sub", ["r", "c"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [_named("y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(NeedsValueError):
        from_onnx(model)
    mod, params = relay.frontend.from_onnx(model)
    run = relay.create_executor("vm", mod=mod).evaluate()
    data = normal(2, 6)
    for shape in ((3, 4), (12, 1)):
        np.testing.assert_array_equal(run(data, np.array(shape), **params).numpy(), data.reshape(shape))
    reshaped, _ = relay.frontend.from_onnx(helper.make_model(helper.make_graph(nodes[:1], "g", inputs, [_named("r")])))
    found = relay.create_executor("vm", mod=reshaped).evaluate()(data, np.array([0, -1]))
    np.testing.assert_array_equal(found.numpy(), data)
    with pytest.raises(ArgumentError, match="not 12"):
        run(data, np.array([5, 2]))
