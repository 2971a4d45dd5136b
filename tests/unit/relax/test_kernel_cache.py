"""Kernels of a graph that an earlier build made: the same code, the same packed weights, and another key for what differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorexpr import relax
from tensorexpr.relax import kernel_cache, op
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.kernels import kernels_of


def module(columns: int) -> Any:
    rng = np.random.default_rng(0)
    x = relax.Var("x", relax.TensorStructInfo((64, 128), "float32"))
    w = relax.const(rng.uniform(-1, 1, (128, columns)).astype("float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(op.nn.relu(bb.emit(op.matmul(x, w))))
        bb.emit_func_output(out)
    return bb.get()


def test_kernels_are_found_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TENSOREXPR_CACHE", "1")
    monkeypatch.setenv("TENSOREXPR_VERIFY", "")  # programs that are checked after each pass are made anew
    monkeypatch.setenv("TENSOREXPR_CACHE_DIR", str(tmp_path))
    scheduled: list[int] = []

    def counted(*args: Any) -> Any:
        scheduled.append(1)
        return kernels_of(*args)

    monkeypatch.setattr(kernel_cache, "kernels_of", counted)
    x = np.random.default_rng(1).uniform(-1, 1, (64, 128)).astype("float32")
    for columns, builds in ((256, 1), (256, 1), (192, 2)):
        built = relax.build(module(columns))
        found = relax.VirtualMachine(built)["main"](x).numpy()
        np.testing.assert_allclose(found, Evaluator(module(columns))("main", x), rtol=1e-4, atol=1e-4)
        assert built.origins == {"fused_matmul_relu": "rule"} and len(scheduled) == builds
