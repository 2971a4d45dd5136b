"""What is predicted of programs: the model, the features it sees, and what it learns from results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ..dataclass import dataclass, field
from ..target import Target
from .cost_model import CostModel
from .evolution import Candidate
from .features.nest import Array
from .space import IntArray, Space
from .trial import Trial


class ProgramModel(Protocol):
    """A model that looks at programs, not at their features."""

    def score(self, programs: Sequence[Any]) -> Array:
        """Predicted scores [n], more is better."""

    def learn(self, trials: Sequence[Trial]) -> None:
        """Learn from new trials."""


@dataclass(eq=False)
class Learner:
    """Predicts how programs of some sketches will do, and learns from how they did.

    Args:
        sketches: the spaces.
        target: the machine.
        model: predicts throughput from features.
        program_model: predicts instead of `model` if given.
    """

    sketches: Sequence[Space]
    target: Target
    model: CostModel
    program_model: ProgramModel | None = None
    _learned: int = 0  # trials that the program model has seen
    _features: dict[Candidate, tuple[Array, float]] = field(default_factory=dict)  # of what was measured, with what the prior says

    def score(self, number: int, rows: IntArray) -> Array:
        """Predicted scores [n] of rows of a sketch, more is better; -inf for those that may not be built."""
        if self.program_model is not None:
            return np.asarray(self.program_model.score([self.sketches[number].program(row) for row in rows]), float)
        made = self.sketches[number].features(rows, self.target)
        # The prior's cycles as a logarithm: what is learned is how far a program is off from it, a factor.
        return np.where(made.valid, self.model.predict(made.features, -np.log(made.cycles)), -np.inf)

    def predicted(self, candidates: Sequence[Candidate | None]) -> list[float | None]:
        """What the model says of candidates; None for the unscheduled program."""
        found: list[float | None] = [None] * len(candidates)
        # a sketch at a time: features are arrays over its population
        for number in sorted({c.sketch for c in candidates if c is not None}):
            places = [(n, c.row) for n, c in enumerate(candidates) if c is not None and c.sketch == number]
            scores = self.score(number, np.array([row for _, row in places], np.int64))
            for (place, _), score in zip(places, scores, strict=True):
                found[place] = float(score)
        return found

    def learn(self, trials: Sequence[Trial], preloaded: Sequence[tuple[Candidate, float]]) -> bool:
        """Learn from all results so far.

        Args:
            trials: of this search, in the order they were measured.
            preloaded: candidates of earlier ones, with their seconds.

        Returns:
            whether there was anything to learn from.
        """
        if self.program_model is not None:
            if new := trials[self._learned :]:
                self.program_model.learn(new)
            self._learned = len(trials)
            return True
        # `least`: of a program that was stopped at least this is known; as a failure it would look worse than it is
        known = [(t.candidate, t.result.least) for t in trials if t.candidate is not None]
        known += list(preloaded)
        if not known:
            return False
        self._extract_new([candidate for candidate, _ in known])
        features, priors = zip(*(self._features[candidate] for candidate, _ in known), strict=True)
        costs = np.array([cost for _, cost in known])
        throughput = np.where(np.isfinite(costs), 1.0 / np.maximum(costs, 1e-12), 0.0)
        self.model.update(np.array(features), throughput, np.array(priors))
        return True

    def _extract_new(self, candidates: Sequence[Candidate]) -> None:
        """Features and prior of candidates that were not seen before, of each sketch at once."""
        missing = [candidate for candidate in dict.fromkeys(candidates) if candidate not in self._features]
        for number in sorted({candidate.sketch for candidate in missing}):
            ours = [candidate for candidate in missing if candidate.sketch == number]
            rows = np.array([candidate.row for candidate in ours], np.int64).reshape(len(ours), -1)
            made = self.sketches[number].features(rows, self.target)
            for candidate, features, cycles in zip(ours, made.features, made.cycles, strict=True):
                self._features[candidate] = (features, -float(np.log(cycles)))
