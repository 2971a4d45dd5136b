"""Networks rewritten by the values of their weights; files that programs fetch; plotters of programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.contrib import download, relay_viz
from tensorexpr.errors import TensorExprError
from tensorexpr.relay.data_dep_optimization import bsr_dense, simplify_fc_transpose


def product(turned: bool) -> Any:
    x, w = relay.var("x", shape=(2, 8)), relay.var("w", shape=(8, 12) if turned else (12, 8))
    return relay.Function((x, w), relay.nn.relu(relay.nn.dense(x, relay.transpose(w, axes=[1, 0]) if turned else w)))


def computed(func: Any, params: Any, x: Any) -> Any:
    return relay.create_executor("graph", mod=tvm.IRModule.from_expr(func), params=params).evaluate()(x).numpy()


def test_weights_are_transposed_and_made_sparse() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 8)).astype("float32"), np.zeros((12, 8), "float32")
    w[4:8, 2:4] = rng.standard_normal((4, 2))
    func, params = simplify_fc_transpose.convert(product(True), {"w": tvm.nd.array(w.T.copy())})
    assert list(params) == ["w.T"] and "transpose" not in str(func)
    sparse, few = bsr_dense.convert(func, params, (4, 2), 0.8)
    assert sorted(few) == ["w.T.data", "w.T.indices", "w.T.indptr"] and few["w.T.data"].shape == (1, 4, 2)
    for made, values in ((func, params), (sparse, few)):
        np.testing.assert_allclose(computed(made, values, x), np.maximum(x @ w.T, 0), 1e-5, 1e-5)


@pytest.mark.parametrize(("size", "threshold"), [((5, 2), 0.5), ((4, 2), 0.95)])
def test_weights_that_stay(size: tuple[int, int], threshold: float) -> None:
    w = np.zeros((12, 8), "float32")
    w[:4, :2] = 1
    func, params = bsr_dense.convert(product(False), {"w": w}, size, threshold)
    assert list(params) == ["w"] and "nn.dense" in str(func)
    assert simplify_fc_transpose.convert(product(True), {})[1] == {}


def test_files_are_found_and_never_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "TEST_DATA_ROOT_PATH", tmp_path)
    url = "http://localhost/a.txt"
    with pytest.raises(TensorExprError, match=r"a\.txt isn't there, and nothing is fetched here: get http://localhost/a\.txt by other"):
        download.download_testdata(url, "a.txt", module="texts")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("one")
    assert Path(download.download_testdata(url, "a.txt", module=["texts"], overwrite=True)).read_text() == "one"
    download.download(url, tmp_path / "texts" / "a.txt")


def test_plotters_of_programs(capsys: pytest.CaptureFixture[str]) -> None:
    class Plotter(relay_viz.TermPlotter):  # type: ignore[misc]
        def create_graph(self, name: str) -> Any:
            self._name_to_graph[name] = relay_viz.terminal.TermGraph(f"my {name}")
            return self._name_to_graph[name]

    mod = tvm.IRModule.from_expr(product(False))
    relay_viz.RelayVisualizer(mod, {}, Plotter(), relay_viz.terminal.TermVizParser()).render()
    assert "my main" in capsys.readouterr().out
