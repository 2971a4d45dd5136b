"""XGBModel and users' models; going on with an old log; options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import auto_scheduler
from tensorexpr.auto_scheduler import (
    LocalBuilder,
    LocalRunner,
    MeasureInput,
    PreloadMeasuredStates,
    SearchTask,
    SketchPolicy,
    TuningOptions,
    XGBModel,
)
from tensorexpr.auto_scheduler.cost_model import UserModel, features_of
from tensorexpr.auto_scheduler.preload import CandidateIndex, recall
from tensorexpr.errors import TuningError
from tensorexpr.schedule.trace import Trace
from tensorexpr.tune.cost_model import rank_correlation
from tensorexpr.tune.evolution import Candidate
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo, MeasureResult
from tensorexpr.tune.population import sample

GOLDEN = Path(__file__).parents[2] / "golden" / "records" / "v06.json"
TARGET = "llvm -mcpu=x86-64-v3 -num-cores=2"


def task(*args: int) -> SearchTask:
    return SearchTask(func="v06_matmul", args=args or (64, 64, 64), target=TARGET)


def programs(of: SearchTask, count: int, seed: int = 0) -> list[Trace]:
    sketch = SketchPolicy(of).generate_sketches()[0]
    rows = sample(sketch, count, np.random.default_rng(seed))
    return [sketch.trace_of(row) for row in rows]


def result(cost: float | None) -> MeasureResult:
    error = MeasureErrorNo.NO_ERROR if cost is not None else MeasureErrorNo.RUNTIME_DEVICE
    return MeasureResult((cost or FAILED_COST,), error, "", 0.1, 1.0, cost is not None)


def made_up_costs(of: SearchTask, traces: Sequence[Trace]) -> list[float]:
    """Costs that the analytic model gets the wrong way round."""
    _, priors = features_of(of.compute_dag, of.target, traces)
    return [float(cost) for cost in 1e-4 * np.exp(priors - priors.max()) + 1e-6]


def test_an_untrained_model_ranks_as_the_analytic_one() -> None:
    traces = programs(task(), 12)
    _, priors = features_of(task().compute_dag, task().target, traces)
    assert rank_correlation(XGBModel().predict(task(), traces), priors) == pytest.approx(1.0)


def test_a_model_learns_from_inputs_and_results_of_several_tasks() -> None:
    first, second = task(), task(32, 64, 128)
    model = XGBModel(seed=1)
    for of in (first, second):
        traces = list(dict.fromkeys(programs(of, 40)))
        model.update([MeasureInput(of, trace) for trace in traces], [result(cost) for cost in made_up_costs(of, traces)])
    for of in (first, second):
        fresh = programs(of, 24, seed=5)
        speeds = 1.0 / np.array(made_up_costs(of, fresh))
        assert rank_correlation(model.predict(of, fresh), speeds) > 0.3


def test_tasks_of_different_sizes_do_not_blur_the_analytic_model() -> None:
    """Priors of a task a thousand times as large lie far below; the model must see each task's programs against each other."""
    small, large = task(32, 32, 16), task(512, 512, 256)
    model = XGBModel()
    for of in (small, large):
        traces = list(dict.fromkeys(programs(of, 12)))[:3]
        _, priors = features_of(of.compute_dag, of.target, traces)
        model.update([MeasureInput(of, trace) for trace in traces], [result(float(np.exp(-prior)) * 1e-9) for prior in priors])
    fresh = programs(small, 12, seed=4)
    _, priors = features_of(small.compute_dag, small.target, fresh)
    assert np.ptp(np.log(model.predict(small, fresh))) == pytest.approx(np.ptp(priors), rel=0.1)


def test_a_model_that_is_told_nothing_knows_nothing() -> None:
    of = task()
    traces = programs(of, 12)
    model = XGBModel()
    model.update([], [])
    assert list(model.predict(of, traces)) == list(XGBModel().predict(of, traces))


def test_a_saved_model_predicts_the_same(tmp_path: Path) -> None:
    of = task()
    traces = programs(of, 24)
    model = XGBModel()
    model.update([MeasureInput(of, trace) for trace in traces], [result(cost) for cost in made_up_costs(of, traces)])
    model.save(tmp_path / "model.json")
    again = XGBModel(model_file=tmp_path / "model.json")
    predictions = [made.predict(of, traces) for made in (model, again)]
    assert rank_correlation(*predictions) > 0.99


def test_a_model_learns_from_a_log_what_is_registered_here(tmp_path: Path) -> None:
    model = XGBModel()
    log = tmp_path / "log.json"
    of = task()
    traces = programs(of, 10)
    auto_scheduler.save_records(log, [MeasureInput(of, trace) for trace in traces], [result(cost) for cost in made_up_costs(of, traces)])
    log.write_text(log.read_text() + log.read_text().replace("v06_matmul", "unregistered"))
    assert model.update_from_file(log) == 10
    assert model.update_from_file(log, n_lines=4) == 4
    assert XGBModel().update_from_file(GOLDEN) > 10


def test_failures_only_teach_nothing_and_break_nothing() -> None:
    of = task()
    traces = programs(of, 4)
    model = XGBModel()
    model.update([MeasureInput(of, trace) for trace in traces], [result(None)] * 4)
    assert np.isfinite(model.predict(of, traces)).all()
    assert len(model.predict(of, [])) == 0


def test_adaptive_training_waits_for_more_samples() -> None:
    of, model = task(), XGBModel(adaptive_training=True)
    traces = programs(of, 31)
    costs = made_up_costs(of, traces)
    model.update([MeasureInput(of, trace) for trace in traces[:30]], [result(cost) for cost in costs[:30]])
    before = model.predict(of, traces)
    model.update([MeasureInput(of, traces[30])], [result(costs[30] * 1e-3)])
    assert np.array_equal(model.predict(of, traces), before)


class Users(auto_scheduler.PythonBasedModel):
    """Gives what it is told to give."""

    def __init__(self, scores: Any) -> None:
        self.scores = scores
        self.seen: list[MeasureInput] = []

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        self.seen += inputs

    def predict(self, task: Any, states: Sequence[Trace]) -> Any:
        return self.scores


def test_a_users_model_gives_one_number_a_program() -> None:
    assert list(UserModel(Users([1, float("nan")]), task()).score([Trace(), Trace()])) == [1.0, -np.inf]
    with pytest.raises(TuningError, match=r"Users.predict gave \(1,\) numbers for 2 programs"):
        UserModel(Users([1.0]), task()).score([Trace(), Trace()])


def test_records_are_found_again_among_the_candidates_of_the_sketches(tmp_path: Path) -> None:
    log, of = tmp_path / "log.json", task()
    sketches = SketchPolicy(of).generate_sketches()
    rng = np.random.default_rng(3)
    chosen = [Candidate(n, tuple(map(int, sample(sketch, 1, rng)[0]))) for n, sketch in enumerate(sketches) for _ in range(3)]
    inputs = [MeasureInput(of, sketches[c.sketch].trace_of(c.row)) for c in chosen]
    results = [result(0.001 * (n + 1)) for n in range(len(chosen))]
    auto_scheduler.save_records(log, [*inputs, inputs[0], MeasureInput(of, Trace())], [*results, result(None), result(0.5)])
    preload = PreloadMeasuredStates(log)
    records = preload.records(of)
    assert len(records) == len(chosen) + 2
    found = recall(records, CandidateIndex(sketches).find)
    costs = {sketches[c.sketch].trace_of(c.row): cost for c, cost in found.candidates}
    assert costs[inputs[0].trace] == float("inf")
    assert {trace: cost for trace, cost in costs.items() if cost < 1} == {
        made.trace: r.median for made, r in zip(inputs, results, strict=True) if made.trace != inputs[0].trace
    }
    assert found.baseline == 0.5
    assert preload.message(of, 5) == f"SearchPolicy: Loaded 5 measurement records from {log} for {of.workload_key}"


def test_only_records_of_the_task_are_preloaded(tmp_path: Path) -> None:
    log, other = tmp_path / "log.json", task(8, 8, 8)
    assert PreloadMeasuredStates(log).records(task()) == []
    auto_scheduler.save_records(log, [MeasureInput(other, Trace())], [result(0.5)])
    preload = PreloadMeasuredStates(log)
    assert preload.records(task()) == []
    a = auto_scheduler.ComputeDAG(other.workload_key).tensors
    same_name = SearchTask(compute_dag=a, workload_key=task().workload_key, target=TARGET)
    auto_scheduler.save_records(log, [MeasureInput(same_name, Trace())], [result(0.5)])
    assert preload.records(task()) == []
    assert preload.message(task(), 0) == f"SearchPolicy: No measurement records found in {log} for {task().workload_key}"


def test_programs_that_no_sketch_makes_are_left_out() -> None:
    records = [record for record in auto_scheduler.load_records(GOLDEN) if record.workload_key.startswith('["v06_matmul", ')]
    of = SearchTask(workload_key=records[0].workload_key, target=TARGET)
    assert recall(records, CandidateIndex(SketchPolicy(of).generate_sketches()).find).candidates == ()


def test_other_callbacks_are_refused() -> None:
    with pytest.raises(TuningError, match=r"init_search_callbacks takes .*PreloadMeasuredStates"):
        SketchPolicy(task(), init_search_callbacks=["log.json"])


def test_budgets_and_trials() -> None:
    assert TuningOptions(100).most_trials == 100
    assert TuningOptions(budget_s=3).most_trials > 1 << 20
    assert TuningOptions(0).most_trials == 0
    assert TuningOptions(budget_s=3).round_size == 16
    assert TuningOptions(early_stopping=-1).early_stopping is None


@pytest.mark.parametrize("budget", [0, -1.0, "60", float("inf"), float("nan"), True])
def test_budgets_are_seconds(budget: Any) -> None:
    with pytest.raises(TuningError, match=r"budget_s is .*; it takes a positive number of seconds"):
        TuningOptions(budget_s=budget)


def test_early_stopping_is_a_number_of_trials() -> None:
    with pytest.raises(TuningError, match=r"early_stopping is 0; it takes an integer of at least 1"):
        TuningOptions(early_stopping=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LocalBuilder(build_func="ndk"), "build_func is 'ndk'; it takes "),
        (lambda: LocalRunner(device=-1), "device is -1; it takes the number of a GPU, and 0 for a CPU"),
        (lambda: LocalRunner(cooldown_interval=-1.0), "cooldown_interval is -1.0; it takes seconds from 0"),
    ],
)
def test_what_builders_and_runners_do_not_do(make: Callable[[], object], message: str) -> None:
    with pytest.raises(TuningError) as caught:
        make()
    assert message in str(caught.value)
