"""`ReplayTrace` and `ReplayFunc`: programs at random, without a model."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import TensorExprError, TuningError
from ...schedule.blocks import Schedule
from ..arg_info import ArgInfo
from ..cost_model.cost_model import CostModel
from ..database.database import Database
from ..runner.runner import RunnerResult
from ..tune_context import MeasureCandidate, TuneContext
from .population import Individual, Programs
from .search_strategy import Budget, PopulationSpace, PySearchStrategy, task_of
from .trace_space import TraceSpace
from .tuned import asked_tuner


class ReplayTrace(PySearchStrategy, kind="replay-trace"):
    """Draws every decision of a design space anew for each program.

    Args:
        max_fail_count: draws in a row that may make no program before the search ends.
    """

    def __init__(self, max_fail_count: int = 100) -> None:
        self.max_fail_count = max_fail_count
        self._context: TuneContext | None = None
        self._budget: Budget | None = None

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task."""
        self._context = context

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[Schedule | PopulationSpace],
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Begin a search; nothing is predicted."""
        context, mod = task_of(self._context)
        spaces = [space for space in design_spaces if isinstance(space, Schedule)]
        if not spaces:
            raise TuningError(f"the program of task {context.task_name!r} has no design space of schedules to draw from")
        self._budget = Budget(max_trials, num_trials_per_iter)
        self._spaces, self._programs = spaces, Programs(context)
        self._space = TraceSpace(self._programs, self._draw, self.max_fail_count, distinct=False)
        self._tuner = asked_tuner([self._space], context.target, context.rand_state)
        self._args_info = ArgInfo.from_entry_func(mod)

    def _draw(self) -> Individual | None:
        return self._programs.drawn_of(self._spaces)

    def post_tuning(self) -> None:
        """End a search."""
        self._budget = None

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next programs at random; None if the search is over."""
        if self._budget is None:
            raise TuningError("this search has not begun; call pre_tuning first")
        found = self._tuner.draw(self._budget.next_round)
        self._budget.spend(len(found))
        if not self._space.made:
            self._programs.warn()
        return [MeasureCandidate(self._space.program(candidate.row).sch, self._args_info) for candidate in found] or None

    def notify_runner_results(self, measure_candidates: list[MeasureCandidate], results: list[RunnerResult]) -> None:
        """Hear how the last programs did: nothing is learned."""

    def clone(self) -> ReplayTrace:
        """A strategy like this one, without a search."""
        return type(self)(self.max_fail_count)


class ReplayFunc(ReplayTrace, kind="replay-func"):
    """Calls the space generator anew for each program, so that a user's function may ask what was sampled and go on as it likes."""

    def __init__(self) -> None:
        super().__init__(max_fail_count=100)

    def _draw(self) -> Individual | None:
        assert self._context is not None
        try:
            spaces = self._context.generate_design_space()
        except TensorExprError as error:
            self._programs.refused(str(error))
            return None
        drawn = [space for space in spaces if isinstance(space, Schedule)]
        return self._programs.finished(self._programs.rng.choice(drawn)) if drawn else None

    def clone(self) -> ReplayFunc:
        """A strategy like this one, without a search."""
        return type(self)()
