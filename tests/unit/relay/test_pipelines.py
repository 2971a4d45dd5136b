"""Several networks as a pipeline: how they are connected, built and written, and what their threads do with errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.contrib import pipeline_executor, pipeline_executor_build
from tensorexpr.errors import ArgumentError, DeclarationError, TensorExprError
from tensorexpr.relay.pipeline_config import PipelineConfig
from tensorexpr.relay.pipelines import PipelineModule


def networks() -> tuple[Any, Any, Any]:
    """x -> (x + 1, x * 2); (a, w) -> a * w; (c, d) -> c - d."""
    x, a, w, c, d = (relay.var(name, shape=(2, 3)) for name in "xawcd")
    one, two = relay.const(1.0), relay.const(2.0)
    first = relay.Function((x,), relay.Tuple([relay.add(x, one), relay.multiply(x, two)]))
    second, third = relay.Function((a, w), relay.multiply(a, w)), relay.Function((c, d), relay.subtract(c, d))
    return tuple(tvm.IRModule.from_expr(func) for func in (first, second, third))  # type: ignore[return-value]


@pytest.fixture(scope="module")
def config() -> PipelineConfig:
    """(x + 1) * w - x * 2, the last network named first."""
    first, second, third = networks()
    made: PipelineConfig = pipeline_executor_build.PipelineConfig()
    made[third]["output"][0].connect(made["output"]["0"])
    made["input"]["data"].connect(made[first]["input"]["x"])
    made["param_group"]["weights"].connect(made[second]["param"])
    made[first]["output"][0].connect(made[second]["input"]["a"])
    made[first]["output"][1].connect(made[third]["input"]["d"])
    made[second]["output"][0].connect(made[third]["input"]["c"])
    made[second].target, made[second].cpu_affinity = "llvm", "0"
    return made


@pytest.fixture(scope="module")
def factory(config: PipelineConfig) -> Any:
    return pipeline_executor_build.build(config)


W = np.arange(6, dtype="float32").reshape(2, 3)


def expected(x: Any) -> Any:
    return (x + 1) * W - 2 * x


def test_what_a_configuration_says(config: PipelineConfig) -> None:
    assert str(config).split("\n\n") == [
        "Params\n  |weights: mod1:param",
        "Inputs\n  |data: mod0:x",
        "output\n  |output(0) : mod2.output(0)",
        "connections\n  |mod0.output(0)-> mod1.a\n  |mod0.output(1)-> mod2.d\n  |mod1.output(0)-> mod2.c",
    ]
    said = config.get_config()
    assert [one["pipeline"]["mod_idx"] for one in said["module_connection"].values()] == [0, 1, 2]
    assert said["module_connection"][config.parts[0].mod]["pipeline"]["output"] == [
        {"output_idx": 0, "dependencies": [{"mod_idx": 1, "input_name": "a"}]},
        {"output_idx": 1, "dependencies": [{"mod_idx": 2, "input_name": "d"}]},
    ]
    assert said["input_connection"] == [{"global_interface_name": "data", "mod_idx": 0, "module_interface_name": "x"}]
    assert said["param_connection"] == [{"global_interface_name": "weights", "mod_idx": 1}]


def test_runs_go_through_in_order(factory: Any, tmp_path: Path) -> None:
    """As built, and as written, moved and loaded; what becomes of an input behind `set_input` doesn't matter."""
    path = Path(factory.export_library(tmp_path))
    moved = tmp_path.parent / f"{tmp_path.name}-moved"
    tmp_path.rename(moved)
    for pipeline in (factory.get_pipeline_executor_module(), pipeline_executor.PipelineModule.load_library(moved / path.name)):
        assert (pipeline.num_inputs, pipeline.num_outputs) == (1, 1)
        assert pipeline.get_input_pipeline_map("data") == ["0", "x"] and pipeline.get_params_group_pipeline_map("weights") == 1
        pipeline.set_params("weights", {"w": W})
        x = np.zeros((2, 3), "float32")
        for n in range(4):
            x[:] = n
            pipeline.set_input("data", x)
            pipeline.run()
        assert pipeline.num_executing_pipeline == 4 and (pipeline.get_input("data").numpy() == 3).all()
        for n in range(4):
            (found,) = pipeline.get_output()
            np.testing.assert_array_equal(found.numpy(), expected(np.full((2, 3), n)))
        assert pipeline.get_output(synchronize=False) == []
        with pytest.raises(ArgumentError, match="the results of all 4 runs were taken"):
            pipeline.get_output()


def test_what_a_network_raises_gets_to_who_waits(factory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline: PipelineModule = factory.get_pipeline_executor_module()
    second, whole = pipeline._modules[1], pipeline._modules[1].run
    runs: list[int] = []

    def run() -> None:
        runs.append(len(runs))
        if len(runs) == 1:
            raise ArgumentError("no luck")
        whole()

    monkeypatch.setattr(second, "run", run)
    pipeline.set_params("weights", {"w": W})
    pipeline.set_input("data", W)
    pipeline.run()
    pipeline.run()
    with pytest.raises(TensorExprError, match="network 1 of a pipeline in run 1: no luck"):
        pipeline.get_output()
    np.testing.assert_array_equal(pipeline.get_output()[0].numpy(), expected(W))


def test_what_cant_be_connected() -> None:
    first, second, third = networks()
    config = PipelineConfig()
    with pytest.raises(DeclarationError, match="no result 9; it has 2, from 0"):
        config[first]["output"][9]
    with pytest.raises(DeclarationError, match="no input 'data'; it has x"):
        config[first]["input"]["data"]
    with pytest.raises(DeclarationError, match="results have numbers, from 0, not 'y'"):
        config["output"]["y"]
    with pytest.raises(DeclarationError, match='"input", "output" and "param", not \'weights\''):
        config[first]["weights"]
    with pytest.raises(DeclarationError, match="\"param_group\" and networks, not 'inputs'"):
        config["inputs"]
    config[first]["output"][0].connect(config[second]["input"]["a"])
    with pytest.raises(DeclarationError, match=r"mod1\['output'\]\[0\] can't be led to mod0\['input'\]\['x'\]: data would go around"):
        config[second]["output"][0].connect(config[first]["input"]["x"])
    with pytest.raises(DeclarationError, match="has a source already"):
        config[first]["output"][1].connect(config[second]["input"]["a"])
    for source, target in (
        (config[first]["input"]["x"], config[third]["input"]["c"]),
        (config[first]["output"][0], config["input"]["data"]),
        (config["output"][0], config[first]["output"][0]),
    ):
        with pytest.raises(DeclarationError, match="inputs of a pipeline go to those of networks"):
            source.connect(target)
    config["input"]["data"].connect(config[first]["input"]["x"])
    with pytest.raises(DeclarationError, match="leads to another network already"):
        config["input"]["data"].connect(config[third]["input"]["c"])
    other = relay.var("z", shape=(4,))
    fourth = tvm.IRModule.from_expr(relay.Function((other,), other))
    with pytest.raises(DeclarationError, match=r"a Tensor\[\(2, 3\), float32\] is no Tensor\[\(4\), float32\]"):
        config[first]["output"][1].connect(config[fourth]["input"]["z"])
    with pytest.raises(DeclarationError, match="connected are none"):
        pipeline_executor_build.build(config)


def test_wrong_inputs_and_parameters(factory: Any, tmp_path: Path) -> None:
    pipeline = factory.get_pipeline_executor_module()
    with pytest.raises(ArgumentError, match="without input 'x'; it has data"):
        pipeline.set_input("x", W)
    with pytest.raises(ArgumentError, match="'data' of the pipeline was not set"):
        pipeline.run()
    with pytest.raises(ArgumentError, match="the value has shape"):
        pipeline.set_input("data", W[0])
    with pytest.raises(ArgumentError, match="without parameters 'bias'; it has weights"):
        pipeline.set_params("bias", {"w": W})
    with pytest.raises(ArgumentError, match="there are no parameters"):
        pipeline.set_params("weights", {})
    with pytest.raises(ArgumentError, match="no input 'b'; the network has a, w"):
        pipeline.set_params("weights", {"b": W})
    (tmp_path / "p.json").write_text('{"modules": []}')
    for name in ("p.json", "q.json"):
        with pytest.raises(ArgumentError, match="is no description of a pipeline"):
            PipelineModule.load_library(tmp_path / name)
    with pytest.raises(ArgumentError, match="there is no folder"):
        factory.export_library(tmp_path / "none")


def test_parameters_that_a_build_was_given_can_be_others_later(tmp_path: Path) -> None:
    """Those of a network that a group is connected to: they are what the build was given until the group is set."""
    _, second, _ = networks()
    made: PipelineConfig = pipeline_executor_build.PipelineConfig()
    made[second]["output"][0].connect(made["output"]["0"])
    made["input"]["data"].connect(made[second]["input"]["a"])
    made["param_group"]["weights"].connect(made[second]["param"])
    made[second].params = {"w": tvm.nd.array(W)}
    factory = pipeline_executor_build.build(made)
    x = np.ones((2, 3), "float32")
    for pipeline in PipelineModule(factory), PipelineModule.load_library(factory.export_library(tmp_path)):
        for weights in W, W + 1:
            if weights is not W:
                pipeline.set_params("weights", {"w": weights})
            pipeline.set_input("data", x)
            pipeline.run()
            np.testing.assert_array_equal(pipeline.get_output()[0].numpy(), x * weights)
