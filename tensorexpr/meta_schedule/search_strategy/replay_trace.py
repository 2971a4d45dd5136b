"""`ReplayTrace`: programs of the design spaces at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import TuningError
from ...schedule.blocks import Schedule
from ..arg_info import ArgInfo
from .population import Individual, Programs
from .population_space import PopulationSpace
from .search_state import Budget, task_of
from .search_strategy import MeasureCandidate, PySearchStrategy

if TYPE_CHECKING:
    from ..cost_model.cost_model import CostModel
    from ..database.database import Database
    from ..runner.runner import RunnerResult
    from ..tune_context import TuneContext


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
        self._spaces = spaces
        self._programs = Programs(context)
        self._args_info = ArgInfo.from_entry_func(mod)

    def post_tuning(self) -> None:
        """End a search."""
        self._budget = None

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next programs at random; None if the search is over."""
        if self._budget is None:
            raise TuningError("this search has not begun; call pre_tuning first")
        wanted = self._budget.next_round
        found: list[MeasureCandidate] = []
        failed = 0
        while len(found) < wanted and failed < self.max_fail_count:
            made = self._draw()
            failed = failed + 1 if made is None else 0
            if made is not None:
                found.append(MeasureCandidate(made.sch, self._args_info))
        self._budget.spend(len(found))
        return found or None

    def _draw(self) -> Individual | None:
        return self._programs.drawn(self._programs.rng.choice(self._spaces))

    def notify_runner_results(self, measure_candidates: list[MeasureCandidate], results: list[RunnerResult]) -> None:
        """Hear how the last programs did: nothing is learned."""

    def clone(self) -> ReplayTrace:
        """A strategy like this one, without a search."""
        return type(self)(self.max_fail_count)
