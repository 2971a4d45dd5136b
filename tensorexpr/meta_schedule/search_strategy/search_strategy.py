"""The protocol of search strategies, and what they propose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ...schedule.blocks import Schedule
from ..arg_info import ArgInfo
from ..utils import Contextual, chosen
from .population_space import PopulationSpace

if TYPE_CHECKING:
    from ..cost_model.cost_model import CostModel
    from ..database.database import Database
    from ..runner.runner import RunnerResult


@dataclass(frozen=True, eq=False)
class MeasureCandidate:
    """A program to measure.

    Args:
        sch: its schedule, all decisions made.
        args_info: the arguments to measure it with.
    """

    sch: Schedule
    args_info: Sequence[ArgInfo]


class SearchStrategy(Contextual):
    """Proposes programs and is told how they did."""

    SearchStrategyType: ClassVar[Any] = "SearchStrategy | str"

    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}

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

    def clone(self) -> SearchStrategy:
        """A strategy like this one that knows nothing of this one's search."""
        return copy(self)

    @staticmethod
    def create(kind: str = "evolutionary", *args: Any, **kwargs: Any) -> SearchStrategy:
        """A strategy by its name: "evolutionary", "replay-trace" or "replay-func".

        Raises:
            TuningError: for another name.
        """
        made: SearchStrategy = chosen(kind, SearchStrategy.kinds, "search strategy")(*args, **kwargs)
        return made


class PySearchStrategy(SearchStrategy):
    """Base of search strategies that users write."""


create = SearchStrategy.create
