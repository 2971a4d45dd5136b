"""Models that are quantised, from a command."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.driver import tvmc
from tensorexpr.driver.cli import main
from tensorexpr.driver.tvmc import quantizer
from tensorexpr.driver.tvmc.model import TVMCModel
from tensorexpr.driver.tvmc.quantizer import samples_of

from .network import EXPECTED, TEXT, W, X


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
