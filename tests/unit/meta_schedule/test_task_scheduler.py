"""Task schedulers: who is next, who is told, and how a search ends."""

from __future__ import annotations

import logging
import math
from pathlib import Path
from typing import Any

import pytest

from tensorexpr import meta_schedule as ms
from tensorexpr.errors import TuningError
from tensorexpr.meta_schedule.database import MemoryDatabase
from tensorexpr.meta_schedule.measure_callback import AddToDatabase, MeasureCallback, PyMeasureCallback, RemoveBuildArtifact
from tensorexpr.meta_schedule.task_scheduler import GradientBased, PyTaskScheduler, RoundRobin, TaskRecord, TaskScheduler
from tensorexpr.meta_schedule.task_scheduler.task_record import TaskRow, table
from tests.meta_schedule_programs import NoBuild, Pretended, matmul, scaled, tiles, tuned


def tasks(count: int) -> list[ms.TuneContext]:
    return [
        ms.TuneContext(matmul(), target="llvm", space_generator=tiles, search_strategy="replay-trace", task_name=f"t{n}", rand_state=n + 1)
        for n in range(count)
    ]


class Order(PyMeasureCallback):
    """Remembers which task was worked on."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def apply(self, task_scheduler: TaskScheduler, task_id: int, *args: Any) -> None:
        self.seen.append(task_id)


def search(scheduler: TaskScheduler, count: int, trials: int, **options: Any) -> Order:
    order = Order()
    given = {"max_trials_per_task": trials, "num_trials_per_iter": 2, "builder": NoBuild(), "runner": Pretended(), **options}
    scheduler.tune(tasks(count), [1.0] * count, trials, measure_callbacks=[order], database=MemoryDatabase(), **given)
    return order


def test_round_robin_works_in_turn() -> None:
    assert search(RoundRobin(), 3, 12).seen == [0, 1, 2, 0, 1, 2]
    assert search(RoundRobin(), 2, 8, max_trials_per_task=2).seen == [0, 1]


def test_the_trials_of_all_are_never_exceeded() -> None:
    scheduler = RoundRobin()
    search(scheduler, 2, 5)
    assert sum(len(record.latency_ms) for record in scheduler.tasks_) == 5
    assert scheduler.remaining_tasks_ == 0 and all(record.is_terminated for record in scheduler.tasks_)


def test_the_gradient_goes_where_most_is_won() -> None:
    scheduler = GradientBased(seed=1)
    scheduler.tasks_ = [TaskRecord(ctx, weight) for ctx, weight in zip(tasks(3), (1.0, 1.0, 1.0), strict=True)]
    assert scheduler.next_task_id() == 0  # each is worked on once
    scheduler._history = {0: [4.0, 4.0], 1: [9.0, 8.0], 2: [8.0, 8.0]}
    # lately: (9 - 8) / 1; in proportion: 8 / 2
    assert scheduler._gain(scheduler.tasks_[1], [9.0, 8.0]) == pytest.approx(0.2 * 1 + 0.8 * 4)
    assert scheduler.next_task_id() == 1
    scheduler.tasks_[1].is_terminated = True
    assert scheduler.next_task_id() == 2
    scheduler.tasks_[0].task_weight = 10.0
    assert scheduler.next_task_id() == 0
    scheduler._history[2] = [math.inf]
    assert scheduler.next_task_id() == 2  # nothing ran there yet


def test_the_progress_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        search(GradientBased(), 1, 2, builder=NoBuild(failing=2))
    text = caplog.text
    for line in (
        'Initializing Task #0: "t0"',
        'TaskScheduler picks Task #0: "t0"',
        "Sending 2 sample(s) to builder",
        "Sending 1 sample(s) to runner",
        "[Task #0: t0] Trial #1: GFLOPs: ",
        "[Task #0: t0] Trial #2: Error in building:\nno luck",
        '[Updated] Task #0: "t0"',
        "Task #0 has finished. Remaining task(s): 0",
        "Total trials: 2",
    ):
        assert line in text


def test_the_table_has_known_columns() -> None:
    text = table([TaskRow("main", 2e9, 2.0, 1e-3, 5, True), TaskRow("other", 1e9, 1.0, math.inf, 0, False)])
    assert text.splitlines() == [
        "ID |  Name |  FLOP | Weight | Speed (GFLOPS) | Latency (us) | Weighted Latency (us) | Trials | Done",
        "-" * 100,
        " 0 |  main | 2e+09 |      2 |      2000.0000 |    1000.0000 |             2000.0000 |      5 |    Y",
        " 1 | other | 1e+09 |      1 |            N/A |          N/A |                   N/A |      0 |     ",
        "-" * 100,
        "Total trials: 5",
        "Total latency (us): 2000",
    ]


def test_failed_programs_become_records_that_say_so(tmp_path: Path) -> None:
    database = MemoryDatabase()
    found = tuned(matmul(), tiles, 4, str(tmp_path), builder=NoBuild(failing=2), database=database, cost_model="random")
    assert found is database
    assert [record.run_secs == [1e10] for record in database.get_all_tuning_records()] == [False, True, False, True]
    assert len(database.get_top_k(database.commit_workload(ms.tune_context.normalize_mod(matmul()["main"])), 9)) == 2


@ms.derived_object
class Second(PyTaskScheduler):
    """Works on the second task alone."""

    def next_task_id(self) -> int:
        outer = self._outer()
        return -1 if outer.tasks_[1].is_terminated else 1

    def join_running_task(self, task_id: int) -> list[Any]:
        joined.append(task_id)
        return super().join_running_task(task_id)


joined: list[int] = []


def test_users_may_choose_tasks() -> None:
    assert search(Second(), 2, 4).seen == [1, 1] == joined


def test_the_default_callbacks_are_three(tmp_path: Path) -> None:
    names = [type(callback).__name__ for callback in MeasureCallback.create("default")]
    assert names == ["AddToDatabase", "RemoveBuildArtifact", "UpdateCostModel"]
    path = tmp_path / "folder/program.bin"
    path.parent.mkdir()
    path.write_text("")
    result = ms.builder.BuilderResult(str(path))
    RemoveBuildArtifact().apply(RoundRobin(), 0, [], [result], [])
    assert not path.parent.exists()
    scheduler = RoundRobin()
    scheduler.tasks_ = [TaskRecord(task) for task in tasks(1)]
    AddToDatabase().apply(scheduler, 0, [], [], [])  # there is no database


def test_what_is_refused() -> None:
    with pytest.raises(TuningError, match="0 tasks and 0 weights"):
        RoundRobin().tune([], [], 1, 1, 1, NoBuild(), Pretended())
    with pytest.raises(TuningError, match="1 tasks and 2 weights"):
        ms.tune_tasks(tasks=tasks(1), task_weights=[1.0, 2.0], work_dir=".", max_trials_global=1)
    with pytest.raises(TuningError, match="no task scheduler is called 'fair'"):
        TaskScheduler.create("fair")
    with pytest.raises(TuningError, match="no list of measure callbacks is called 'none'; known: default"):
        MeasureCallback.create("none")
    assert scaled()["main"] is not None
