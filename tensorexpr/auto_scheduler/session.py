"""One search under way: workers, the tuner and what is printed. A task scheduler pauses and resumes it."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from ..errors import ScheduleError
from ..schedule.trace import Trace
from ..tune.measure import Measurer
from ..tune.measure.places import Places
from ..tune.tuner import Trial, Tuner
from .callbacks import finish, prepare
from .console import Console, MeasureMarks
from .options import TuningOptions
from .progress import progress_console
from .state_views import state_text
from .summary import summary
from .workers import measure_options, measure_task

if TYPE_CHECKING:
    from .policy import SketchPolicy


class SearchSession:
    """A policy's search with some options. Between `open` and `close` it has worker processes.

    Args:
        policy: says what to search and how.
        options: how much to measure, and where results go.
    """

    def __init__(self, policy: SketchPolicy, options: TuningOptions) -> None:
        self._started = time.monotonic()
        self.policy = policy
        self.options = options
        verbose = options.verbose if policy.verbose is None else policy.verbose
        generations = int(policy.params["evolutionary_search_num_iters"])
        make = progress_console if verbose == 1 else Console
        self.console = make(verbose, policy.task.compute_dag.flop_ct, generations)
        self.console.describe = self._program_text
        self.tuner: Tuner | None = None
        self._measurer: Measurer | None = None

    def _program_text(self, trace: Trace) -> str:
        """A program as loops; where it is illegal, why."""
        try:
            return state_text(trace.apply(self.policy.task.compute_dag.initial_tree))
        except ScheduleError as error:
            return str(error)

    def open(self) -> SearchSession:
        """Start the workers, if they don't run.

        Raises:
            TuningError: if none can be started, or a callback can't do its work.
        """
        if self._measurer is None:
            for callback in self.options.measure_callbacks:
                prepare(callback)
            builder, runner = self.options.builder, self.options.runner
            task = measure_task(self.policy.task, self.policy.seed, runner.is_here)
            places = Places(builder.building, runner.running)
            # First: workers take a second to start, and results to compare with are computed, while sketches are made here.
            options, marks = measure_options(builder, runner), MeasureMarks(self.console)
            made = Measurer(task, options, marks, self.policy.workers, places).__enter__()
            try:
                # it outlives the workers: what it has learned goes on with new ones
                if self.tuner is None:
                    self.tuner = self.policy.tuner(made, self.options, self.console)
                    self.console.searching(len(self.tuner.sketches))
            except BaseException:
                made.close()
                raise
            if self.tuner.measurer is not None:
                # a session that goes on races its programs against what it found before
                made.best_cost = self.tuner.measurer.best_cost
            self._measurer = self.tuner.measurer = made
        return self

    def round(self, count: int, deadline: float) -> list[Trial]:
        """One round of up to `count` programs, cut short at a moment of `time.monotonic`."""
        assert self.tuner is not None
        self.tuner.stop_at(deadline)
        return self.tuner.round(count)

    def descend(self) -> None:
        """Let the next rounds measure the neighbours of the best program."""
        if self.tuner is not None:
            self.open()
            self.tuner.descend()

    def time_again(self) -> Trial | None:
        """Time the best few programs again, in turn; the best of all, None if none ran."""
        if self.tuner is None:
            return None
        self.open()
        self.tuner.finish("")
        return self.tuner.best()

    def run(self) -> list[Trial]:
        """Search to the end, and say in the end what came of it; also when it is interrupted."""
        assert self.tuner is not None
        try:
            return self.tuner.run(self._started)
        except KeyboardInterrupt:
            self.console.close()
            self.console.summary(f"Interrupted. {len(self.tuner.trials)} programs were measured, and what was found of them is kept.")
            raise
        finally:
            self.console.close()
            self.console.summary(summary(self.tuner, self.policy.task.compute_dag.flop_ct))
            # Also after an interrupt: callbacks may hold open files.
            for callback in self.options.measure_callbacks:
                finish(callback)

    def close(self) -> None:
        """End the workers. Safe to call again."""
        if self._measurer is not None:
            self._measurer.close()
            self._measurer = None
        self.console.close()

    def __enter__(self) -> SearchSession:
        return self.open()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
