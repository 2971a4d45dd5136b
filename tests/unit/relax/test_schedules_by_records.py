"""Schedules of a graph's tensor functions by search and by records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relax
from tensorexpr.errors import DeclarationError
from tensorexpr.relax import op, transform
from tensorexpr.relax.evaluator import Evaluator
from tensorexpr.relax.transform.meta_schedule import calls_of, tunable
from tensorexpr.target import Target

from .test_simplify import graph, weights


def network() -> Any:
    return graph(lambda x: op.nn.softmax(op.matmul(op.matmul(x, weights(8, 8)), weights(8, 8))), (8, 8))


def test_records_are_found_again(tmp_path: Path) -> None:
    mod = network()
    legal = transform.LegalizeOps()(mod)
    assert sorted(calls_of(legal).values()) == [1, 2] and len(tunable(legal)) == 2
    x = np.random.default_rng(0).standard_normal((8, 8)).astype("float32")
    with Target("llvm"):
        tuned: Any = transform.MetaScheduleTuneIRMod({}, str(tmp_path), 1, op_names=["matmul"])(legal)
        assert tvm.ir.structural_equal(tuned, legal)
        with pytest.warns(UserWarning, match="no record of .*softmax"):
            made: Any = transform.MetaScheduleApplyDatabase(str(tmp_path), enable_warning=True)(legal)
    ex = relax.build(made, "llvm", relax_pipeline=None)
    assert sorted(ex.origins.values()) == ["record", "rule"]
    np.testing.assert_allclose(relax.VirtualMachine(ex)["main"](x).numpy(), Evaluator(mod)("main", x), rtol=1e-4)
    assert not tunable(made, ["matmul"])


def test_a_database_in_scope(tmp_path: Path) -> None:
    legal = transform.LegalizeOps()(network())
    with pytest.raises(DeclarationError, match="which records"):
        transform.MetaScheduleApplyDatabase()(legal)
    with tvm.meta_schedule.database.MemoryDatabase(), Target("llvm"):
        assert tvm.ir.structural_equal(transform.MetaScheduleApplyDatabase()(legal), legal)
    with pytest.raises(DeclarationError, match="at least 1"):
        transform.MetaScheduleTuneTIR(str(tmp_path), 0)


def test_a_pipeline_that_tunes(tmp_path: Path) -> None:
    mod = graph(lambda x: op.nn.relu(op.matmul(x, weights(8, 8))), (8, 8))
    run = relax.get_pipeline("static_shape_tuning", total_trials=1, target="llvm", work_dir=str(tmp_path))
    ex = relax.build(mod, "llvm", relax_pipeline=run)
    assert list(ex.origins.values()) == ["record"]
    x = np.random.default_rng(0).standard_normal((8, 8)).astype("float32")
    np.testing.assert_allclose(relax.VirtualMachine(ex)["main"](x).numpy(), Evaluator(mod)("main", x), rtol=1e-4)
