"""Droplet search: from a point downhill, one or two knobs at a time (Canesche et al., 2024). The walk is `tune.descent`'s."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import TuningError
from ...tune.descent import Descent
from ...tune.evolution import Candidate
from ..measure.measure import MeasureInput, MeasureResult
from ..task.space import ConfigEntity
from ..template_space import TemplateSpace
from .tuner import Tuner, least_cost


class DropletTuner(Tuner):
    """Measures the neighbours of the best point, moves to one that is faster beyond the noise, and ends where there is none.

    Args:
        task: the task.
        start_position: the candidates of the knobs to begin with; the first ones if None, or a point at random if filters leave that out.
        pvalue: the chance, as Student's t test sees it, of taking noise for a faster point.

    Raises:
        TuningError: for a start that is no point.
    """

    def __init__(self, task: Any, start_position: Sequence[int] | None = None, pvalue: float = 0.05) -> None:
        super().__init__(task)
        self.dims = self.space.dims
        start = [0] * len(self.dims) if start_position is None else [int(place) for place in start_position]
        if len(start) != len(self.dims) or not all(0 <= place < size for place, size in zip(start, self.dims, strict=True)):
            raise TuningError(f"start_position has a candidate of each knob, of {self.dims}, not {start}")
        if not self.space.is_index_valid(self.space.knob2point(start)):
            start = self.space.point2knob(self.space.get_rand_index())
        self._begin = start
        self.pvalue = pvalue
        self.batch, self.step, self.execution, self.total_execution = 16, 1, 1, max(self.dims, default=1)
        self._space = TemplateSpace(task)
        self._start()

    def _start(self) -> None:
        # Number, knobs and costs of the best point; there is none yet.
        self.best_choice: tuple[int, list[int], list[float]] = (-1, self._begin, [99999.0])
        self.visited = {self.space.knob2point(self._begin)}
        self._costs: dict[Candidate, tuple[float, ...]] = {}
        self._next = [Candidate(0, tuple(self._begin))]
        self._seen = set(self._next)
        self._descent = Descent([self._space], self._alike, self._known, faster=self._is_faster)

    def _alike(self, number: int, rows: Any) -> Any:
        """No opinion of rows: measuring alone decides."""
        return np.zeros(len(rows))

    def _known(self, candidates: Sequence[Candidate]) -> list[Sequence[float]]:
        """The repeats of points, as they were measured."""
        return [self._costs.get(candidate, ()) for candidate in candidates]

    def _is_faster(self, costs: Sequence[float], than: Sequence[float]) -> bool:
        return bool(np.mean(costs) < np.mean(than)) and self.p_value(costs, than)

    def p_value(self, elem_1: Sequence[float], elem_2: Sequence[float]) -> bool:
        """Whether two samples differ beyond the noise. Samples of one number each do if they aren't equal."""
        return t_test(elem_1, elem_2) <= self.pvalue

    def has_next(self) -> bool:
        """Whether the walk goes on."""
        if not self._next and self._descent.centre is not None:
            self._next = self._descent.propose(self.batch, self._seen)
            self._seen.update(self._next)
        return bool(self._next)

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """The next neighbours, at most so many."""
        if not self.has_next():
            return []
        chosen, self._next = self._next[:batch_size], self._next[batch_size:]
        indices = [self._space.index(candidate.row) for candidate in chosen]
        self.visited.update(indices)
        return [self.space.get(index) for index in indices]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Hear how neighbours did, and move."""
        measured: dict[Candidate, float] = {}
        for made, result in zip(inputs, results, strict=True):
            candidate = Candidate(0, self._space.row(made.config.index))
            if not result.error_no:
                measured[candidate] = least_cost(result)
                self._costs[candidate] = tuple(map(float, result.costs))
                if measured[candidate] < np.mean(self.best_choice[2]):
                    self.best_choice = (made.config.index, list(candidate.row), list(self._costs[candidate]))
        # the first point that runs is where the walk begins
        if self._descent.centre is None and measured:
            self._descent.start(measured)
        else:
            self._descent.judge(measured)
        if self._descent.centre is None and not self._next and not self._costs:
            self._elsewhere()

    def _elsewhere(self) -> None:
        """Begin at another point where the first one failed."""
        if len(self.visited) < min(self.space.range_length, self.batch):
            index = self.space.get_rand_index(to_exclude=self.visited)
            self._next = [Candidate(0, self._space.row(index))]
            self._seen.update(self._next)

    def reset(self) -> None:
        """Begin again."""
        super().reset()
        self._start()


def t_test(first: Sequence[float], second: Sequence[float]) -> float:
    """The chance that two samples of equal means differ as much (Welch's t test, two-sided); 0 or 1 where nothing varies."""
    a, b = np.asarray(first, float), np.asarray(second, float)
    # one repeat has no spread of its own; the other sample's then decides
    spread = [float(x.var(ddof=1)) / len(x) if len(x) > 1 else 0.0 for x in (a, b)]
    total, distance = sum(spread), abs(float(a.mean() - b.mean()))
    if total <= 0.0:
        return 1.0 if distance == 0.0 else 0.0
    freedom = total**2 / sum(s**2 / (len(x) - 1) for s, x in zip(spread, (a, b), strict=True) if s > 0)
    t = distance / math.sqrt(total)
    # Student's density, substituted by x = sqrt(f) tan(angle), is a power of the cosine on a finite range.
    angles = np.linspace(0.0, math.atan(t / math.sqrt(freedom)), 2001)
    heights = np.cos(angles) ** (freedom - 1.0)
    area = float(((heights[1:] + heights[:-1]) / 2 * np.diff(angles)).sum())
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    return max(0.0, 1.0 - 2.0 * scale * area)
