"""ONNX operators on signals, sequences, optionals and strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.errors import ArgumentError, ModelError
from tensorexpr.frontend.onnx.backend import Prepared
from tensorexpr.relax.frontend.onnx import from_onnx

onnx = pytest.importorskip("onnx")
helper, TP = onnx.helper, onnx.TensorProto
RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 6, 3)).astype("float32")


def tensor(name: str, kind: int = TP.FLOAT, shape: Any = None) -> Any:
    return helper.make_value_info(name, helper.make_tensor_type_proto(kind, shape))


def model(nodes: list[Any], inputs: list[Any], outputs: list[str], opset: int = 20) -> Any:
    graph = helper.make_graph([helper.make_node(*node[:3], **node[3]) for node in nodes], "g", inputs, [tensor(one) for one in outputs])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 4)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def number(name: str, value: Any) -> Any:
    return ("Constant", [], [name], {"value": onnx.numpy_helper.from_array(np.asarray(value))})


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", [3, 6, 8, 2048])
def test_transforms_are_those_of_numpy(inverse: int, length: int) -> None:
    """By products with a matrix, and of many samples by the fast algorithm."""
    proto = model([number("n", length), ("DFT", ["x", "n"], ["y"], {"inverse": inverse})], [tensor("x", shape=[2, 6, 2])], ["y"])
    signal = X[..., 0] + 1j * X[..., 1]
    expected = (np.fft.ifft if inverse else np.fft.fft)(signal, length, 1)
    (found,) = Prepared(proto).run([np.ascontiguousarray(X[..., :2])])
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, atol=1e-5)


@pytest.mark.parametrize("length", [5, 6])
def test_one_sided_transforms_come_back(length: int) -> None:
    nodes = [number("n", length), ("DFT", ["x", "n"], ["f"], {"onesided": 1}), ("DFT", ["f", "n"], ["y"], {"inverse": 1, "onesided": 1})]
    prepared = Prepared(model(nodes, [tensor("x", shape=[2, length, 1])], ["y"]))
    given = np.ascontiguousarray(X[:, :length, :1])
    np.testing.assert_allclose(prepared.run([given])[0], given, atol=1e-6)
    assert "NumPy" not in prepared.executable.stats()


def test_windows_of_a_signal() -> None:
    nodes = [number("step", 2), ("STFT", ["x", "step", "w"], ["y"], {})]
    proto = model(nodes, [tensor("x", shape=[2, 6, 1]), tensor("w", shape=[4])], ["y"])
    window = np.hanning(4).astype("float32")
    frames = np.stack([X[:, n : n + 4, 0] for n in (0, 2)], 1) * window
    expected = np.fft.rfft(frames, 4, -1)
    (found,) = Prepared(proto).run([np.ascontiguousarray(X[..., :1]), window])
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], expected, atol=1e-5)


PARTS: list[Any] = [
    number("one", 1),
    number("sizes", [1, 3, 2]),
    ("SplitToSequence", ["x", "sizes"], ["s"], {"axis": 1}),
    ("SequenceErase", ["s", "one"], ["t"], {}),
    ("SequenceAt", ["t", "one"], ["last"], {}),
    ("SequenceInsert", ["t", "last", "zero"], ["u"], {}),
    ("SequenceLength", ["u"], ["n"], {}),
    ("ConcatFromSequence", ["u"], ["y"], {"axis": 1}),
]


@pytest.mark.parametrize("known", [True, False])
def test_sequences(known: bool) -> None:
    """Positions that are known need no operator when the graph runs; others are looked up."""
    nodes = [number("zero", 0), *PARTS] if known else PARTS
    inputs = [tensor("x", shape=[2, 6, 3]), *([] if known else [tensor("zero", TP.INT64, [])])]
    mod = from_onnx(model(nodes, inputs, ["y", "n"]))
    assert ("sequence_insert" in mod.script()) is not known
    vm = relax.VirtualMachine(relax.build(mod))
    y, n = vm["main"](*([X] if known else [X, np.asarray(0)]))
    np.testing.assert_array_equal(y.numpy(), np.concatenate([X[:, 4:], X[:, :1], X[:, 4:]], 1))
    assert n.numpy() == 3
    if not known:
        with pytest.raises(ArgumentError, match="position 3 of a sequence of 2"):
            vm["main"](X, np.asarray(3))


def test_a_position_that_there_is_not_is_an_error_at_import() -> None:
    nodes = [number("three", 3), ("SequenceConstruct", ["x", "x"], ["s"], {}), ("SequenceAt", ["s", "three"], ["y"], {})]
    with pytest.raises(ModelError, match=r"SequenceAt .*position 3 of a sequence of 2"):
        from_onnx(model(nodes, [tensor("x", shape=[2])], ["y"]))


def test_strings() -> None:
    nodes = [
        ("StringConcat", ["x", "x"], ["c"], {}),
        ("StringSplit", ["c"], ["parts", "counts"], {"delimiter": "a"}),
        ("StringNormalizer", ["x"], ["upper"], {"case_change_action": "UPPER", "stopwords": ["b"]}),
        ("RegexFullMatch", ["c"], ["match"], {"pattern": "(ca)+t?ca"}),
        ("Equal", ["x", "c"], ["same"], {}),
    ]
    proto = model(nodes, [tensor("x", TP.STRING, [3])], ["parts", "counts", "upper", "match", "same"])
    proto.graph.node.append(helper.make_node("LabelEncoder", ["x"], ["k"], domain="ai.onnx.ml", keys_strings=["b"], values_int64s=[7]))
    proto.graph.output.append(tensor("k"))
    found = Prepared(proto).run([np.asarray(["ca", "b", ""], dtype=object)])
    assert [one.tolist() for one in found] == [
        [["c", "c", ""], ["bb", "", ""], ["", "", ""]], [3, 1, 1], ["CA", ""], [True, False, False], [False, False, True], [-1, 7, -1],
    ]  # fmt: skip


def test_optionals() -> None:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TP.FLOAT, [2]))
    nodes: list[Any] = [("OptionalHasElement", ["x"], ["y"], {})]
    proto = model(nodes, [helper.make_value_info("x", kind)], ["y"])
    assert bool(Prepared(proto).run([np.zeros(2, "float32")])[0]) and not bool(Prepared(proto).run([None])[0])
    mod = from_onnx(proto)  # what isn't known at import is asked when the graph runs
    vm = relax.VirtualMachine(relax.build(mod))
    assert bool(vm["main"](np.zeros(2, "float32")).numpy()) and not bool(vm["main"](None).numpy())
