"""The base of tuners: a façade on the search loop of `tune.tuner`.

A tuner says what to measure next (`next_batch`) and hears what came of it (`update`); the loop asks, measures, verifies, times the best few
again at the end, and tells. Users write their own by these two.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, nullcontext
from statistics import fmean
from typing import Any

from ...dataclass import dataclass, field
from ...errors import TuningError
from ...tune.cost_model import CostModel, PriorModel
from ...tune.evolution import Candidate
from ...tune.measure import Measurer
from ...tune.measure.places import Places
from ...tune.proposals import Strategy
from ...tune.tuner import Trial, TunerObserver, TunerOptions
from ...tune.tuner import Tuner as SearchLoop
from ..env import GLOBAL_SCOPE
from ..measure.adapter import UserMeasurer
from ..measure.measure import Measured, MeasureInput, MeasureResult
from ..measure.measure_methods import LocalBuilder, LocalRunner, measure_options, measure_task
from ..task.space import ConfigEntity
from ..task.task import Task
from ..template_space import TemplateSpace
from ..utils import format_si_prefix

logger = logging.getLogger(__name__)
# Configurations of a round at least: enough for all compile workers.
_ROUND = 16
# So many of the best are timed again, in turn, at the end, if the runner is ours.
_TIMED_AGAIN = 4
_ENDLESS = 1 << 60


class Tuner:
    """Searches the configurations of a task for the fastest one.

    Args:
        task: from `autotvm.task.create`.

    Attributes:
        best_config, best_flops, best_measure_pair, best_iter: the best so far: its configuration, operations a second, input and result,
            and which trial it was.
    """

    def __init__(self, task: Task, **kwargs: Any) -> None:
        if not isinstance(task, Task) or task.config_space is None:
            raise TuningError(f"a tuner takes a task from autotvm.task.create, not {task!r:.100}")
        self.param = kwargs
        self.task = task
        self.space = task.config_space
        self.error_ct_threshold = 150
        self.n_trial: int | None = None
        self.early_stopping: int | None = None
        self.ttl: int | None = None
        self.visited: Any = set()
        self._forget()

    def _forget(self) -> None:
        self.best_config: ConfigEntity | None = None
        self.best_flops = 0.0
        self.best_measure_pair: tuple[MeasureInput, MeasureResult] | None = None
        self.best_iter = 0
        self._errors = 0
        self._done = 0

    def has_next(self) -> bool:
        """Whether there is anything left to measure."""
        raise NotImplementedError

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """The next configurations to measure, at most so many."""
        raise NotImplementedError

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Hear how configurations did."""

    def reset(self) -> None:
        """Forget the best."""
        self._forget()

    def load_history(self, data_set: Sequence[tuple[MeasureInput, MeasureResult]], min_seed_records: int = 500) -> None:
        """Learn from results of other searches.

        Args:
            data_set: pairs of inputs and results.
            min_seed_records: fewer are left out.

        Raises:
            TuningError: if this tuner can't learn.
        """
        raise TuningError(f"{type(self).__name__} learns nothing from other searches; XGBTuner does")

    def set_error_threshold(self, threshold: int) -> None:
        """After so many errors in a row a warning says so."""
        self.error_ct_threshold = threshold

    def tune(
        self,
        n_trial: int,
        measure_option: Mapping[str, Any],
        early_stopping: int | None = None,
        callbacks: Sequence[Callable[..., Any]] = (),
        si_prefix: str = "G",
    ) -> None:
        """Measure configurations.

        Each result is handed to the callbacks the moment it is there, so that nothing measured is lost when the search ends early.

        Args:
            n_trial: how many at most.
            measure_option: from `autotvm.measure_option`.
            early_stopping: end when so many in a row brought nothing better.
            callbacks: called with the tuner, inputs and results, such as `autotvm.callback.log_to_file("log.json")`.
            si_prefix: of the operations a second in messages.

        Raises:
            TuningError: if nothing can be measured: no builder and runner are given, no worker starts, or the template makes no program.
        """
        format_si_prefix(0, si_prefix)
        if not hasattr(n_trial, "__index__"):
            raise TuningError(f"tune takes the number of trials, n_trial=64, not {n_trial!r}")
        self.n_trial, self.early_stopping, self._done = n_trial, early_stopping, 0
        if not isinstance(measure_option, Mapping) or not {"builder", "runner"} <= set(measure_option):
            raise TuningError(f"tune takes measure_option=autotvm.measure_option(builder=..., runner=...), not {measure_option!r:.100}")
        builder, runner = measure_option["builder"], measure_option["runner"]
        space = self._design_space()
        tuning, GLOBAL_SCOPE.in_tuning = GLOBAL_SCOPE.in_tuning, True
        try:
            with _measurer(space, builder, runner) as measurer:
                ours = not isinstance(measurer, UserMeasurer)
                loop = self._loop(space, measurer, self._options(n_trial, early_stopping, builder.n_parallel, ours), _Told(self, callbacks))
                loop.run()
                # what was timed in turn at the end decides, not what each took alone
                best = loop.best()
                if best is not None and best.candidate is not None:
                    self._note_best(self._input(space, best.candidate), Measured.of(best.result))
        finally:
            GLOBAL_SCOPE.in_tuning = tuning

    def _design_space(self) -> TemplateSpace:
        return TemplateSpace(self.task)

    def _model(self) -> CostModel:
        return PriorModel()

    def _strategy(self, space: TemplateSpace) -> Strategy | None:
        """What chooses; None for the search loop's own way."""
        return _NextBatch(self, space)

    def _options(self, trials: int, early_stopping: int | None, n_parallel: int, ours: bool) -> TunerOptions:
        again = _TIMED_AGAIN if ours else 0
        return TunerOptions(trials, max(_ROUND, n_parallel), early_stopping=early_stopping, remeasured=again, descent_share=0.0)

    def _loop(self, space: TemplateSpace, measurer: Measurer | None, options: TunerOptions, told: _Told) -> SearchLoop:
        told.space = space
        return SearchLoop(
            sketches=[space],
            target=self.task.target,
            model=self._model(),
            measurer=measurer,
            options=options,
            observer=told,
            record=told.record,
            with_baseline=False,
            strategy=self._strategy(space),
        )

    def _input(self, space: TemplateSpace, candidate: Candidate) -> MeasureInput:
        return MeasureInput(self.task.target, self.task, space.entity(candidate.row))

    def _note(self, made: MeasureInput, result: MeasureResult) -> None:
        """Keep count, and the best."""
        self._done += 1
        self._errors = self._errors + 1 if result.error_no else 0
        # equal, not at least: said once in a row of failures
        if self._errors == self.error_ct_threshold:
            logger.warning("%d configurations in a row failed, the last with: %s", self._errors, result.costs[0])
        limit = _ENDLESS if self.early_stopping is None else self.best_iter + self.early_stopping
        self.ttl = min(limit, self.n_trial or 0) - self._done
        if not result.error_no and self.task.flop / fmean(result.costs) > self.best_flops:
            self.best_iter = self._done - 1
            self._note_best(made, result)

    def _note_best(self, made: MeasureInput, result: MeasureResult) -> None:
        self.best_flops = self.task.flop / fmean(result.costs)
        self.best_config, self.best_measure_pair = made.config, (made, result)


@dataclass(eq=False)
class _NextBatch:
    """A tuner as the search loop asks it."""

    tuner: Tuner
    space: TemplateSpace

    def choose(self, count: int, seen: Set[Candidate], known: Mapping[Candidate, float], is_first: bool, may_wait: bool) -> list[Candidate]:
        """The tuner's next batch."""
        if count <= 0 or not self.tuner.has_next():
            return []
        return [Candidate(0, self.space.row(config.index)) for config in self.tuner.next_batch(count)]


@dataclass(eq=False)
class _Told(TunerObserver):
    """Tells a tuner and its callbacks what the search loop did."""

    tuner: Tuner
    callbacks: Sequence[Callable[..., Any]]
    space: TemplateSpace = field(init=False)

    def record(self, trials: Sequence[Trial]) -> None:
        """Hand results to the callbacks. What was timed again is no trial: only logs take it."""
        for made, result in self._pairs(trials):
            again = getattr(result, "timed_again", False)
            if not again:
                self.tuner._note(made, result)
            for callback in self.callbacks:
                if not again or getattr(callback, "takes_repeats", False):
                    callback(self.tuner, [made], [result])

    def batch_measured(self, batch: Sequence[Trial], seconds: float) -> None:
        """Let the tuner learn."""
        pairs = self._pairs(batch)
        self.tuner.update([made for made, _ in pairs], [result for _, result in pairs])

    def _pairs(self, trials: Sequence[Trial]) -> list[tuple[MeasureInput, MeasureResult]]:
        candidates = [(trial.candidate, trial.result) for trial in trials if trial.candidate is not None]
        return [(self.tuner._input(self.space, candidate), Measured.of(result)) for candidate, result in candidates]


@contextmanager
def _measurer(space: TemplateSpace, builder: Any, runner: Any) -> Iterator[Measurer]:
    """Workers of ours; or, where the builder or the runner is a user's, these."""
    if isinstance(builder, LocalBuilder) and isinstance(runner, LocalRunner):
        # a subclass with a `build` or `run` of its own expects to be asked
        ours = type(builder).build is LocalBuilder.build and type(runner).run is LocalRunner.run
        if ours:
            places = Places(builder.building, runner.running)
            with Measurer(measure_task(space, runner), measure_options(builder, runner), places=places) as measurer:
                yield measurer
            return
    with builder.workers(space) if isinstance(builder, LocalBuilder) else nullcontext():
        yield UserMeasurer(space, builder, runner)


def least_cost(result: MeasureResult) -> float:
    """Seconds of a result; infinite for a failure."""
    return math.inf if result.error_no else fmean(map(float, result.costs))
