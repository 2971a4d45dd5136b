"""What a search measures and tells: its options, one measured program, and who listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dataclass import dataclass, field
from ..schedule.trace import Trace
from .evolution import Candidate, EvolutionOptions
from .measure import MeasureResult
from .measure.results import TIMED_AGAIN


@dataclass(frozen=True)
class TunerOptions:
    """How much to measure and how to choose.

    Args:
        trials: programs to measure.
        round_size: programs per round.
        eps_greedy: share of a round that is drawn at random.
        early_stopping: end when so many trials in a row brought nothing better; None never does.
        budget_s: end when so many seconds are used up; the last round gets only what fits, and the best so far stands.
        remeasured: so many of the best are measured again, in turn, at the end.
        descent_share: share of the trials, or of the time, for coordinate descent from the best (`descent`).
    """

    trials: int
    round_size: int
    eps_greedy: float = 0.05
    early_stopping: int | None = None
    budget_s: float | None = None
    remeasured: int = 4
    descent_share: float = 0.2
    evolution: EvolutionOptions = field(default_factory=EvolutionOptions)


@dataclass(frozen=True, eq=False)
class Trial:
    """One measured program.

    Args:
        candidate: None for the unscheduled one.
        trace: the program.
        result: how it did.
        predicted: what the model said before, if it did.
        round: the number of the batch it was measured in, from 0.
        dag: see `measure.Program.dag`.
    """

    candidate: Candidate | None
    trace: Trace
    result: MeasureResult
    predicted: float | None = None
    round: int = 0
    dag: Any = None


def fastest(trials: Sequence[Trial]) -> Trial | None:
    """The fastest correct trial of a search that ended: of those that were timed in turn, if any were; None if none ran."""
    good = [trial for trial in trials if trial.result.is_success]
    again = [trial for trial in good if TIMED_AGAIN in trial.result.policy]
    # times of one program alone and of others in turn can't be compared
    return min(again or good, key=lambda trial: trial.result.median, default=None)


class TunerObserver:
    """What a tuner tells while it runs; the base says nothing."""

    def sampled(self, count: int, seconds: float) -> None:
        """The populations were started."""

    def generation(self, number: int, best: float, worst: float, count: int) -> None:
        """A generation of the evolution was scored."""

    def evolved(self, count: int, seconds: float) -> None:
        """A batch was chosen."""

    def descending(self, count: int, cost: float) -> None:
        """Neighbours of the best program were chosen, which takes `cost` seconds."""

    def measuring(self, count: int) -> None:
        """A batch is about to be measured."""

    def measured(self, trial: Trial) -> None:
        """A program was measured."""

    def batch_measured(self, batch: Sequence[Trial], seconds: float) -> None:
        """A batch was measured."""

    def trained(self, seconds: float) -> None:
        """The model learned from all results so far."""

    def finished(self, reason: str) -> None:
        """The search is over."""
