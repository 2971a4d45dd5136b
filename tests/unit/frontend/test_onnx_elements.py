"""ONNX operators that index, sort and choose elements, against the reference of the package `onnx`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tensorexpr import relax
from tensorexpr.frontend.onnx.backend import Prepared
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.frontend.onnx import from_onnx
from tensorexpr.relax.ops.narrow import narrow_dtype

X = np.arange(24, dtype="float32").reshape(2, 3, 4) % 7
I = np.array([[1, -1], [0, 2]])  # noqa: E741
N = np.array


def model(name: str, attrs: dict[str, Any], inputs: list[Any], outputs: int, opset: int) -> Any:
    names = [f"x{n}" for n in range(len(inputs))]
    results = [f"y{n}" for n in range(outputs)]
    node = helper.make_node(name, names, results, **attrs)
    infos = [
        helper.make_tensor_value_info(one, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for one, array in zip(names, inputs, strict=True)
    ]
    outs = [helper.make_value_info(one, helper.make_tensor_type_proto(TensorProto.FLOAT, None)) for one in results]
    return helper.make_model(helper.make_graph([node], "g", infos, outs), opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


CASES: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("Gather", {"axis": 1}, [X, I]),
    ("GatherElements", {"axis": 1}, [X[0], N([[0, -1], [1, 1], [2, 0]])]),
    ("GatherND", {"batch_dims": 1}, [X, N([[[1, -1]], [[0, 2]]])]),
    ("ScatterElements", {"axis": 1, "reduction": "add"}, [X, N([[[0, -1], [0, 2]]]), N([[[1, 2], [3, 4]]], dtype="float32")]),
    ("ScatterElements", {"reduction": "min"}, [X, N([[[1]]]), N([[[-5]]], dtype="float32")]),
    ("ScatterND", {"reduction": "mul"}, [X, N([[0, 1], [0, -2]]), X[0, :2]]),
    ("ScatterND", {}, [X, N([[1]]), X[:1]]),
    ("OneHot", {"axis": 0}, [N([0, -1, 9]), N(4), N([2, 5], dtype="float64")]),
    ("ReverseSequence", {"time_axis": 1, "batch_axis": 0}, [X, N([2, 3])]),
    ("Trilu", {"upper": 0}, [X, N(-1)]),
    ("Trilu", {}, [X]),
    ("TopK", {"axis": 1, "largest": 0}, [X, N([2])]),
    ("TopK", {}, [X, N([0])]),
    ("Unique", {}, [X]),
    ("Unique", {"axis": 2}, [X % 2]),
    ("NonZero", {}, [X]),
    ("Compress", {"axis": 2}, [X, N([True, False, True])]),
    ("Compress", {}, [X, N([True, False, True, True])]),
    ("EyeLike", {"k": 1, "dtype": TensorProto.INT64}, [X[0]]),
    ("CumSum", {"reverse": 1, "exclusive": 1}, [X, N(1)]),
    ("Hardmax", {"axis": 1}, [X]),
    ("Einsum", {"equation": "...ij,...kj->...ik"}, [X, X]),
]


@pytest.mark.parametrize(("name", "attrs", "inputs"), CASES, ids=[f"{n}-{case[0]}" for n, case in enumerate(CASES)])
def test_operator_is_what_the_standard_says(name: str, attrs: dict[str, Any], inputs: list[Any]) -> None:
    outputs = {"TopK": 2, "Unique": 4}.get(name, 1)
    proto = model(name, attrs, inputs, outputs, 23)
    names = {f"x{n}": array for n, array in enumerate(inputs)}
    for found, expected in zip(Prepared(proto).run(inputs), ReferenceEvaluator(proto).run(None, names), strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_extents_that_depend_on_elements_go_on_as_kernels() -> None:
    """What follows a `NonZero` of unknown extent is compiled."""
    nodes = [
        helper.make_node("NonZero", ["x"], ["i"]),
        helper.make_node("Mul", ["i", "i"], ["j"]),
        helper.make_node("Transpose", ["j"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, None)
    proto = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    np.testing.assert_array_equal(Prepared(proto).run([X[0]])[0], np.transpose(np.nonzero(X[0])) ** 2)


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float8_e4m3fn", "float8_e5m2fnuz", "float4_e2m1fn"])
def test_weights_of_few_bits_are_numbers_that_kernels_read(dtype: str) -> None:
    values = (np.arange(12).reshape(4, 3) % 4).astype(narrow_dtype(dtype))
    initial = [numpy_helper.from_array(values, "w"), numpy_helper.from_array(N([0.5, 1, 2], "f"), "s")]
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"]), helper.make_node("MatMul", ["x", "d"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", [2, 4]), ("y", [2, 3])))
    graph = helper.make_graph(nodes, "g", [x], [y], initial)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    mod = from_onnx(proto)
    expected: Any = ReferenceEvaluator(proto).run(None, {"x": X[0, :2]})
    np.testing.assert_allclose(Evaluator(mod)("main", X[0, :2]), expected[0])
    # What depends on constants alone is one: no function of the host runs.
    assert "narrow_cast" not in relax.transform.FoldConstant()(mod).script()
