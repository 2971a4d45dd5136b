"""Options of tvmc as texts, from files of JSON, and in the modules by whose names programs import what reads them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay, te
from tensorexpr.driver import tvmc
from tensorexpr.driver.cli import main
from tensorexpr.driver.tvmc import composite_target, config_options, frontends, target
from tensorexpr.driver.tvmc.config_options import convert_config_json_to_cli
from tensorexpr.driver.tvmc.main import REGISTERED_PARSER, _main, register_parser
from tensorexpr.driver.tvmc.model import TVMCModel
from tensorexpr.driver.tvmc.pass_config import parse_configs
from tensorexpr.driver.tvmc.pass_list import parse_pass_list_str
from tensorexpr.driver.tvmc.registry import generate_registry_args, reconstruct_registry_entity
from tensorexpr.driver.tvmc.shape_parser import parse_shape_string
from tensorexpr.driver.tvmc.tracker import tracker_host_port_from_cli
from tensorexpr.driver.tvmc.transform import apply_graph_transforms, convert_graph_layout
from tensorexpr.lower.passes import Pass
from tensorexpr.relay.backend import Executor
from tensorexpr.relay.dataflow_pattern import is_op, wildcard
from tensorexpr.relay.op.contrib import register_pattern_table

TEXT = """def @main(%x: Tensor[(1, 3, 5, 5), float32], %w: Tensor[(2, 3, 1, 1), float32]) {
  nn.relu(nn.conv2d(%x, %w, kernel_size=[1, 1], channels=2))
}"""


def test_shapes_and_names() -> None:
    assert parse_shape_string("data:[1,3,-1] 'a:b':[?]") == {"data": [1, 3, -1], "a:b": [-1]}
    assert parse_shape_string("x:0:[1] y : [2]") == {"x:0": [1], "y": [2]}
    for wrong in ("data", "data:[1,", "data:[1,x]", "data:1,2"):
        with pytest.raises(tvmc.TVMCException, match="expected"):
            parse_shape_string(wrong)
    assert parse_pass_list_str("FoldScaleAxis, tir.LoopPartition,") == ["FoldScaleAxis", "tir.LoopPartition"]
    with pytest.raises(argparse.ArgumentTypeError, match="no pass is called Nothing, AtAll"):
        parse_pass_list_str("Nothing,FuseOps,AtAll")
    assert tracker_host_port_from_cli("there:70") == ("there", 70)
    with pytest.raises(tvmc.TVMCException, match="models of pb aren't read; tf2onnx"):
        frontends.TensorflowFrontend().load("net.pb")
    with pytest.raises(tvmc.TVMCImportError, match="no_such_package is needed"):
        frontends.lazy_import("no_such_package")


def test_options_of_passes() -> None:
    assert parse_configs(["tir.disable_vectorize=true", "tir.vtcm_capacity = 3", "tir.usmp.algorithm=x"]) == {
        "tir.disable_vectorize": 1, "tir.vtcm_capacity": 3, "tir.usmp.algorithm": "x",
    }  # fmt: skip
    added = parse_configs(
        ["tir.add_lower_pass=1,tir.transform.UnrollLoop,2,tvm.tir.transform.RemoveNoOp", "tir.add_lower_pass=3,tir.transform.Simplify"]
    )
    pairs = [(phase, one.name) for phase, one in added["tir.add_lower_pass"] if isinstance(one, Pass)]
    assert pairs == [(1, "tir.UnrollLoop"), (2, "tir.RemoveNoOp"), (3, "tir.Simplify")]
    for text, message in (
        ("", "expected name=value"),
        ("tir.LoopPartition=1", "isn't written as text"),
        ("tir.disable_vectorize=yes", "expected a number, true or false"),
        ("tir.add_lower_pass=tir.transform.UnrollLoop,1", "expected phases and passes in turn"),
        ("tir.add_lower_pass=1,tir.transform.Nothing", r"the module tensorexpr\.tir\.transform has no function Nothing"),
        ("tir.add_lower_pass=1,nothing", "no function is registered by this name"),
    ):
        with pytest.raises(tvmc.TVMCException, match=message):
            parse_configs([text])


def test_targets_with_options_hosts_and_code_generators() -> None:
    assert target.tokenize_target("a -x=1,+2 --f, b -y='3, 4',c") == ["a", "-x=1,+2", "--f", ",", "b", "-y='3, 4'", ",", "c"]
    assert [one["opts"] for one in target.parse_target("mine -y='3, 4' --f, llvm -mcpu=core-avx2")] == [
        {"y": "3, 4", "f": True}, {"mcpu": "core-avx2"},
    ]  # fmt: skip
    assert target.parse_target("llvm -num-cores 2 -mcpu=core-avx2")[0]["opts"] == {"num-cores": "2", "mcpu": "core-avx2"}
    parser = argparse.ArgumentParser()
    target.generate_target_args(parser)
    options = target.reconstruct_target_args(parser.parse_args(["--target-llvm-mcpu=znver3", "--target-cuda-max_num_threads=512"]))
    assert options == {"llvm": {"mcpu": "znver3"}, "cuda": {"max_num_threads": "512"}}
    made, generators = target.target_from_cli("mine -level=2, cuda -arch=sm_80, llvm", options)
    assert made.host is not None
    assert (made.kind.name, str(made.host.mcpu), made.attrs["max_num_threads"]) == ("cuda", "znver3", 512)
    assert [(one["name"], one["opts"]) for one in generators] == [("mine", {"level": "2"})]
    assert str(target.target_from_cli('{"kind": "llvm", "mcpu": "core-avx2"}')[0].mcpu) == "core-avx2"
    for text, message in (
        ("llvm, llvm", "names llvm twice"),
        ("cuda, opencl, llvm", "a target, and its host at most"),
        ("llvm, mine", "a target, and its host at most"),
        (", llvm", "expected names of targets"),
        ("{1}", "it is no JSON"),
    ):
        with pytest.raises(tvmc.TVMCException, match=message):
            target.target_from_cli(text)
    with pytest.raises(tvmc.TVMCException, match="Passed --target-cuda-arch but did not specify cuda target"):
        target.target_from_cli("llvm", {"cuda": {"arch": "sm_80"}})


def test_executors_with_options() -> None:
    parser = argparse.ArgumentParser()
    generate_registry_args(parser, Executor, "graph")

    def made(*words: str) -> Any:
        return reconstruct_registry_entity(parser.parse_args(words), Executor)

    entity = made("--executor=aot", "--executor-aot-interface-api=c", "--executor-aot-unpacked-api=1")
    assert (entity.name, entity["interface-api"], entity["unpacked-api"]) == ("aot", "c", True)
    assert made().name == "graph"
    with pytest.raises(tvmc.TVMCException, match="Passed --executor-graph-link-params but did not specify graph executor"):
        made("--executor=aot", "--executor-graph-link-params=1")
    with pytest.raises(tvmc.TVMCException, match='Executor "jet" is not defined'):
        made("--executor=jet")


def test_configurations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    described = {
        "targets": [{"kind": "mine", "level": 2}, {"kind": "llvm", "mcpu": "core-avx2", "num-cores": 4}],
        "executor": {"kind": "aot", "interface-api": "c"}, "pass-config": {"tir.disable_vectorize": "1"}, "trials": "7", "output": "x.so",
    }  # fmt: skip
    assert convert_config_json_to_cli(described) == [
        {"target_mine_level": 2}, {"target_llvm_mcpu": "core-avx2"}, {"target_llvm_num_cores": 4}, {"target": "mine, llvm"},
        {"executor": "aot"}, {"executor_aot_interface_api": "c"}, {"pass_config": ["tir.disable_vectorize=1"]}, {"trials": "7"},
        {"output": "x.so"},
    ]  # fmt: skip
    monkeypatch.setattr(config_options, "CONFIGS_JSON_DIR", None)
    monkeypatch.setenv("TVM_CONFIGS_JSON_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    Path("net.relay").write_text(TEXT)
    Path("deeper").mkdir()
    Path("deeper/mine.json").write_text(json.dumps({"targets": [{"kind": "llvm"}], "trials": 7, "input-shapes": "x:[2,2]"}))
    # found by its name; what other commands take is left to them, what is said besides wins
    assert _main(["--config", "mine", "compile", "net.relay"]) == 4
    assert "--input-shapes x:[2, 2]: the text has x" in capsys.readouterr().err
    assert main(["compile", "net.relay", "--config", "mine", "--input-shapes", "x:[3]"]) == 4
    assert "--input-shapes x:[3]" in capsys.readouterr().err
    Path("wrong.json").write_text('{"trails": 7}')
    for name, message in (("wrong", "no command has the option trails"), ("none", "there is no such file"), ("net.relay", "no such file")):
        assert main(["tune", "net.relay", "--config", name]) == 4
        assert message in capsys.readouterr().err
    Path("imports.json").write_text('{"pass-config": {"tir.add_lower_pass": "1,os.abort"}}')
    assert main(["tune", "net.relay", "--config", "imports"]) == 4
    assert "which no file may ask for" in capsys.readouterr().err
    assert main(["bench", "--config", "mine"]) == 2
    assert "bench takes its options as words" in capsys.readouterr().err


def test_subcommands_of_programs(capsys: pytest.CaptureFixture[str]) -> None:
    @register_parser
    def add(subparsers: Any, parser: Any, values: Any) -> None:
        made = subparsers.add_parser("count")
        made.add_argument("number", type=int)
        made.set_defaults(func=lambda options: options.number)

    try:
        assert _main(["count", "7"]) == 7
    finally:
        REGISTERED_PARSER.remove(add)


def test_code_generators_take_their_part(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is registered, by attributes of operators; and one that finds its part by itself, with options."""
    taken: list[Any] = []

    def generate(func: Any) -> tvm.runtime.Module:
        taken.append(func)
        x = te.placeholder((1, 2, 5, 5), name="x")
        y = te.compute(x.shape, lambda *axes: -x(*axes), name="y")
        return tvm.build(te.create_prim_func([x, y]).with_attr("global_symbol", func.attrs["global_symbol"]), target="llvm")

    tvm.register_func("relay.ext.test_negates", generate, override=True)
    tvm.ir.register_op_attr("nn.relu", "target.test_negates", lambda call: True)
    mod = relay.parse(TEXT)
    package = tvmc.compile(TVMCModel(mod, {}), "test_negates, llvm", dump_offloads="-")
    assert len(taken) == 1 and "test_negates <- nn.relu x1" in capsys.readouterr().out
    x = np.arange(75, dtype="float32").reshape(1, 3, 5, 5)
    w = np.ones((2, 3, 1, 1), "float32")
    found = tvmc.run(package, inputs={"x": x, "w": w}).get_output("output_0")
    np.testing.assert_allclose(found, -np.broadcast_to(x.sum(1, keepdims=True), (1, 2, 5, 5)))
    pair = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))
    register_pattern_table("test_negates", [("test_negates.both", pair)])
    found = composite_target.partitioned(mod, {}, target.target_from_cli("test_negates, llvm")[1])
    assert [name for name in ("nn.conv2d", "nn.relu") if name in str(found["main"])] == []
    register_pattern_table("test_negates", [])
    tvmc.tune(TVMCModel(mod, {}), "test_negates, llvm", tasks_filter="list")
    assert "0. conv2d: " in capsys.readouterr().out  # what is left to tune
    with pytest.raises(tvmc.TVMCException, match="the code generator takes no options, such as level"):
        tvmc.compile(TVMCModel(mod, {}), "test_negates -level=2, llvm")

    def pipeline(mod: Any, params: Any, mod_name: str, level: str) -> Any:
        taken.append((mod_name, level))
        return mod

    monkeypatch.setitem(composite_target.REGISTERED_CODEGEN, "mine", {"pass_pipeline": pipeline})
    assert composite_target.get_codegen_names() == ["mine"]
    composite_target.partitioned(mod, {}, target.target_from_cli("mine -level=2, llvm")[1], "net")
    assert taken[1:] == [("net", "2")]


def test_layouts_and_precision() -> None:
    mod = relay.parse(TEXT)
    assert 'data_layout="NHWC"' in str(convert_graph_layout(mod, "NHWC"))
    assert 'kernel_layout="HWIO"' in str(
        apply_graph_transforms(mod, {"desired_layout": ["NHWC:HWIO"], "desired_layout_ops": ["nn.conv2d"]})
    )
    with pytest.raises(tvmc.TVMCException, match="expected one layout or 1"):
        convert_graph_layout(mod, ["NHWC", "NCHW"], ["nn.conv2d"])
    with pytest.raises(tvmc.TVMCException, match=r"layouts of .* can be asked for, not of nn.relu"):
        convert_graph_layout(mod, "NHWC", ["nn.relu"])
    half = {"mixed_precision": True, "mixed_precision_calculation_type": "bfloat16"}
    assert "bfloat16" in str(apply_graph_transforms(mod, {**half, "mixed_precision_ops": ["nn.conv2d", "nn.dense"]}))
    assert "bfloat16" not in str(apply_graph_transforms(mod, {**half, "mixed_precision_ops": ["nn.dense"]}))
    with pytest.raises(tvmc.TVMCException, match=r"nn\.relu isn't among the operators of half precision: matmul"):
        apply_graph_transforms(mod, {**half, "mixed_precision_ops": ["nn.relu"]})
