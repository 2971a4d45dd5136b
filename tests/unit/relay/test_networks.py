"""Networks by name, and models of others, as Relay's modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.contrib import graph_executor
from tensorexpr.errors import DeclarationError
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relay import testing
from tensorexpr.relay.build_module import bound_graph
from tensorexpr.relay.to_graph import to_graph

# Numbers in the weights and statistics, by the papers' tables: those that TVM's networks of these names have, too, but densenet's.
SIZES: dict[str, Any] = {
    "squeezenet": (lambda: testing.squeezenet.get_net(1, (3, 224, 224), 1000, "1.0", "float32"), 1_248_424),
    "vgg": (lambda: testing.vgg.get_net(1, (3, 32, 32), 1000, "float32"), 32_200_040),
    "dcgan": (lambda: testing.dcgan.get_net(1), 12_658_176),
    "mobilenet": (lambda: testing.mobilenet.mobile_net(), 4_253_864),
    "resnet": (lambda: testing.resnet.get_net(1, 1000, 18), 11_699_892),
    "inception_v3": (lambda: testing.inception_v3.get_net(1, 1000, (3, 299, 299), "float32"), 23_869_000),
    "densenet": (lambda: testing.densenet.get_net(1, 1000, 121, (3, 64, 64), "float32"), 8_062_504),
}


@pytest.mark.parametrize("name", SIZES)
def test_a_network_has_the_weights_of_its_paper(name: str) -> None:
    make, count = SIZES[name]
    net = make()
    assert net.params[0].name_hint == "data"
    assert sum(int(np.prod(one.type_annotation.concrete_shape)) for one in net.params[1:]) == count
    assert net.body.checked_type.concrete_shape == ((1, 3, 64, 64) if name == "dcgan" else (1, 1000))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_residual_network_gives_probabilities(layout: str) -> None:
    shape = (3, 8, 8) if layout == "NCHW" else (8, 8, 3)
    mod, params = testing.resnet.get_workload(1, 10, 8, shape, layout)
    data = np.random.default_rng(0).standard_normal((1, *shape)).astype("float32")
    expected = Evaluator(to_graph(mod))("main", data, *(params[one.name_hint].numpy() for one in mod["main"].params[1:]))
    assert expected.shape == (1, 10) and abs(float(expected.sum()) - 1) < 1e-5


def test_a_perceptron_and_a_memory_compute_what_they_say() -> None:
    mod, params = testing.mlp.get_workload(2, 3, (1, 2, 2))
    main: Any = mod["main"]
    assert [one.name_hint for one in main.params[:3]] == ["data", "fc1_weight", "fc1_bias"] and "data" not in params
    data = np.linspace(-1, 1, 8).astype("float32").reshape(2, 1, 2, 2)
    module = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu()))
    module.run(data=data)
    weights = (params[one.name_hint].numpy() for one in main.params[1:])
    np.testing.assert_allclose(module.get_output(0).numpy(), Evaluator(to_graph(mod))("main", data, *weights), 1e-4)
    mod, params = testing.lstm.get_workload(3, 2)
    x = np.array([[0.5, -1]], "float32")
    values = {name: one.numpy() for name, one in params.items()}
    h = c = np.zeros((1, 2))
    for _ in range(3):
        gates = x @ values["i2h_weight"].T + h @ values["h2h_weight"].T
        i, f, g, o = np.split(gates, 4, 1)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
    main = mod["main"]
    found = Evaluator(to_graph(mod))("main", x, *(values[one.name_hint] for one in main.params[1:]))
    np.testing.assert_allclose(found, h, 1e-5)


def test_networks_that_there_are_not() -> None:
    with pytest.raises(DeclarationError, match="num_layers is one of 18, 34, 50, 101, 152, 200, 269, not 19"):
        testing.resnet.get_net(1, 10, 19)
    with pytest.raises(DeclarationError, match=r"versions 1.0, 1.1, not '2'"):
        testing.squeezenet.get_workload(version="2")


@pytest.mark.parametrize("freeze", [True, False])
def test_a_model_of_onnx(freeze: bool) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    weights = np.arange(6, dtype="float32").reshape(3, 2)
    nodes = [helper.make_node("MatMul", ["a.in", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("a.in", [2, 3]), ("y", [2, 2]))]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    onnx.checker.check_model(model)
    mod, params = relay.frontend.from_onnx(model, {"a.in": (2, 3)}, freeze_params=freeze)
    assert isinstance(mod["main"], relay.Function) and sorted(params) == ([] if freeze else ["w"])
    assert "nn.matmul" in str(mod) and "num_input" not in str(mod)
    module = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu()))
    x = np.array([[1, -2, 1], [0, 1, 0]], "float32")
    module.set_input("a.in", x)
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), np.maximum(x @ weights, 0))


def test_a_module_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()).eval()
    x = torch.randn(4, 3)
    mod, params = relay.frontend.from_pytorch(torch.export.export(model, (x,)), [("input0", (4, 3))])
    assert len(params) == 2
    module = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu()))
    module.run(input0=x.numpy())
    np.testing.assert_allclose(module.get_output(0).numpy(), model(x).detach().numpy(), 1e-5, 1e-6)
    with pytest.raises(DeclarationError, match="not int"):
        relay.frontend.from_pytorch(3, [("input0", (4, 3))])
    with pytest.raises(DeclarationError, match="input_infos names 4 inputs, a, b, c, d; the module has 3"):
        relay.frontend.from_pytorch(torch.export.export(model, (x,)), [(name, (4, 3)) for name in "abcd"])


def test_a_traced_module_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch._export.converter", reason="this PyTorch has no converter of TorchScript")
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 2)
    )
    x = torch.randn(1, 3, 8, 8)
    script = torch.jit.trace(model.eval(), x)
    mod, params = relay.frontend.from_pytorch(script, [("input0", (1, 3, 8, 8))])
    assert "?" not in str(mod)
    module = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu()))
    module.run(input0=x.numpy())
    np.testing.assert_allclose(module.get_output(0).numpy(), model(x).detach().numpy(), 1e-4, 1e-5)
    with pytest.raises(DeclarationError, match="needs the inputs"):
        relay.frontend.from_pytorch(script)
    with pytest.raises(DeclarationError, match="can't make an exported program of this TorchScript"):
        relay.frontend.from_pytorch(script, [("input0", (1, 4, 8, 8))])


def test_a_trace_of_a_module_that_trains_is_read_as_in_evaluation() -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("torch._export.converter", reason="this PyTorch has no converter of TorchScript")
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 2), torch.nn.BatchNorm2d(2), torch.nn.Dropout(0.5))
    x = torch.randn(2, 1, 4, 4)
    script = torch.jit.trace(model.train(), x, check_trace=False)
    with pytest.warns(UserWarning, match="traced while it trains"):
        mod, params = relay.frontend.from_pytorch(script, [("x", (2, 1, 4, 4))])
    run = relay.create_executor("graph", mod, params=params).evaluate()
    np.testing.assert_allclose(run(x.numpy()).numpy(), model.eval()(x).detach().numpy(), 1e-5, 1e-6)


def test_a_trace_that_computes_with_extents() -> None:
    """As encoders of text do: the places of a sequence are a slice of a table, up to what a tensor says that its length is."""
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("torch._export.converter", reason="this PyTorch has no converter of TorchScript")

    class Places(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("places", torch.arange(32).unsqueeze(0))
            self.table = torch.nn.Embedding(32, 4)

        def forward(self, x: Any, past: int = 0) -> Any:
            return x + self.table(self.places[:, past : x.size(1) + past])

    x = torch.randn(1, 5, 4)
    script = torch.jit.trace(Places().eval(), x)
    mod, params = relay.frontend.from_pytorch(script, [("x", (1, 5, 4))])
    run = relay.create_executor("graph", mod, params=params).evaluate()
    np.testing.assert_allclose(run(x.numpy()).numpy(), script(x).detach().numpy(), 1e-6)


@pytest.mark.parametrize("form", ["trace", "module", "exported"])
def test_inputs_in_tuples_are_inputs_that_are_tuples(form: str) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("torch._export.converter", reason="this PyTorch has no converter of TorchScript")

    class Step(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.cell = torch.nn.LSTMCell(3, 4)

        def forward(self, x: Any, state: Any) -> Any:
            return self.cell(x, state)

    model, x, state = Step().eval(), torch.randn(2, 3), (torch.randn(2, 4), torch.randn(2, 4))
    made = {"trace": torch.jit.trace, "module": lambda model, _: model, "exported": torch.export.export}[form](model, (x, state))
    mod, params = relay.frontend.from_pytorch(made, [("x", (2, 3)), ("state", [(2, 4), ((2, 4), "float32")])])
    assert [param.name_hint for param in mod["main"].params[:2]] == ["x", "state"]
    module = graph_executor.GraphModule(relay.build(mod, "llvm", params=params)["default"](tvm.cpu()))
    module.run(x=x.numpy(), state=tuple(one.numpy() for one in state))
    for number, expected in enumerate(model(x, state)):
        np.testing.assert_allclose(module.get_output(number).numpy(), expected.detach().numpy(), 1e-5, 1e-6)
    with pytest.raises(DeclarationError, match="input_infos names 11 inputs, x, state; the module has 7"):
        relay.frontend.from_pytorch(torch.export.export(model, (x, state)), [("x", (2, 3)), ("state", [(2, 4)] * 10)])


@pytest.mark.parametrize("name", ["from_tensorflow", "from_mxnet"])
def test_frameworks_that_write_onnx_are_named(name: str) -> None:
    with pytest.raises(DeclarationError, match=f"relay.frontend.{name} isn't there; .*ONNX"):
        getattr(relay.frontend, name)(None)


def _convolutions() -> tuple[relay.Function, dict[str, Any]]:
    x = relay.var("x", shape=(1, 4, 6, 6))
    first = relay.nn.relu(relay.nn.conv2d(x, relay.var("w0", shape=(8, 4, 3, 3)), padding=(1, 1)))
    second = relay.nn.conv2d(first, relay.var("w1", shape=(4, 8, 3, 3)))
    rng = np.random.default_rng(0)
    weights = {"w0": rng.uniform(-1, 1, (8, 4, 3, 3)), "w1": rng.uniform(-1, 1, (4, 8, 3, 3))}
    params = {name: tvm.nd.array(value.astype("float32")) for name, value in weights.items()}
    return relay.Function(tuple(relay.analysis.free_vars(second)), second), params


@pytest.mark.parametrize("mode", ["global_scale", "kl_divergence"])
def test_quantised_by_relays_configuration(mode: str) -> None:
    func, params = _convolutions()
    x = np.random.default_rng(1).uniform(0, 1, (1, 4, 6, 6)).astype("float32")
    run = {"plain": Evaluator(bound_graph(tvm.IRModule.from_expr(func), params))("main", x)}
    for name, skipped in (("all", []), ("one", [0])):
        with relay.quantize.qconfig(calibrate_mode=mode, global_scale=16.0, skip_conv_layers=skipped):
            made = relay.quantize.quantize(tvm.IRModule.from_expr(func), params, [{"x": x.astype("float64")}])  # rounded, as inputs are
        assert str(made).count("relax.quantize") == 2 - len(skipped)
        run[name] = Evaluator(bound_graph(made, None))("main", x)
    spread = np.abs(run["plain"]).max()
    assert 0 < np.abs(run["one"] - run["plain"]).max() < 0.05 * spread
    assert np.abs(run["all"] - run["plain"]).max() < 0.2 * spread


def test_a_configuration_of_quantising_is_checked() -> None:
    func, params = _convolutions()
    with pytest.warns(UserWarning, match="qconfig has no option nbits; it has nbit_input"):
        assert relay.quantize.qconfig(nbits=4, global_scale=2.0) == relay.quantize.qconfig(global_scale=2.0)
    with pytest.raises(DeclarationError, match="kernels are on integers of 8 bits"):
        relay.quantize.qconfig(nbit_weight=4)
    with (
        relay.quantize.qconfig(calibrate_mode="percentile") as config,
        pytest.raises(DeclarationError, match="'percentile' needs a dataset"),
    ):
        assert relay.quantize.current_qconfig() is config
        relay.quantize.quantize(func, params)
    assert relay.quantize.current_qconfig().calibrate_mode == "global_scale"


def test_tasks_of_templates() -> None:
    x, w = relay.var("x", shape=(4, 8)), relay.var("w", shape=(16, 8))
    func = relay.Function((x, w), relay.nn.dense(x, w))
    for given in (func, tvm.IRModule.from_expr(func)):
        tasks = tvm.autotvm.task.extract_from_program(given, {}, "llvm")
        assert [one.name for one in tasks] == ["dense_nopack.x86", "dense_pack.x86"]
        assert tasks[0].args[:2] == (("TENSOR", (4, 8), "float32"), ("TENSOR", (16, 8), "float32"))
