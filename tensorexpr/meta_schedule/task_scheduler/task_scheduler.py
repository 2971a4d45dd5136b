"""The protocol of task schedulers, and what all do alike: rounds of proposing, building, running, and telling everyone."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar

from ...errors import TuningError
from ...tir.analysis import estimate_tir_flops
from ..arg_info import entry_func
from ..builder.builder import Builder, BuilderInput, BuilderResult
from ..cost_model.cost_model import CostModel
from ..database.database import Database
from ..measure_callback.measure_callback import MeasureCallback
from ..origin import space_of
from ..profiler import Profiler
from ..runner.runner import Runner, RunnerFuture, RunnerInput, RunnerResult
from ..tune_context import TuneContext
from ..utils import Extensible
from .task_record import TaskRecord, TaskRow, gflops, table

logger = logging.getLogger(__name__)
_SHOWN_ERROR = 2000


def say(message: str) -> None:
    """Log progress; where nobody listens to INFO it is printed, as a search without a word would be taken to hang."""
    if logger.isEnabledFor(logging.INFO):
        logger.info("%s", message)
    else:
        print(message, flush=True)


class TaskScheduler(Extensible, what="task scheduler", default="gradient"):
    """Shares trials among tasks. Subclasses choose the next task.

    Within `tune` these are there: `tasks_`, `database_`, `cost_model_`, `measure_callbacks_`, `remaining_tasks_`.
    """

    TaskSchedulerType: ClassVar[Any] = "TaskScheduler | str"

    tasks_: list[TaskRecord]
    database_: Database | None = None
    cost_model_: CostModel | None = None
    measure_callbacks_: list[MeasureCallback]
    remaining_tasks_: int = 0

    def next_task_id(self) -> int:
        """The number of the next task to work on; -1 if all are done."""
        raise NotImplementedError

    def tune(
        self,
        tasks: Sequence[TuneContext],
        task_weights: Sequence[float],
        max_trials_global: int,
        max_trials_per_task: int,
        num_trials_per_iter: int,
        builder: Builder,
        runner: Runner,
        measure_callbacks: Sequence[MeasureCallback] = (),
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Search all tasks until the trials are used up, or nothing new is found.

        Args:
            tasks: the tasks.
            task_weights: how much the time of each counts.
            max_trials_global: programs to measure.
            max_trials_per_task: programs of each task.
            num_trials_per_iter: programs of a round.
            builder, runner: build and run them.
            measure_callbacks: are told of each round.
            database: holds records.
            cost_model: predicts.

        Raises:
            TuningError: without tasks, or with other numbers of weights than of tasks.
        """
        if not tasks or len(tasks) != len(task_weights):
            raise TuningError(f"there are {len(tasks)} tasks and {len(task_weights)} weights; each of at least one task has a weight")
        self.tasks_ = [TaskRecord(ctx, float(w), _flop(ctx)) for ctx, w in zip(tasks, task_weights, strict=True)]
        self.remaining_tasks_ = len(self.tasks_)
        self.database_, self.cost_model_, self.measure_callbacks_ = database, cost_model, list(measure_callbacks)
        self._builder, self._runner = builder, runner
        try:
            for number in range(len(self.tasks_)):
                self._begin(number, min(max_trials_per_task, max_trials_global), num_trials_per_iter)
            self._rounds(max_trials_global)
        finally:
            for record in self.tasks_:
                # after an error: no search may stay under way
                if not record.is_terminated and record.ctx.search_strategy is not None:
                    record.ctx.post_tuning()

    def _begin(self, task_id: int, trials: int, per_round: int) -> None:
        """Make a task's design spaces, while workers start."""
        ctx = self.tasks_[task_id].ctx
        say(f'Initializing Task #{task_id}: "{ctx.task_name}"')
        if ctx.mod is None:
            raise TuningError(f"task {ctx.task_name!r} has no program")
        self._builder.prepare(ctx.target)
        # schedulers pick the first task first; the others are prepared when they are picked
        if task_id == 0:
            self._runner.prepare(ctx.mod, ctx.target)
        with Profiler.timeit("GenerateDesignSpace"):
            spaces = ctx.generate_design_space()
        logger.debug("task %s: %d design spaces", ctx.task_name, len(spaces))
        ctx.pre_tuning(trials, per_round, spaces, self.database_, self.cost_model_)

    def _rounds(self, max_trials: int) -> None:
        used = 0
        while used < max_trials and self.remaining_tasks_:
            task_id = self.next_task_id()
            if task_id < 0:
                break
            record = self.tasks_[task_id]
            say(f'TaskScheduler picks Task #{task_id}: "{record.ctx.task_name}"')
            if record.ctx.mod is not None:
                self._runner.prepare(record.ctx.mod, record.ctx.target)
            with Profiler.timeit("GenerateMeasureCandidates"):
                candidates = record.ctx.generate_measure_candidates()
            if candidates is None:
                self.terminate_task(task_id)
                continue
            if not candidates:  # nothing new this time; a strategy gives None when it finds nothing again and again
                continue
            # a strategy counts the trials of its own task, not those of all
            record.measure_candidates = list(candidates)[: max_trials - used]
            used += len(record.measure_candidates)
            self._send(record)
            self.join_running_task(task_id)
            self.print_tuning_statistics()
        for task_id, record in enumerate(self.tasks_):
            if not record.is_terminated:
                self.terminate_task(task_id)
        self.print_tuning_statistics()
        for record in self.tasks_:
            if record.best_space:
                say(f'Best of "{record.ctx.task_name}": {record.best_space}')

    def _send(self, record: TaskRecord) -> None:
        """Build and run a round's programs."""
        candidates, ctx = record.measure_candidates or [], record.ctx
        say(f"Sending {len(candidates)} sample(s) to builder")
        with Profiler.timeit("SendToBuilder"):
            built = self._builder.build([BuilderInput(candidate.sch.mod, ctx.target) for candidate in candidates])
        inputs = [
            RunnerInput(result.artifact_path, ctx.target.kind.name, candidate.args_info, ctx.mod)
            for candidate, result in zip(candidates, built, strict=True)
            if result.artifact_path is not None and result.error_msg is None
        ]
        say(f"Sending {len(inputs)} sample(s) to runner")
        record.builder_results = list(built)
        with Profiler.timeit("SendToRunner"):
            futures = iter(self._runner.run(inputs) if inputs else [])
        # only programs that were built have a future of the runner; results come in the candidates' order
        record.runner_futures = [_refused(result) if _failed(result) else next(futures) for result in built]

    def join_running_task(self, task_id: int) -> list[RunnerResult]:
        """Wait for a round's results and tell everyone."""
        record = self.tasks_[task_id]
        if record.runner_futures is None:
            return []
        candidates, built = record.measure_candidates or [], record.builder_results or []
        with Profiler.timeit("JoinRunnerFutures"):
            results = record.runner_results = [future.result() for future in record.runner_futures]
        record.ctx.notify_runner_results(candidates, results)
        self._note(task_id, built, results)
        for callback in self.measure_callbacks_:
            with Profiler.timeit(f"MeasureCallback/{type(callback).__name__}"):
                callback.apply(self, task_id, candidates, built, results)
        say(f'[Updated] Task #{task_id}: "{record.ctx.task_name}"')
        record.measure_candidates = record.builder_results = record.runner_futures = None
        return results

    def touch_task(self, task_id: int) -> None:
        """Join a task's round if all of it has finished."""
        record = self.tasks_[task_id]
        if not record.is_terminated and record.runner_futures is not None and all(future.done() for future in record.runner_futures):
            self.join_running_task(task_id)

    def terminate_task(self, task_id: int) -> None:
        """End a task's search."""
        record = self.tasks_[task_id]
        if record.is_terminated:
            return
        record.is_terminated = True
        self.remaining_tasks_ -= 1
        record.ctx.post_tuning()
        say(f"Task #{task_id} has finished. Remaining task(s): {self.remaining_tasks_}")

    def _note(self, task_id: int, built: Sequence[BuilderResult], results: Sequence[RunnerResult]) -> None:
        """Remember and report how a round's programs did."""
        record = self.tasks_[task_id]
        for candidate, build, result in zip(record.measure_candidates or [], built, results, strict=True):
            # compared before its own time is appended
            if result.is_success and result.median * 1e3 < record.best_ms:
                record.best_space = space_of(candidate.sch.trace)
            record.latency_ms.append(result.median * 1e3)
            head = f"[Task #{task_id}: {record.ctx.task_name}] Trial #{len(record.latency_ms)}:"
            if result.is_success:
                best, speed = gflops(record.flop, record.best_ms / 1e3), gflops(record.flop, result.median)
                logger.info("%s GFLOPs: %.4f. Time: %.4f us. Best GFLOPs: %.4f", head, speed, result.median * 1e6, best)
                continue
            step = "building" if _failed(build) else "running"
            record.build_error_count += step == "building"
            record.run_error_count += step == "running"
            logger.info("%s Error in %s:\n%s", head, step, (build.error_msg or result.error_msg or "")[:_SHOWN_ERROR])

    def statistics(self) -> list[TaskRow]:
        """Where all tasks stand."""
        return [TaskRow(r.ctx.task_name, r.flop, r.task_weight, r.best_ms / 1e3, len(r.latency_ms), r.is_terminated) for r in self.tasks_]

    def print_tuning_statistics(self) -> None:
        """Say where all tasks stand."""
        say(table(self.statistics()))


class PyTaskScheduler(TaskScheduler):
    """Base of task schedulers that users write."""


def _flop(ctx: TuneContext) -> float:
    return 0.0 if ctx.mod is None else estimate_tir_flops(entry_func(ctx.mod))


def _failed(result: BuilderResult) -> bool:
    return result.artifact_path is None or result.error_msg is not None


def _refused(result: BuilderResult) -> RunnerFuture:
    return RunnerFuture(lambda: True, lambda: RunnerResult(None, result.error_msg or "it was not built"))


create = TaskScheduler.create
