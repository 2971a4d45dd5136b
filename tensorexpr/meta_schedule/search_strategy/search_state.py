"""What a search under way knows: its task, how many programs it may still propose, and what it has proposed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...errors import TuningError
from ...schedule.blocks import Schedule
from ...tir.function import IRModule
from ..arg_info import ArgInfo
from .population import Individual, Programs
from .population_space import PopulationSpace
from .search_strategy import MeasureCandidate

if TYPE_CHECKING:
    from ..cost_model.cost_model import CostModel
    from ..database.database import Database
    from ..database.records import Workload
    from ..runner.runner import RunnerResult
    from ..tune_context import TuneContext

# Where spaces of both kinds are there, the kind with the faster best program gets this share of a round.
_LEADING_SHARE = 0.75


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


@dataclass(eq=False)
class Search:
    """What an evolutionary search knows.

    Args:
        seen: what proposed and recorded programs are known by.
        seen_programs: hashes of proposed programs: different decisions may make the same.
        proposed: the programs of the round, by the identity of their schedules.
        best: seconds of the best program, of those that come from traces (False) and from populations (True).
        scores: what the model says of a round's programs.
        empty_rounds: the last rounds, if nothing new was found in them.
    """

    context: TuneContext
    programs: Programs
    spaces: Sequence[Schedule]
    populations: Sequence[PopulationSpace]
    database: Database
    workload: Workload
    model: CostModel
    budget: Budget
    args_info: Sequence[ArgInfo]
    seen: set[str]
    seen_programs: set[int] = field(default_factory=set)
    proposed: dict[int, Individual] = field(default_factory=dict)
    best: dict[bool, float] = field(default_factory=lambda: {False: math.inf, True: math.inf})
    scores: dict[Individual, float] = field(default_factory=dict)
    empty_rounds: int = 0

    def is_new(self, individual: Individual) -> bool:
        """Whether a program was proposed for the first time; it counts as proposed from now on."""
        if individual.key in self.seen:
            return False
        self.seen.add(individual.key)
        if individual.program_hash in self.seen_programs:
            return False
        self.seen_programs.add(individual.program_hash)
        return True

    def population_share(self) -> float:
        """The share of a round that comes from spaces that explore themselves."""
        if not self.spaces:
            return 1.0
        traces, evolved = self.best[False], self.best[True]
        if traces == evolved:
            return 0.5
        return _LEADING_SHARE if evolved < traces else 1 - _LEADING_SHARE

    def learn(self, candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]) -> None:
        """Hear how the programs of the round did, and tell the spaces that they came from."""
        told: dict[int, tuple[PopulationSpace, list[Any], list[float]]] = {}
        for candidate, result in zip(candidates, results, strict=True):
            individual = self.proposed.get(id(candidate.sch))
            cost = result.median
            if individual is None:
                continue
            evolved = individual.origin is not None
            self.best[evolved] = min(self.best[evolved], cost)
            if individual.origin is not None:
                space, row = individual.origin
                _, rows, costs = told.setdefault(id(space), (space, [], []))
                rows.append(row)
                costs.append(cost)
        for space, rows, costs in told.values():
            space.learn(rows, costs)
