"""What is done with every round's results: the protocol of callbacks, and those that a search has by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..builder.builder import BuilderResult
from ..database.records import FAILED_SECONDS, TuningRecord
from ..runner.runner import RunnerResult
from ..tune_context import MeasureCandidate
from ..utils import Extensible, remove_build_dir

if TYPE_CHECKING:
    from ..task_scheduler.task_scheduler import TaskScheduler


class MeasureCallback(Extensible, what="list of measure callbacks", default="default"):
    """Is called after each round, once its programs were measured."""

    CallbackListType: ClassVar[Any] = "MeasureCallback | list[Any] | str"

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Look at a round's results.

        Args:
            task_scheduler: whose `database_`, `cost_model_` and `tasks_` may be used.
            task_id: the task.
            measure_candidates: the programs.
            builder_results: what the builder made of each.
            runner_results: how each did.
        """
        raise NotImplementedError


class PyMeasureCallback(MeasureCallback):
    """Base of measure callbacks that users write."""


create = MeasureCallback.create


class AddToDatabase(PyMeasureCallback):
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


class RemoveBuildArtifact(PyMeasureCallback):
    """Removes what the builder made, and its folder if nothing else is in it."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Remove the files of a round."""
        for result in builder_results:
            if result.artifact_path is not None:
                remove_build_dir(result.artifact_path)


class UpdateCostModel(PyMeasureCallback):
    """Tells the cost model, if there is one, how programs did; those that weren't built say nothing about speed."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Let the model learn from a round."""
        model = task_scheduler.cost_model_
        if model is None:
            return
        built = [n for n, result in enumerate(builder_results) if result.error_msg is None]
        context = task_scheduler.tasks_[task_id].ctx
        model.update(context, [measure_candidates[n] for n in built], [runner_results[n] for n in built])


MeasureCallback.kinds["default"] = lambda: [AddToDatabase(), RemoveBuildArtifact(), UpdateCostModel()]
