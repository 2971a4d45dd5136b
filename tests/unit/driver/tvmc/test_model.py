"""Models that are loaded, saved and compiled in another precision."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.driver import tvmc
from tensorexpr.driver.tvmc import compiler
from tensorexpr.driver.tvmc.model import TVMCModel
from tensorexpr.relay.to_graph import to_graph

from .network import EXPECTED, TEXT, W, X


def test_a_saved_model_is_known_whatever_its_ending(folder: Path) -> None:
    renamed = shutil.copy(folder / "saved.tar", folder / "renamed.relay")
    assert tvm.ir.structural_equal(tvmc.load(renamed).mod, tvmc.load(folder / "saved.tar").mod)


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


def test_graphs_in_another_precision(folder: Path) -> None:
    model = tvmc.load(folder / "net.relay")
    package = tvmc.compile(model, "llvm", mixed_precision=True, mixed_precision_calculation_type="bfloat16")
    found = tvmc.run(package, inputs={"x": X, "w": W}).get_output("output_0")
    np.testing.assert_allclose(found, EXPECTED, 0.02, 0.02)
    assert compiler.analyze_operations_distribution(model.mod)["nn.relu"] == 1
