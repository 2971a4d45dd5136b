"""Tuning goes on where it ended, within a time, for several tasks, with a model of one's own; and what was tuned is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr import auto_scheduler
from tensorexpr.auto_scheduler import PreloadMeasuredStates, RecordToFile, SearchTask, SketchPolicy, TuningOptions
from tensorexpr.driver.cli import main

SMALL = {"evolutionary_search_population": 64, "evolutionary_search_num_iters": 1}


def task(n: int = 24) -> SearchTask:
    return SearchTask(func="v06_matmul", args=(n, 32, 16), target="llvm", desc=f"matmul {n}")


def tuned(log: Path, trials: int, verbose: int = 0, **options: Any) -> None:
    """Tune into a log, going on with what it holds."""
    of = task()
    policy = SketchPolicy(of, params=SMALL, seed=0, init_search_callbacks=[PreloadMeasuredStates(log)])
    of.tune(TuningOptions(trials, measure_callbacks=[RecordToFile(log)], verbose=verbose, **options), policy)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sessions") / "log.json"
    tuned(path, 5)
    return path


def test_a_second_run_measures_other_programs_and_says_what_it_loaded(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = auto_scheduler.load_records(log)
    tuned(log, 4, verbose=1)
    new = auto_scheduler.load_records(log)[len(first) :]
    assert len(new) == 4
    assert not {record.trace for record in first} & {record.trace for record in new}
    assert all("predicted" in record.policy for record in new)
    text = capsys.readouterr().out
    assert f"SearchPolicy: Loaded {len(first)} measurement records from {log} for {task().workload_key}" in text
    assert "\nBest:     " in text and "\nFailures: " in text and "\nTime:     " in text


def test_what_was_tuned_is_found_and_right(log: Path) -> None:
    of = task()
    with auto_scheduler.ApplyHistoryBest(log):
        found = auto_scheduler.best_schedule(of.compute_dag, "llvm", of.workload_key)
    assert found is not None
    a, b = (np.random.default_rng(n).standard_normal(shape, np.float32) for n, shape in enumerate([(24, 16), (16, 32)]))
    built = tvm.build(*found, "llvm")
    with auto_scheduler.ApplyHistoryBest(log):
        looked_up = tvm.build(of.compute_dag.tensors, target="llvm", schedule="auto")
    assert looked_up.get_source() == built.get_source()
    for func in (built, looked_up):
        c = np.empty((24, 32), np.float32)
        func(a, b, c)
        np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_the_report_of_a_real_log(log: Path) -> None:
    assert main(["report", str(log)]) == 0
    page = log.with_suffix(".html").read_text()
    assert "Predicted against measured" in page and page.count("<svg") >= 3


def test_a_time_budget_ends_the_search_with_something(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    tuned(path, 0, budget_s=1.5)
    records = auto_scheduler.load_records(path)
    assert 1 <= len({record.trace for record in records}) < 500
    assert auto_scheduler.load_best_record(path).verified


def test_several_tasks_share_trials_and_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, latencies = tmp_path / "log.json", tmp_path / "total_latency.tsv"
    tasks = [task(8), task(16)]
    callbacks = [auto_scheduler.PrintTableInfo(), auto_scheduler.LogEstimatedLatency(latencies)]
    made = auto_scheduler.TaskScheduler(tasks, load_log_file=path, callbacks=callbacks)
    options = TuningOptions(6, num_measures_per_round=2, measure_callbacks=[RecordToFile(path)], verbose=1)
    made.tune(options, search_policy_params=SMALL)
    records = auto_scheduler.load_records(path, repeats=True)
    assert sum(not record.is_timed_again for record in records) == made.ct == 6  # the best of each were timed again
    assert any(record.is_timed_again for record in records)
    assert len(auto_scheduler.load_records(path)) == 6
    assert {record.workload_key for record in records} == {of.workload_key for of in tasks}
    assert capsys.readouterr().out.count("[ Task Scheduler ]") == len(latencies.read_text().splitlines()) == 3
    again = auto_scheduler.TaskScheduler(tasks, load_log_file=path, callbacks=[])
    again.tune(TuningOptions(8, num_measures_per_round=2, measure_callbacks=[RecordToFile(path)], verbose=0), search_policy_params=SMALL)
    assert again.ct == 8
    assert len({(r.workload_key, r.trace) for r in auto_scheduler.load_records(path)}) == 8


class Shortest(auto_scheduler.PythonBasedModel):
    """Fewer steps are better."""

    def __init__(self) -> None:
        self.seen = 0

    def update(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        self.seen += len(results)

    def predict(self, task: Any, states: Sequence[Any]) -> list[float]:
        return [-float(len(state.trace)) for state in states]


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    of, model = task(8), Shortest()
    of.tune(TuningOptions(3, verbose=0), SketchPolicy(of, model, params=SMALL))
    assert model.seen == 3


def test_what_has_no_record_is_tuned_when_it_is_asked_for() -> None:
    of = task(8)
    with auto_scheduler.ApplyHistoryBestOrSample(None, num_measure=2):
        first = auto_scheduler.best_schedule(of.compute_dag, "llvm", of.workload_key)
        again = auto_scheduler.best_schedule(of.compute_dag, "llvm", of.workload_key)
    assert first is not None and again is not None
    assert first[0].trace == again[0].trace
