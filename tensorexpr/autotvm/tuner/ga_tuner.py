"""A genetic algorithm on measured times: what is fast has children."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from ...errors import TuningError
from ...tune.population import crossover, unique_rows
from ..errors import PointError
from ..measure.measure import MeasureInput, MeasureResult
from ..task.space import ConfigEntity
from .tuner import Tuner

# A space of filters with more points isn't counted: it has enough for any population.
_COUNTED = 1 << 20
# Generations that are bred in vain for new points before the rest is drawn.
_ATTEMPTS = 8


class GATuner(Tuner):
    """Generations of points: the best ones stay as parents, children take each knob from one of two, and mutate.

    Args:
        task: the task.
        pop_size: points of a generation.
        elite_num: the best points of all that are parents of each generation.
        mutation_prob: with which a knob of a child is drawn anew.

    Raises:
        TuningError: for more parents of old than a generation has points.
    """

    def __init__(self, task: Any, pop_size: int = 100, elite_num: int = 3, mutation_prob: float = 0.1) -> None:
        super().__init__(task)
        if not 0 <= elite_num <= pop_size or pop_size < 1:
            raise TuningError(f"GATuner takes pop_size of at least elite_num and 1, not {pop_size} and {elite_num}")
        countable = not self.space.has_filters or self.space.range_length <= _COUNTED
        self._points = self.space.size if countable else self.space.range_length
        self.pop_size = min(pop_size, self._points)
        self.elite_num = elite_num
        self.mutation_prob = mutation_prob
        self._rng = np.random.default_rng()
        self._start()

    def _start(self) -> None:
        self.genes: list[list[int]] = [self.space.point2knob(index) for index in self.space.sample_ints(self.pop_size)]
        self.visited = {self.space.knob2point(gene) for gene in self.genes}
        self.scores: list[float] = []
        self.elites: list[list[int]] = []
        self.elite_scores: list[float] = []
        self.trial_pt = 0

    def has_next(self) -> bool:
        """Whether a point of the generation, or of the space, is left."""
        return self.trial_pt < len(self.genes) or len(self.visited) < self._points

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """The next points of the generation, at most so many."""
        chosen = self.genes[self.trial_pt : self.trial_pt + batch_size]
        self.trial_pt += len(chosen)
        return [self.space.get(self.space.knob2point(gene)) for gene in chosen]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Hear how points did; when all of a generation are known, the next one is bred."""
        for result in results:
            self.scores.append(0.0 if result.error_no else float(self.task.flop or 1.0) / fmean(map(float, result.costs)))
        # results come in the order in which the points were given: score n is of gene n
        if len(self.scores) >= len(self.genes) and self.has_next():
            self._breed()

    def _breed(self) -> None:
        genes, scores = self.genes + self.elites, np.array(self.scores[: len(self.genes)] + self.elite_scores)
        best = np.argsort(-scores, kind="stable")[: self.elite_num]
        self.elites, self.elite_scores = [genes[n] for n in best], [float(scores[n]) for n in best]
        rows, dims = np.array(genes, np.int64).reshape(len(genes), -1), np.array(self.space.dims, np.int64)
        # Points that failed have no children, unless all did.
        weights = scores / scores.sum() if scores.any() else np.full(len(rows), 1.0 / len(rows))
        wanted = min(self.pop_size, self._points - len(self.visited))
        children: list[list[int]] = []
        for _ in range(_ATTEMPTS):
            first, second = (rows[self._rng.choice(len(rows), self.pop_size, p=weights)] for _ in range(2))
            drawn = self._rng.integers(0, dims, (self.pop_size, len(dims)))
            made = np.where(self._rng.random(drawn.shape) < self.mutation_prob, drawn, crossover(first, second, self._rng))
            for gene in unique_rows(made).tolist():
                index = self.space.knob2point(gene)
                if len(children) < wanted and index not in self.visited and self.space.is_index_valid(index):
                    self.visited.add(index)
                    children.append(gene)
        try:
            while len(children) < wanted:
                index = self.space.get_rand_index(to_exclude=self.visited)
                self.visited.add(index)
                children.append(self.space.point2knob(index))
        except PointError:  # the filters leave no more
            self._points = len(self.visited)
        self.genes, self.scores, self.trial_pt = children, [], 0

    def reset(self) -> None:
        """Begin again."""
        super().reset()
        self._start()
