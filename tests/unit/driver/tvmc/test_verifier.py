"""Results beside those of the evaluator, and of another runtime."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.driver import tvmc
from tensorexpr.driver.cli import main
from tensorexpr.driver.tvmc import verifier
from tensorexpr.driver.tvmc.model import TVMCModel

from .network import EXPECTED, TEXT, W, X


def test_a_wrong_result_is_found(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.relay").write_text(TEXT.replace("nn.relu", "negative"))
    tvmc.compile(tvmc.load(folder / "other.relay"), "llvm", package_path=folder / "other.so")
    assert main(["verify", str(folder / "net.relay"), "--package", str(folder / "other.so")]) == 1
    assert "DIFFERS" in capsys.readouterr().out


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
