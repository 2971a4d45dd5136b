"""What tuning prints: a round and a descent on the console, the summary, and the table of many tasks."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr.auto_scheduler import PrintTableInfo, SearchTask, TaskScheduler
from tensorexpr.auto_scheduler.console import Console
from tensorexpr.auto_scheduler.summary import summary
from tensorexpr.schedule.trace import Trace
from tensorexpr.tune.evolution import Candidate
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo, MeasureResult
from tensorexpr.tune.tuner import Trial
from tests.conftest import Golden

FLOPS = 2.0e9


def trial(number: int, cost: float | None, predicted: float | None = None, round_number: int = 0) -> Trial:
    error = MeasureErrorNo.NO_ERROR if cost is not None else MeasureErrorNo.RUN_TIMEOUT
    timings = {"lower": 0.25, "time": 0.5}
    made = MeasureResult(
        (cost or FAILED_COST,), error, "" if cost else "took longer than 10 s", 1.0, 2.0, True, timings=timings, number=number
    )
    return Trial(Candidate(0, (number,)) if number else None, Trace(), made, predicted, round_number)


ROUNDS = (
    [trial(0, 0.4), trial(1, 0.02, -18.0), trial(2, 0.04, -18.5), trial(3, 0.03, -19.0), trial(4, None, -20.0)],
    [trial(5, 0.016, -0.1, 1), trial(6, 0.018, -0.3, 1), trial(7, 0.02, -0.2, 1)],
)


def played(console: Console) -> None:
    """A search of two rounds, the second of them a descent."""
    console.searching(3)
    console.sampled(2019, 0.25)
    for generation in range(1, 5):
        console.generation(generation, -17.5, -24.25, 128)
    console.evolved(5, 0.5)
    for number, batch in enumerate(ROUNDS):
        if number:
            console.descending(len(batch), 0.02)
        console.measuring(len(batch))
        for one in batch:
            console.built(one.result.number, MeasureErrorNo.NO_ERROR)
        for one in batch:
            console.ran(one.result.error_no)
            console.measured(one)
        console.batch_measured(batch, 1.5)
        console.trained(0.125)
    console.finished("")


@pytest.mark.parametrize("verbose", [1, 2])
def test_a_search_on_the_console(verbose: int, golden: Golden) -> None:
    stream = io.StringIO()
    console = Console(verbose, FLOPS, stream=stream)
    console.describe = lambda trace: "<the program>"
    played(console)
    trials = [one for batch in ROUNDS for one in batch]
    walk = SimpleNamespace(tried=3, moves=1, start_cost=0.02)
    tuner: Any = SimpleNamespace(
        trials=trials, best=lambda: trials[5], descent=walk, preloaded=(), seconds={"search": 0.5, "measure": 3.0, "train": 0.25}
    )
    console.summary(summary(tuner, FLOPS))
    golden(f"search/console_{verbose}.txt", stream.getvalue())


def test_the_table_of_many_tasks(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    target = "llvm -mcpu=x86-64-v3 -num-cores=2"
    tasks = [
        SearchTask(func="v06_matmul", args=(n, n, n), target=target, desc=desc) for n, desc in ((64, "a" * 70), (8, ""), (16, "small"))
    ]
    made = TaskScheduler(tasks, callbacks=[])
    made.best_costs[:2] = [0.00125, 2.5e-6]
    made.task_trials, made.ct, made.tic = [64, 8, 0], 72, 1000.0
    monkeypatch.setattr("tensorexpr.auto_scheduler.task_callbacks.time.time", lambda: 1012.4)
    first = PrintTableInfo().text(made, 2)
    made.best_costs[2], made.task_trials[2], made.ct = 1e-5, 8, 80
    made.cur_score = float(sum(made.best_costs))
    golden("search/task_table.txt", f"{first}\n{PrintTableInfo().text(made, 0)}\n")
