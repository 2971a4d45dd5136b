"""`AddToDatabase`: every measured program becomes a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..builder.builder import BuilderResult
from ..database.records import FAILED_SECONDS, TuningRecord
from ..runner.runner import RunnerResult
from ..search_strategy.search_strategy import MeasureCandidate
from .measure_callback import PyMeasureCallback

if TYPE_CHECKING:
    from ..task_scheduler.task_scheduler import TaskScheduler


class AddToDatabase(PyMeasureCallback, kind="add-to-database"):
    """Adds a record for each program to the database, if there is one; one that failed with a time that says so."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Add the records of a round."""
        database, context = task_scheduler.database_, task_scheduler.tasks_[task_id].ctx
        if database is None or context.mod is None:
            return
        workload = database.commit_workload(context.mod)
        for candidate, result in zip(measure_candidates, runner_results, strict=True):
            if candidate.sch.trace is not None:
                seconds = list(result.run_secs or ()) if result.is_success else [FAILED_SECONDS]
                database.commit_tuning_record(TuningRecord(candidate.sch.trace, workload, seconds, context.target, candidate.args_info))
