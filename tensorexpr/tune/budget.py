"""How much of a search is left: trials and seconds, and which share of them is for the descent."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..dataclass import dataclass
from .trial import TunerOptions

# Under a time budget nobody knows yet how long a program takes: the first round is small.
_FIRST_ROUND = 8
# Of a time budget, so much or a tenth is kept for timing the best few again.
_FOR_MEASURING_AGAIN_S = 2.0
# Fewer programs than these are all needed to find a region to descend in.
_FEWEST_FOR_DESCENT = 32
_FEWEST_BEFORE_DESCENT = 16


@dataclass(eq=False)
class Budget:
    """Divides the trials and the seconds of a search between rounds.

    Args:
        options: the trials, the seconds, and the share that is for the descent.
        clock: seconds.
        deadline: the moment of `clock` after which nothing more is measured.
        descend_at: the moment of `clock` at which the descent is due.
        busy_s: seconds that rounds have taken so far, from which the pace is known.
    """

    options: TunerOptions
    clock: Callable[[], float]
    deadline: float = math.inf
    descend_at: float = math.inf
    busy_s: float = 0.0

    def start(self, moment: float | None) -> None:
        """Count the time budget, if there is one, from a moment of `clock`; from now if None."""
        start = self.clock() if moment is None else moment
        budget, share = self.options.budget_s, self.options.descent_share
        self.deadline = math.inf if budget is None else start + budget - min(_FOR_MEASURING_AGAIN_S, budget / 10)
        self.descend_at = math.inf if budget is None or not share else start + budget * (1.0 - share)

    @property
    def is_over(self) -> bool:
        """Whether the time is used up."""
        return self.clock() >= self.deadline

    def is_descent_due(self, done: int, known: int) -> bool:
        """Whether the search has come to the share that is for the descent.

        Args:
            done: trials so far.
            known: programs that are known, those of an earlier run included.
        """
        if not self.options.descent_share or known < _FEWEST_BEFORE_DESCENT:
            return False
        return (self._keeps_trials and done >= self._end_of_search) or self.clock() >= self.descend_at

    def round_size(self, done: int, is_descending: bool) -> int:
        """Programs of the next round; one that ends where the descent begins is shorter."""
        options = self.options
        end = options.trials if is_descending or done >= self._end_of_search else self._end_of_search
        return min(options.round_size, end - done)

    @property
    def _keeps_trials(self) -> bool:
        return self.options.trials >= _FEWEST_FOR_DESCENT

    @property
    def _end_of_search(self) -> int:
        """The number of trials after which the descent begins."""
        trials = self.options.trials
        return trials - round(self.options.descent_share * trials) if self._keeps_trials else trials

    def affordable(self, count: int, done: int, is_descending: bool) -> int:
        """As many of `count` programs as there is time for at the pace so far; 0 when the time is used up."""
        if self.deadline == math.inf:
            return count
        left = self.deadline - self.clock()
        if not is_descending and self.clock() < self.descend_at < self.deadline:
            left = self.descend_at - self.clock()
        # the first round runs even late: without it there is no result at all
        if left <= 0 and done:
            return 0
        pace = self.busy_s / done if done else 0.0
        return max(1, min(count, int(left / pace))) if pace > 0 else min(count, _FIRST_ROUND)
