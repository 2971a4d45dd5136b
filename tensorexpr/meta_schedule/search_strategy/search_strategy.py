"""The protocols of search strategies and of design spaces that explore themselves, and what strategies propose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from ...errors import TuningError
from ...schedule.blocks import Schedule
from ...tir.function import IRModule
from ..cost_model.cost_model import CostModel
from ..database.database import Database
from ..runner.runner import RunnerResult
from ..tune_context import Contextual, MeasureCandidate, TuneContext


@runtime_checkable
class PopulationSpace(Protocol):
    """A design space that knows its programs better than by their traces, and explores them itself, as rows of its own making.

    A space generator may give such spaces beside schedules; `EvolutionarySearch` then asks them for programs.
    """

    def sample(self, n: int) -> Sequence[Any]:
        """n rows at random, or fewer if there are no more."""

    def evolve(self, n: int) -> Sequence[Any]:
        """The n rows that it takes to be the fastest of those it has not given before."""

    def to_schedule(self, row: Any) -> Schedule | None:
        """The program of a row; None if it makes none."""

    def learn(self, rows: Sequence[Any], costs: Sequence[float]) -> None:
        """Hear how long programs took, in seconds; infinite for those that failed."""


def task_of(context: TuneContext | None) -> tuple[TuneContext, IRModule]:
    """The task of a search, and its program.

    Raises:
        TuningError: if the strategy was told of none.
    """
    if context is None or context.mod is None:
        raise TuningError("a search strategy works for a TuneContext with a program; make one with mod= and search_strategy=")
    return context, context.mod


class Budget:
    """How many programs a search may still propose."""

    def __init__(self, max_trials: int, per_round: int) -> None:
        if max_trials < 1 or per_round < 1:
            raise TuningError(
                f"a search measures at least one program, in rounds of at least one, not {max_trials} in rounds of {per_round}"
            )
        self._left = max_trials
        self._per_round = per_round

    @property
    def next_round(self) -> int:
        """Programs of the next round; 0 at the end."""
        return min(self._left, self._per_round)

    def spend(self, count: int) -> None:
        """Note that so many were proposed."""
        self._left -= count


class SearchStrategy(Contextual, what="search strategy", default="evolutionary"):
    """Proposes programs and is told how they did."""

    SearchStrategyType: ClassVar[Any] = "SearchStrategy | str"

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[Schedule | PopulationSpace],
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Begin a search.

        Args:
            max_trials: programs that will be measured at most.
            num_trials_per_iter: programs of a round.
            design_spaces: schedules with open decisions.
            database: holds what was measured before.
            cost_model: predicts which programs are fast.
        """
        raise NotImplementedError

    def post_tuning(self) -> None:
        """End a search."""
        raise NotImplementedError

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next programs to measure; None if the search is over."""
        raise NotImplementedError

    def notify_runner_results(self, measure_candidates: list[MeasureCandidate], results: list[RunnerResult]) -> None:
        """Hear how the last programs did."""
        raise NotImplementedError


class PySearchStrategy(SearchStrategy):
    """Base of search strategies that users write."""


create = SearchStrategy.create
