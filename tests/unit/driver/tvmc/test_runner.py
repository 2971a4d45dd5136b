"""Packages that run: their inputs, given and made up; packages of other machines."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.driver import tvmc
from tensorexpr.driver.cli import main
from tensorexpr.driver.tvmc import runner
from tensorexpr.driver.tvmc.model import TVMCModel, TVMCPackage, TVMCResult
from tensorexpr.driver.tvmc.result_utils import get_top_results
from tensorexpr.errors import TargetError

from .network import TEXT, W, X


def test_inputs_that_do_not_fit(folder: Path) -> None:
    package = TVMCPackage(folder / "net.so")
    with pytest.raises(tvmc.TVMCException, match=r"no input 'y'; the network has x: \(3, 4\) float32, w: \(2, 4\) float32"):
        tvmc.run(package, inputs={"y": X})
    with pytest.raises(tvmc.TVMCException, match=r"input 'x' has shape \(4, 3\); the network has"):
        tvmc.run(package, inputs={"x": X.T})
    with pytest.raises(tvmc.TVMCException, match=r"input 'x' has open extents, \(\?, 4\), so it has to be given"):
        runner.make_inputs_dict({"x": [-1, 4]}, {"x": "float32"})
    np.save(folder / "one.npy", X)
    (folder / "cut.npz").write_bytes((folder / "in.npz").read_bytes()[:100])
    with pytest.raises(tvmc.TVMCException, match=r"input 'a' .*\(\?,\); input 'b' .*\(2, \?\), so .*--input-shapes"):
        runner.make_inputs_dict({"a": [-1], "b": [2, -1], "c": [3]}, dict.fromkeys("abc", "float32"))
    for given, dtype, is_kept in (
        ("float64", "float32", True), ("int64", "float16", True), ("int64", "bool", True), ("float32", "bfloat16", True),
        ("float32", "int64", False), ("complex64", "float32", False), ("str", "float32", False),
    ):  # fmt: skip
        asked = {"x": np.ones(3, given)}, {"x": dtype}
        if is_kept:
            runner.make_inputs_dict({"x": [3]}, asked[1], asked[0])
        else:
            with pytest.raises(tvmc.TVMCException, match=f"input 'x' is of .*, which {dtype} can't hold"):
                runner.make_inputs_dict({"x": [3]}, asked[1], asked[0])
    for name, reason in (("one.npy", "it holds one array without a name; np.savez"), ("cut.npz", "is not a zip file")):
        with pytest.raises(tvmc.TVMCException, match=f"{name} is no .npz file of inputs: .*{reason}"):
            tvmc.run(package, inputs=folder / name)
    for name, length in (("cut.so", 1000), ("empty.so", 0)):
        (folder / name).write_bytes((folder / "net.so").read_bytes()[:length])
        with pytest.raises(tvmc.TVMCException, match=f"{name} is no package that compile wrote, or was cut"):
            tvmc.run(TVMCPackage(folder / name))
    with pytest.raises(tvmc.TVMCException, match="fill mode 'sevens': there are zeros, ones, random"):
        tvmc.run(package, fill_mode="sevens")
    with pytest.raises(tvmc.TVMCException, match="no output 'output_1'; there are output_0"):
        TVMCResult({"output_0": X}, None).get_output("output_1")
    with pytest.raises(tvmc.TVMCException, match="nothing was measured"):
        TVMCResult({}, None).format_times()


def test_what_a_file_lacks_is_made_up_and_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(folder / "x.npz", x=X)
    assert main(["run", str(folder / "net.so"), "-i", str(folder / "x.npz")]) == 0
    assert "x.npz lacks w: made up, --fill-mode random" in capsys.readouterr().err
    assert main(["run", str(folder / "net.so")]) == 0 and not capsys.readouterr().err


def test_made_up_inputs_may_be_what_a_network_refuses(tmp_path: Path) -> None:
    """It says which of them were made up: a rate of sampling, say, that a model has no branch for."""
    x = tvm.relax.Var("rate", tvm.relax.TensorStructInfo((), "int64"))
    bb = tvm.relax.BlockBuilder()
    with bb.function("main", [x], pure=False):
        bb.emit(tvm.relax.op.assert_op(bb.emit(tvm.relax.op.equal(x, tvm.relax.const(8000, "int64"))), (), "8000 Hz alone"))
        bb.emit_func_output(bb.emit(tvm.relax.op.negative(x)))
    model = TVMCModel(bb.get(), {})
    package = tvmc.compile(model, "llvm", package_path=tmp_path / "net.so")
    assert tvmc.run(package, inputs={"rate": np.int64(8000)}).get_output("output_0") == -8000
    for inputs, message in ((None, r"8000 Hz alone\n.* made up, --fill-mode ones: rate; -i x.npz"), ({"rate": 1}, "8000 Hz alone$")):
        with pytest.raises(tvm.TVMError, match=message):
            tvmc.run(package, inputs=inputs, fill_mode="ones")
    with pytest.raises(tvmc.TVMCException, match="made up, --fill-mode zeros: rate"):
        tvmc.verify(model, fill_mode="zeros")


def test_a_package_of_another_machine(folder: Path) -> None:
    here = tvm.target.Target("llvm")
    others = [f"llvm -mcpu={name}" for name in ("sapphirerapids", "znver4")] if here.arch == "x86_64" else []
    other = next((text for text in others if tvm.target.Target(text).features - here.features), None)
    if other is None:
        pytest.skip(f"this machine ({here.mcpu}) runs code for all of {others}")
    package = tvmc.compile(tvmc.load(folder / "net.relay"), other, package_path=folder / "foreign.so")
    with pytest.raises(
        TargetError, match=r"foreign.so: code for .* needs .*, which this machine .* lacks; build it for its CPU, .llvm -mcpu="
    ):
        tvmc.run(package)


def test_inputs_of_a_graph_and_the_largest_outputs(folder: Path) -> None:
    graph = relay.build(relay.parse(TEXT), "llvm", params={"w": W}).get_graph_json()
    assert [node["name"] for node in json.loads(graph)["nodes"][:1]] == ["x"]
    assert runner.get_input_info(graph, {}) == ({"x": [3, 4]}, {"x": "float32"})
    top = get_top_results(TVMCResult({"output_0": np.array([1.0, 9.0, 4.0])}, None), 2)
    assert top.tolist() == [[1, 2], [9, 4]]
