"""tvmc's names and commands: models loaded, compiled, run, verified; what doesn't fit."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.driver import tvmc
from tensorexpr.driver.cli import main
from tensorexpr.driver.tvmc import autotuner, compiler, quantizer, runner, verifier
from tensorexpr.driver.tvmc.model import TVMCModel, TVMCPackage, TVMCResult
from tensorexpr.driver.tvmc.quantizer import samples_of
from tensorexpr.driver.tvmc.result_utils import get_top_results
from tensorexpr.driver.tvmc.tuning_table import TuningTable
from tensorexpr.errors import RecordError, TargetError
from tensorexpr.relax.tuning.outcome import NetworkTuning, TaskOutcome
from tensorexpr.relay.to_graph import to_graph
from tensorexpr.tune.measure.results import TIMED_AGAIN

TEXT = """def @main(%x: Tensor[(3, 4), float32], %w: Tensor[(2, 4), float32]) {
  nn.relu(nn.dense(%x, %w))
}"""
X = np.linspace(-1, 1, 12).astype("float32").reshape(3, 4)
W = np.linspace(-2, 1, 8).astype("float32").reshape(2, 4)
EXPECTED = np.maximum(X @ W.T, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as text, and its package as an archive and as a library."""
    made = tmp_path_factory.mktemp("tvmc")
    (made / "net.relay").write_text(TEXT)
    np.savez(made / "in.npz", x=X, w=W)
    model = tvmc.load(made / "net.relay")
    tvmc.compile(model, "llvm", package_path=made / "net.tar", dump_code="ll,relay,tir")
    tvmc.compile(model, "llvm", package_path=made / "net.so")
    model.save(made / "saved.tar")
    (made / "junk.onnx").write_text("no model")
    return made


def test_from_a_file_to_a_result(folder: Path) -> None:
    for name in ("net.tar", "net.so"):
        result = tvmc.run(TVMCPackage(folder / name), "cpu", inputs={"x": X, "w": W}, benchmark=True, repeat=2, number=1)
        np.testing.assert_allclose(result.get_output("output_0"), EXPECTED, 1e-6)
        assert result.times is not None and len(result.times.results) == 2
        assert str(result).startswith(result.format_times()) and str(result).endswith("Output Names:\n ['output_0']")
    assert "define" in (folder / "net.tar.ll").read_text()
    assert "nn.dense" in (folder / "net.tar.relay").read_text()
    assert "T.prim_func" in (folder / "net.tar.tir").read_text()


def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package, page = str(folder / "net.so"), folder / "net.html"
    assert main(["compile", str(folder / "net.relay"), "-o", str(folder / "again.tar"), "--target-llvm-mcpu", _cpu()]) == 0
    code = main(
        ["run", str(folder / "again.tar"), "-i", str(folder / "in.npz"), "-o", str(folder / "out.npz"), "--print-time", "--print-top", "2"]
    )
    assert code == 0
    np.testing.assert_allclose(np.load(folder / "out.npz")["output_0"], EXPECTED, 1e-6)
    assert main(["profile", package, "--fill-mode", "ones"]) == 0
    assert main(["verify", str(folder / "net.relay"), "--kernels", "-i", str(folder / "in.npz")]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^ +\d  [\d.]+$", printed, re.MULTILINE)  # one of the largest elements
    assert "mean (ms)" in printed and "Percent" in printed and "output_0" in printed and "DIFFERS" not in printed
    assert "<table>" in page.read_text() and "of the run" in page.read_text()


def _cpu() -> str:
    return str(tvm.target.Target("llvm").mcpu)


def test_a_wrong_result_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.relay").write_text(TEXT.replace("nn.relu", "negative"))
    tvmc.compile(tvmc.load(folder / "other.relay"), "llvm", package_path=folder / "other.so")
    assert main(["verify", str(folder / "net.relay"), "--package", str(folder / "other.so")]) == 1
    assert "DIFFERS" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "nope.tar"], 4, "nope.tar: there is no such package"),
        (["run", "net.so", "--device", "cuda"], 4, "networks run on the CPU, not on cuda"),
        (["run", "net.so", "-i", "net.relay"], 4, "net.relay is no .npz file of inputs"),
        (["run", "net.so", "--rpc-tracker", "there:9000"], 4, "go together"),
        (["run", "net.so", "--rpc-tracker", "there:9000", "--rpc-key", "k", "--profile"], 4, "a profile is of a package that runs here"),
        (["tune", "net.relay", "-o", "r.json", "--rpc-tracker", "there:9000"], 4, "go together"),
        (["run", "net.relay"], 4, "net.relay is no package that compile wrote, or was cut"),
        (["compile", "net.relay", "--model-format", "magic"], 4, "no model format 'magic'; there are keras, onnx"),
        (["compile", "net.relay", "--input-shapes", "x:[9,9]"], 4, r"the text has x: Tensor\[\(3, 4\), float32\]"),
        (["compile", "in.npz"], 4, "the ending tells no format"),
        (["compile", "."], 4, "is a folder, and a model is a file"),
        (["compile", "net.relay", "-o", "."], 4, "is a folder, and a file is to be written"),
        (["compile", "net.relay", "-f", "c"], 2, "a library for C programs is x.so, or an object x.o, not module.tar"),
        (["compile", "net.relay", "-f", "c", "-o", "my-net.so"], 2, "'my-net' is no name of C"),
        (["compile", "net.relay", "--tuning-records", "net.relay"], 4, "net.relay holds no records"),
        (["run", "net.so", "--print-top", "-3"], 4, "--print-top -3: it is how many elements are shown"),
        (["run", "net.so", "--profile", "--profile-options", "none/p.html"], 4, "there is no folder none"),
        (["tune", "net.relay", "-o", "r.json", "--tasks", ","], 4, "--tasks ,: expected"),
        (["compile", "net.h5", "--model-format", "keras"], 4, "there is no such file"),
        (["compile", "net.relay", "--target", "llvm -mcpu=nope"], 4, "nope"),
        (["compile", "net.relay", "--tuning-records", "none.json"], 4, "none.json: there are no such tuning records"),
        (["compile", "net.relay", "--dump-code", "c"], 4, "--dump-code c: there are ll, asm, relay, tir"),
        (["compile", "net.relay", "--pass-config", "nope"], 4, "expected name=value"),
        (["compile", "net.relay", "--pass-config", "tir.disable_vectorise=1"], 4, "did you mean 'tir.disable_vectorize'"),
        (["compile", "net.relay", "--disabled-pass", "FoldConstants"], 4, "no pass is called FoldConstants; did you mean FoldConstant"),
        (["compile", "net.relay", "--target", "nobody, llvm"], 4, "no code generator 'nobody': there are none"),
        (["compile", "net.relay", "--executor", "jet"], 4, 'Executor "jet" is not defined; there are graph, aot'),
        (["compile", "net.relay", "--workspace-pools", "sram"], 4, "workspace pools"),
        (["quantize", "net.relay"], 4, "quantising needs inputs like those that the network will get: --calibration"),
        (["quantize", "net.relay", "-c", "net.relay"], 4, "is no .npz file of inputs"),
        (["quantize", "net.relay", "-c", "in.npz", "--fill-mode", "ones"], 4, "give one of both"),
        (["quantize", "net.relay", "-c", "in.npz"], 2, "matmul: the right operand isn't constant"),
        (["compile", "saved.tar", "--input-shapes", "nothing:[3,4]"], 4, r"the saved model has x: Tensor\[\(3, 4\), float32\]"),
        (["compile", "net.relay", "--target", "nowhere"], 4, "no target kind 'nowhere'"),
        (["compile", "junk.onnx"], 4, "junk.onnx: it is no model of ONNX"),
        (["compile", "in.npz", "--model-format", "relay"], 4, "in.npz is no text of Relay"),
        (["run", "saved.tar"], 4, "it has no mod.so; it is a saved model: compile it first"),
        (["run", "net.so", "--print-time", "--repeat", "0"], 4, "--repeat 0 --number 1: there is one measurement of one run at least"),
        (["tune", "net.relay", "--budget", "3"], 4, "-o FILE says where; --tasks list shows"),
        (["tune", "net.relay", "-o", "r.json", "--budget", "0"], 4, "--budget 0: it is a positive number of seconds"),
        (["tune", "net.relay", "-o", "r.json", "--tuner", "ga", "--budget", "3"], 4, "a budget of seconds is for the auto-scheduler"),
        (["tune", "net.relay", "-o", "r.json", "--tuner", "ga", "--by", "autotvm"], 4, "AutoTVM's tuners search operators"),
        (["tune", "net.relay", "-o", "r.json", "--enable-autoscheduler", "--by", "meta_schedule"], 4, "say two things"),
    ],
)
def test_what_does_not_fit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    monkeypatch.chdir(folder)
    assert main(arguments) == code
    errors = capsys.readouterr().err
    assert errors.startswith("error: ")
    with pytest.raises(RecordError, match=message):
        raise RecordError(errors)


def test_a_saved_model_is_known_whatever_its_ending(folder: Path) -> None:
    renamed = shutil.copy(folder / "saved.tar", folder / "renamed.relay")
    assert tvm.ir.structural_equal(tvmc.load(renamed).mod, tvmc.load(folder / "saved.tar").mod)


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


def test_files_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A full device is told by the file's name, and a device stays one."""
    full = Path("/dev/full")
    if not full.is_char_device():
        pytest.skip("no device that is full")
    assert main(["compile", str(folder / "net.relay"), "-o", str(full)]) == 2
    assert capsys.readouterr().err == "error: /dev/full can't be written: No space left on device: /dev\n"
    assert full.is_char_device()


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
    with pytest.raises(TargetError, match=r"foreign.so: code for .* needs .*, which this machine .* lacks"):
        tvmc.run(package)


def test_kernels_with_many_steps_of_their_own_are_not_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of bytes with 64 steps of an LSTM was interpreted for minutes."""
    x = relay.var("x", shape=(2, 5))
    model = TVMCModel(tvm.IRModule.from_expr(relay.Function((x,), relay.sort(x))), {})
    assert all(not row.reason and row.is_equal for row in tvmc.verify(model, per_kernel=True).rows)
    monkeypatch.setattr(verifier, "_SECONDS", -1.0)
    first, output = tvmc.verify(model, per_kernel=True).rows
    assert "its own loops take more than -1 s to interpret" in first.reason and output.is_equal and not output.reason


def test_a_package_of_another_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.relay").write_text(TEXT.replace("(3, 4)", "(1, 4)"))
    assert main(["verify", str(folder / "other.relay"), "--package", str(folder / "net.so")]) == 4
    assert capsys.readouterr().err == "error: input 'x' has shape (1, 4); the network has x: (3, 4) float32, w: (2, 4) float32\n"


def test_what_is_rounded_may_be_a_step_off() -> None:
    """A value beside a half is rounded to either side; that is no wrong result, and two steps are one."""
    whole = np.array([1, 2, 3], "int8")
    for off, is_equal in ((0, True), (1, True), (2, False)):
        assert verifier._row("k", whole, whole + np.int8(off), 0.0, 0.0, steps=1.0).is_equal is is_equal
    assert not verifier._row("k", whole, whole + np.int8(1), 0.0, 0.0).is_equal
    floats = np.linspace(1, 2, 2000, dtype="float32")
    moved = floats.copy()
    moved[7:9] += 0.5
    row = verifier._row("k", moved, floats, 1e-5, 1e-5, spared=1e-3)
    assert row.is_equal and "but for 2 of 2000, rounded on the way" in row.cells()[-1]
    moved[9] += 0.5
    assert verifier._row("k", moved, floats, 1e-5, 1e-5, spared=1e-3).cells()[-1] == "DIFFERS"


def test_who_is_off_beside_another_runtime(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {"x": X, "w": W}
    monkeypatch.setattr(verifier, "_by_onnxruntime", lambda path, given: [EXPECTED + 1])
    found = tvmc.verify(tvmc.load(folder / "net.relay"), inputs=inputs, reference="onnxruntime")
    assert not found and re.search(r"DIFFERS; \S+ from the evaluator of the imported graph$", str(found))
    monkeypatch.setattr(verifier, "by_evaluator", lambda graph, arrays: [EXPECTED + 2])
    again = tvmc.verify(tvmc.load(folder / "net.relay"), inputs=inputs, reference="onnxruntime")
    assert str(again).endswith("DIFFERS; 2 from the evaluator of the imported graph, too")


def test_where_another_runtime_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first node whose results differ, and with whom ONNX's own reading of it is; later ones differ by what they read."""
    onnx = pytest.importorskip("onnx")
    text = """<ir_version: 8, opset_import: ["" : 17]> net (float[3, 4] x) => (float[3, 4] y)
        <float[3, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> { a = Neg(x)  b = Mul(a, w)  y = Relu(b) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "net.onnx")
    weights = np.arange(1, 13, dtype="float32").reshape(3, 4)

    def peer(model: Any, given: Any) -> list[Any]:
        a, wrong = -given["x"], -given["x"] * weights - 5
        values = {"a": a, "b": wrong, "y": np.maximum(wrong, 0)}
        known = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
        return [values[one.name] for one in known.graph.output]

    monkeypatch.setattr(verifier, "_by_onnxruntime", peer)
    found = tvmc.verify(tvmc.load(tmp_path / "net.onnx"), inputs={"x": X}, reference="onnxruntime")
    assert found.parting == (
        "the first that differs is 'b' of node 1, Mul: 5 apart beside 17; ONNX's reference implementation agrees there with the evaluator"
    )
    assert not found and str(found).endswith(found.parting)


def test_another_runtime_may_refuse_inputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *_: Any) -> None:
        raise RuntimeError("indices element out of data bounds")

    monkeypatch.setitem(
        sys.modules,
        "onnxruntime",
        SimpleNamespace(SessionOptions=lambda: SimpleNamespace(add_session_config_entry=lambda *_: None), InferenceSession=refuse),
    )
    model = tvmc.load(folder / "net.relay")
    model.source = "net.onnx"
    with pytest.raises(
        tvmc.TVMCException, match=r"onnxruntime doesn't run net\.onnx on these inputs: indices element out .* --fill-mode zeros"
    ):
        tvmc.verify(model, reference="onnxruntime")


def test_a_model_is_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = TVMCModel(relay.parse(TEXT), {"w": tvm.nd.array(W)})
    graph = TVMCModel(to_graph(model.mod))
    graph.save(tmp_path / "graph.tar")
    assert tvm.ir.structural_equal(tvmc.load(tmp_path / "graph.tar").mod, graph.mod)
    model.save(tmp_path / "model.tar")
    again = tvmc.load(tmp_path / "model.tar")
    np.testing.assert_array_equal(again.params["w"].numpy(), W)
    again.summary()
    assert "nn.dense" in capsys.readouterr().out
    assert model.default_tuning_records_path() == model.default_tuning_records_path() != model.default_package_path()
    (tmp_path / "torn.tar").write_bytes(b"no archive")
    with pytest.raises(tvmc.TVMCException, match=r"is no model that TVMCModel\.save wrote"):
        tvmc.load(tmp_path / "torn.tar")
    with pytest.raises(tvmc.TVMCException, match="made of a module, or of model_path"):
        TVMCModel()


@pytest.mark.parametrize(
    ("text", "chosen", "is_list"),
    [
        ("all", "abcdefgh", False),
        ("0,2", "ac", False),
        ("-2", "abc", False),
        ("1-3,5-", "bcdfgh", False),
        ("list", "abcdefgh", True),
        ("list,1-2", "bc", True),
    ],
)
def test_some_of_the_tasks(text: str, chosen: str, is_list: bool) -> None:
    assert autotuner.filter_tasks("abcdefgh", text) == (list(chosen), is_list)


def test_tasks_that_there_are_not() -> None:
    with pytest.raises(tvmc.TVMCException, match="there are 2 tasks"):
        autotuner.filter_tasks("ab", "7")
    for text in ("x", "1-0", ",", ""):
        with pytest.raises(tvmc.TVMCException, match="expected"):
            autotuner.filter_tasks("ab", text)
    with pytest.raises(tvmc.TVMCException, match=r"nothing to tune: .*--input-shapes"):
        autotuner.filter_tasks([], "list")


def test_inputs_of_a_graph_and_the_largest_outputs(folder: Path) -> None:
    graph = relay.build(relay.parse(TEXT), "llvm", params={"w": W}).get_graph_json()
    assert [node["name"] for node in json.loads(graph)["nodes"][:1]] == ["x"]
    assert runner.get_input_info(graph, {}) == ({"x": [3, 4]}, {"x": "float32"})
    top = get_top_results(TVMCResult({"output_0": np.array([1.0, 9.0, 4.0])}, None), 2)
    assert top.tolist() == [[1, 2], [9, 4]]


def test_graphs_in_another_precision(folder: Path) -> None:
    model = tvmc.load(folder / "net.relay")
    package = tvmc.compile(model, "llvm", mixed_precision=True, mixed_precision_calculation_type="bfloat16")
    found = tvmc.run(package, inputs={"x": X, "w": W}).get_output("output_0")
    np.testing.assert_allclose(found, EXPECTED, 0.02, 0.02)
    assert compiler.analyze_operations_distribution(model.mod)["nn.relu"] == 1


def test_templates_are_tuned(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By AutoTVM, whose tuner is told what was asked for, and keeps what it measured when it is interrupted."""
    asked: dict[str, Any] = {}

    def tune(self: Any, n_trial: int, measure_option: Any, early_stopping: Any = None, callbacks: Any = ()) -> None:
        asked.update(n_trial=n_trial, early_stopping=early_stopping)
        raise KeyboardInterrupt

    monkeypatch.setattr("tensorexpr.autotvm.tuner.GATuner.tune", tune)
    assert main(["tune", str(folder / "net.relay"), "-o", str(tmp_path / "r.json"), "--tuner", "ga", "--trials", "3"]) == 130
    assert asked == {"n_trial": 3, "early_stopping": None}
    # as a function, too, a tuner's name is enough
    with pytest.raises(KeyboardInterrupt):
        tvmc.tune(tvmc.load(folder / "net.relay"), "llvm", tmp_path / "r.json", tuner="ga", trials=5)
    assert asked == {"n_trial": 5, "early_stopping": None}
    with pytest.raises(tvmc.TVMCException, match="--trials 0: at least one program"):
        tvmc.tune(tvmc.load(folder / "net.relay"), "llvm", tmp_path / "r.json", trials=0)


def test_folders_that_arent_there_are_told_at_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before what takes its time."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("tensorexpr.driver.tvmc.frontends.load_model", lambda *_: pytest.fail("a model is loaded"))
    monkeypatch.setattr(runner, "run_module", lambda *_: pytest.fail("a package runs"))
    for command, option in (
        ("compile net.relay", "x.so"),
        ("quantize net.relay", "x.tar"),
        ("tune net.relay", "r.json"),
        ("run x.so", "y.npz"),
    ):
        assert main([*command.split(), "-o", f"none/{option}"]) == 4
        assert f"none/{option}: there is no folder none to write it to" in capsys.readouterr().err


def test_a_budget_of_seconds_is_that_of_the_network(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is asked for gets to `relax.tune_network`, and the programs that it chose are what `compile` is told to take."""
    asked: dict[str, Any] = {}
    task = TaskOutcome("k", "key", ("k",), 1, 1e-3, 1e-3, 2, "rule")

    def tune(mod: Any, params: Any, target: Any, **options: Any) -> NetworkTuning:
        asked.update(options)
        executable: Any = None
        return NetworkTuning((task,), 1e-3, 1e-3, 2.0, 2.5, 2, False, Path("r.json"), Path("r.best.json"), executable)

    monkeypatch.setattr(autotuner, "tune_network", tune)
    monkeypatch.setattr(autotuner, "network_page", lambda tuning: f"<p>{tuning.trials}</p>")
    monkeypatch.chdir(folder)
    assert main(["tune", "net.relay", "-o", "r.json", "--budget", "2.5", "--tasks", "0", "--tuning-records", "old.json"]) == 0
    assert (asked["budget_s"], asked["records"], asked["prior_records"], len(asked["tasks"])) == (2.5, "r.json", ("old.json",), 1)
    assert (folder / "r.html").read_text() == "<p>2</p>"
    printed = capsys.readouterr().out
    assert "2 programs measured in 2 s" in printed and "compile net.relay --tuning-records r.best.json" in printed
    assert asked["by"] == "auto_scheduler" and [asked["builder"].n_parallel, asked["runner"].number] == [None, None]
    assert main(["tune", "net.relay", "-o", "r.json", "--budget", "2.5", "--by", "meta_schedule", "--number", "3", "--parallel", "2"]) == 0
    assert asked["by"] == "meta_schedule" and [asked["runner"].number, asked["builder"].n_parallel] == [3, 2]
    assert asked["inputs"] is None
    given = ["-i", "in.npz", "--input-shapes", "x:[3,4]", "--target", "llvm -num-cores=2"]
    assert main(["tune", "net.relay", "-o", "r.json", "--budget", "2.5", *given]) == 0
    read: Any = asked["inputs"]
    np.testing.assert_array_equal(read["w"], W)
    assert "--input-shapes 'x:[3,4]' --target 'llvm -num-cores=2'" in capsys.readouterr().out
    assert main(["tune", "net.relay", "-o", "r.json", "--budget", "2.5", "--trials", "3"]) == 4
    task = replace(task, workload_key="")
    assert main(["tune", "net.relay", "-o", "r.json", "--budget", "2.5"]) == 4
    assert "nothing to tune: no products or convolutions of known sizes" in capsys.readouterr().err


def test_trials_go_to_the_style_that_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    def tune(self: Any, tune_option: Any, search_policy: Any) -> None:
        asked.append((tune_option.num_measure_trials, {type(one).__name__ for one in search_policy}, len(self.tasks)))

    monkeypatch.setattr("tensorexpr.auto_scheduler.TaskScheduler.tune", tune)
    monkeypatch.chdir(folder)
    for by, policy in (("auto_scheduler", "SketchPolicy"), ("autotvm", "TemplatePolicy"), ("meta_schedule", "BlocksPolicy")):
        assert main(["tune", "net.relay", "-o", "r.json", "--trials", "5", "--by", by]) == 0
        assert asked.pop() == (5, {policy}, 1)
    one = relay.var("x", shape=(3, 4))
    simple = relay.Function((one,), relay.nn.softmax(one))
    TVMCModel(tvm.IRModule.from_expr(simple), {}).save(folder / "simple.tar")
    assert main(["tune", "simple.tar", "-o", "r.json", "--trials", "5", "--by", "autotvm", "--include-simple-tasks"]) == 4
    said = capsys.readouterr()
    assert "autotvm has no programs of it" in said.out and "nothing to tune: autotvm has programs of none" in said.out + said.err
    with pytest.raises(tvmc.TVMCException, match="no search is called 'luck'"):
        tvmc.tune(tvmc.load(folder / "net.relay"), "llvm", by="luck")


class _Task:
    """What a table and a choice of tasks ask of one."""

    def __init__(self, name: str, operations: float) -> None:
        self.desc = self.workload_key = name
        self.compute_dag = SimpleNamespace(flop_ct=operations)


def test_few_trials_go_to_the_kernels_with_the_most_operations(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [_Task("small", 10.0), _Task("large", 500.0), _Task("often", 90.0)]
    counts = {id(task): 5 if task.desc == "often" else 1 for task in tasks}
    assert autotuner._affordable(tasks, counts, 12) == tasks and not capsys.readouterr().out
    assert [task.desc for task in autotuner._affordable(tasks, counts, 8)] == ["large", "often"]
    assert "8 programs are few for 3 kernels: the 2 with the most operations, 99% of all, are tuned; --trials 12" in capsys.readouterr().out
    assert [task.desc for task in autotuner._affordable(tasks, counts, 1)] == ["large"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("is_terminal", [False, True])
def test_one_table_shows_all_tasks_while_trials_tune_them(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = _Terminal() if is_terminal else io.StringIO()
    tasks = [_Task("conv2d_relu", 1.0), _Task("matmul", 1.0), _Task("never_ran", 1.0)]
    table = TuningTable(tasks, [3, 1, 1], 6, stream=out)
    for task, seconds in ((0, 4e-3), (1, 5e-3), (0, 2e-3)):
        table.pre_tune(None, task)
        measured = SimpleNamespace(is_success=True, median=seconds, policy={})
        given = SimpleNamespace(task=tasks[task], trace=("a step",))
        table.watch.callback(None, [given], [measured])
        table.post_tune(None, task)
    again = SimpleNamespace(is_success=True, median=1.9e-3, policy={TIMED_AGAIN: True})
    table.watch.callback(None, [SimpleNamespace(task=tasks[0], trace=("a step",))], [again])  # no trial
    table.close()
    *before, head, first, second, third, summary = out.getvalue().splitlines()
    assert head.split() == ["ms", "first", "ms", "best", "gain", "calls", "trials", "kernel"] or is_terminal
    assert first.split() == ["12.000", "5.700", "2.11x", "3", "2", "conv2d_relu"]  # all calls, what takes most first
    assert second.split() == ["5.000", "5.000", "-", "1", "1", "matmul"]
    assert third.split() == ["-", "-", "-", "1", "0", "never_ran"]
    assert summary == "kernels: 17.000 ms by the first programs, 10.700 ms by the best, 1.59x; 1 of 3 kernels have no program that ran"
    if is_terminal:  # each drawing goes where the one before was
        assert out.getvalue().count("\x1b[5F\x1b[J") == 6
    else:
        assert [" ".join(line.split()[2:]) for line in before][-1] == "3 of 6 tried 2 of 3 kernels: 11.000 ms conv2d_relu"


def test_a_model_is_quantised(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """By the command, with what it costs; what comes out is a model as any other."""
    monkeypatch.setattr(quantizer, "_SECONDS", 0.02)
    rng = np.random.default_rng(0)
    mod = relay.parse(TEXT)
    TVMCModel(mod, {"w": tvm.nd.array(W)}).save(tmp_path / "net.tar")
    np.savez(tmp_path / "many.npz", x=rng.normal(0, 1, (5, 3, 4)).astype("float32"))
    made = str(tmp_path / "net.int8.tar")
    assert main(["quantize", str(tmp_path / "net.tar"), "-c", str(tmp_path / "many.npz"), "-o", made, "--method", "percentile"]) == 0
    printed = capsys.readouterr().out
    assert "1 of 1 products and convolutions on integers; 5 samples seen" in printed
    assert "accuracy on 5 inputs, the same as those of the calibration" in printed and "times as fast" in printed
    assert main(["verify", made]) == 0
    found = tvmc.run(tvmc.compile(tvmc.load(made), "llvm"), inputs={"x": X}).get_output("output_0")
    np.testing.assert_allclose(found, EXPECTED, atol=0.1)
    assert main(["quantize", str(tmp_path / "net.tar"), "--fill-mode", "random", "-o", made]) == 0
    assert "note: ranges come of made up inputs" in capsys.readouterr().out


def test_numbers_and_what_is_not_finite_are_compared() -> None:
    for exact, found, largest in ((3.0, 2.0, 1.0), (np.nan, np.nan, 0.0), (np.nan, 1.0, np.inf)):
        assert quantizer._compared(np.array(exact), np.array(found))[0] == largest


def test_inputs_for_calibration() -> None:
    shapes, dtypes = {"x": (2, 3), "n": ()}, {"x": "float32", "n": "int64"}
    x = np.arange(12.0).reshape(4, 3)
    for values, count in ((x, 2), (x.reshape(2, 2, 3), 2), (x[:2], 1)):
        cut = samples_of({"x": values, "n": np.array(3)}, shapes, dtypes)
        np.testing.assert_array_equal(np.concatenate([one["x"] for one in cut]), values.reshape(-1, 3))
        assert len(cut) == count and all(one["n"] == 3 for one in cut)
    assert samples_of({"x": np.zeros((3, 5))}, {"x": (1, 3, 5)}, dtypes)[0]["x"].shape == (1, 3, 5)
    for wrong, message in (
        ({"x": x}, r"needs all inputs, x: \(2, 3\) float32, n: \(\) int64; given are x"),
        ({"x": x.T, "n": 1}, r"input 'x' has shape \(3, 4\), which is neither"),
        ({"x": x, "n": np.arange(3)}, "different numbers of inputs: x: 2, of others 3"),
    ):
        with pytest.raises(tvmc.TVMCException, match=message):
            samples_of(wrong, shapes, dtypes)
