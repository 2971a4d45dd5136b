"""tvmc's commands and the same in Python: from a file to a result; what doesn't fit."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr.driver import tvmc
from tensorexpr.driver.cli import main
from tensorexpr.driver.tvmc import runner
from tensorexpr.driver.tvmc.model import TVMCPackage
from tensorexpr.errors import RecordError

from .network import EXPECTED, W, X


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
        (["compile", "net.relay", "-f", "c"], 2, "what C programs use is a library x.so, .* not module.tar"),
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


def test_files_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A full device is told by the file's name, and a device stays one."""
    full = Path("/dev/full")
    if not full.is_char_device():
        pytest.skip("no device that is full")
    assert main(["compile", str(folder / "net.relay"), "-o", str(full)]) == 2
    assert capsys.readouterr().err == "error: /dev/full can't be written: No space left on device: /dev\n"
    assert full.is_char_device()


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
        if Path("/proc").is_dir():  # takes no files, whoever asks
            assert main([*command.split(), "-o", f"/proc/{option}"]) == 4
            assert f"/proc/{option}: the folder /proc takes no files" in capsys.readouterr().err
