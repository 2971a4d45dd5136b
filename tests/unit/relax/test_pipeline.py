"""The page of passes: phases in order, their specs, and where a build stops."""

from __future__ import annotations

from typing import Any

import pytest

from tensorexpr import relax
from tensorexpr.errors import DeclarationError, LoweringError
from tensorexpr.relax import op
from tensorexpr.relax.transform import pipeline
from tensorexpr.relax.transform.passes import graph_pass


def graph() -> Any:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 8), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.add(x, op.exp(relax.const(1.0))))
            out = bb.emit_output(op.nn.relu(y))
        bb.emit_func_output(out)
    return bb.get()


def test_each_phase_has_a_name_and_a_spec() -> None:
    assert list(pipeline.PHASES) == [0, 1, 2, 3, 4, 5, 6]
    assert all(phase.name and phase.spec for phase in pipeline.PHASES.values())


def test_a_build_stops_after_a_phase() -> None:
    folded = relax.build(graph(), upto=0)
    assert "R.add" in folded.script() and "R.exp" not in folded.script()
    fused = relax.build(graph(), upto=3)
    assert "R.call_tir" in fused.script() and "R.add" not in fused.script()
    lowered = relax.build(graph(), upto=4)
    origins = {f.attrs.get("schedule.origin") for var, f in lowered.functions_items() if var.name_hint != "main"}
    assert origins == {"rule"}


def test_a_phase_that_there_is_not() -> None:
    with pytest.raises(DeclarationError, match="the phases are 0, 1, 2"):
        relax.build(graph(), upto=9)


def test_a_phase_whose_spec_does_not_hold_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = pipeline.Phase("fuse", "everything is fused", (graph_pass("Nothing", lambda mod: mod),), pipeline.PHASES[3].violations)
    monkeypatch.setattr(pipeline, "PHASES", {**pipeline.PHASES, 3: broken})
    with pytest.raises(LoweringError, match=r"after phase 3 \(fuse\) everything is fused; but main calls add"):
        relax.build(graph(), upto=3)
