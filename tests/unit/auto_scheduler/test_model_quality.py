"""How good a model is, by a log; and what the summary says of predictions and of the descent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import auto_scheduler
from tensorexpr.auto_scheduler import (
    MeasureInput,
    MeasureResult,
    PythonBasedModel,
    RandomModel,
    SearchTask,
    SketchPolicy,
    XGBModel,
    evaluate_cost_model,
)
from tensorexpr.auto_scheduler.cost_model import features_of
from tensorexpr.auto_scheduler.loop_state import State
from tensorexpr.auto_scheduler.summary import model_line, summary
from tensorexpr.errors import TuningError
from tensorexpr.schedule.trace import Trace
from tensorexpr.tune.cost_model import PriorModel, quality
from tensorexpr.tune.evolution import Candidate
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo
from tensorexpr.tune.population import sample
from tensorexpr.tune.tuner import Trial

TARGET = "llvm -mcpu=x86-64-v3 -num-cores=2"
TASK = SearchTask(func="v06_matmul", args=(64, 64, 64), target=TARGET)


def result(cost: float | None) -> MeasureResult:
    error = MeasureErrorNo.NO_ERROR if cost is not None else MeasureErrorNo.RUNTIME_DEVICE
    return MeasureResult((cost or FAILED_COST,), error, "", 0.1, 1.0, cost is not None)


def programs(count: int) -> list[Trace]:
    sketch = SketchPolicy(TASK, params={"rules": "ansor"}).generate_sketches()[0]
    rows = sample(sketch, 4 * count, np.random.default_rng(0))
    return list({str(row): sketch.trace_of(row) for row in rows}.values())[:count]


def logged(path: Path, task: SearchTask, traces: Sequence[Trace], costs: Sequence[float | None]) -> Path:
    auto_scheduler.save_records(path, [MeasureInput(task, trace) for trace in traces], [result(cost) for cost in costs])
    return path


class Knows(PythonBasedModel):
    """Says what it was told, times a sign."""

    def __init__(self, costs: dict[str, float], sign: float = 1.0) -> None:
        self.costs, self.sign = costs, sign

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn nothing."""

    def predict(self, task: Any, states: Sequence[State]) -> Sequence[float]:
        return [self.sign / self.costs[str(state.trace.to_json())] for state in states]


def test_a_users_model_is_judged_by_each_task_of_a_log(tmp_path: Path) -> None:
    traces = programs(12)
    costs = [0.001 * (n + 1) for n in range(12)]
    log = logged(tmp_path / "log.json", TASK, [*traces, traces[0]], [*costs, None])
    known = {str(trace.to_json()): cost for trace, cost in zip(traces, costs, strict=True)}
    (found,) = evaluate_cost_model(Knows(known), log).items()
    assert found[0] == TASK.workload_key
    assert found[1].correlation == pytest.approx(1.0)
    assert (found[1].count, found[1].top, found[1].recall, found[1].peak) == (12, 3, 1.0, 1.0)
    worst = evaluate_cost_model(Knows(known, -1.0), log)[TASK.workload_key]
    assert worst.correlation == pytest.approx(-1.0) and worst.recall == 0 and worst.peak == pytest.approx(0.1)
    assert evaluate_cost_model(Knows(known), log, top=1)[TASK.workload_key].top == 1


def test_models_of_features_are_judged_too(tmp_path: Path) -> None:
    traces = programs(16)
    _, priors = features_of(TASK.compute_dag, TASK.target, traces)
    costs = [float(np.exp(-prior)) * 1e-9 for prior in priors]
    log = logged(tmp_path / "log.json", TASK, traces, costs)
    analytic = evaluate_cost_model(PriorModel(), log)[TASK.workload_key]
    assert analytic.correlation == pytest.approx(1.0) and analytic.peak == 1.0
    untrained = evaluate_cost_model(XGBModel(), log)[TASK.workload_key]
    assert untrained.correlation == pytest.approx(analytic.correlation)
    assert evaluate_cost_model(RandomModel(), log)[TASK.workload_key].correlation < 1.0


def test_too_little_to_judge_by_and_models_that_say_too_little_are_refused(tmp_path: Path) -> None:
    log = logged(tmp_path / "log.json", TASK, programs(2), [0.1, 0.2])
    with pytest.raises(TuningError, match="3 programs of a task at least that ran"):
        evaluate_cost_model(RandomModel(), log)

    class Short(Knows):
        def predict(self, task: Any, states: Sequence[State]) -> Sequence[float]:
            return [1.0]

    log = logged(tmp_path / "more.json", TASK, programs(4), [0.1, 0.2, 0.3, 0.4])
    with pytest.raises(TuningError, match=r"Short.predict gave \(1,\) numbers for 4 programs"):
        evaluate_cost_model(Short({}), log)


def test_what_is_measured_again_counts_once_and_as_the_last_said(tmp_path: Path) -> None:
    traces = programs(4)
    log = logged(tmp_path / "log.json", TASK, [*traces, traces[0]], [0.4, 0.3, 0.2, 0.1, 0.05])
    known = {str(trace.to_json()): cost for trace, cost in zip(traces, [0.05, 0.3, 0.2, 0.1], strict=True)}
    found = evaluate_cost_model(Knows(known), log)[TASK.workload_key]
    assert found.count == 4 and found.correlation == pytest.approx(1.0)


def test_quality_in_words() -> None:
    text = str(quality(np.array([3.0, 2.0, 1.0, 0.0]), np.array([10.0, 5.0, 40.0, 1.0]), 2))
    assert text == "rank correlation 0.40, recall of the best 2 0.50, a-peak@2 0.25, regret of the first choice 300%, over 4 programs"


def trial(predicted: float | None, cost: float, number: int = 0) -> Trial:
    return Trial(Candidate(0, (1,)), Trace(), result(cost), predicted, number)


def test_the_summary_tells_the_models_quality_by_round() -> None:
    first = [trial(predicted, cost) for predicted, cost in ((1.0, 0.1), (0.5, 0.2), (0.1, 0.4))]
    second = [trial(predicted, cost, 1) for predicted, cost in ((-9.0, 0.1), (-8.0, 0.2), (-7.0, 0.4))]
    expected = "Model:    by round: rank correlation 1.00, -1.00; recall of the best quarter 1.00, 0.00; a-peak 1.00, 0.25"
    assert model_line([*first, *second, trial(1.0, 0.5, 2), trial(None, 0.5, 0)]) == expected
    assert model_line(first[:2]) == ""
    many = [trial(float(n), 1.0 / (n + 1), number) for number in range(12) for n in range(3)]
    assert model_line(many).startswith("Model:    by round (the last 8): rank correlation 1.00, ")


def test_the_summary_tells_what_the_descent_did() -> None:
    def text(tried: int, moves: int) -> str:
        walk = SimpleNamespace(tried=tried, moves=moves, start_cost=0.25)
        made: Any = SimpleNamespace(trials=[], seconds={}, preloaded=(), best=lambda: None, descent=walk)
        return summary(made, -1)

    assert "Descent:  9 neighbours of the best measured, 2 were faster, from 250 ms\n" in text(9, 2)
    assert "Descent:  9 neighbours of the best measured, none was faster\n" in text(9, 0)
    assert "Descent" not in text(0, 0)
