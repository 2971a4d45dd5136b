"""Networks in the benchmark: the models are what the papers describe, and options that can't be are refused."""

import argparse
from types import SimpleNamespace

import numpy as np
import pytest

from tensorexpr.driver.bench.networks import models
from tensorexpr.driver.bench.networks.contenders import _difference, chosen_networks
from tensorexpr.driver.bench.peers.base import Unsupported
from tensorexpr.errors import TensorExprError

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
