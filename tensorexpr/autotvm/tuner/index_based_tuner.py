"""Tuners that take points by their numbers: one after the other, or at random."""

from __future__ import annotations

from typing import Any

from ...errors import TuningError
from ..task.space import ConfigEntity
from .tuner import Tuner


class IndexBaseTuner(Tuner):
    """The base of both.

    Args:
        task: the task.
        range_idx: the first and the last point to look at; all if None.

    Raises:
        TuningError: for a range that isn't in the space.
    """

    def __init__(self, task: Any, range_idx: tuple[int, int] | None = None) -> None:
        super().__init__(task)
        first, last = range_idx or (0, self.space.range_length - 1)
        if not 0 <= first <= last < self.space.range_length:
            raise TuningError(f"range_idx is the first and the last point, from 0 to {self.space.range_length - 1}, not {range_idx}")
        self.begin_idx, self.end_idx = first, last + 1
        self.range_length = self.end_idx - self.begin_idx
        self.visited_max = self.space.subrange_length(self.begin_idx, self.end_idx)
        self.visited = []

    def has_next(self) -> bool:
        """Whether a point of the range is left."""
        return len(self.visited) < int(self.visited_max)

    def reset(self) -> None:
        """Forget the best, and which points were visited."""
        super().reset()
        self.visited = []


class GridSearchTuner(IndexBaseTuner):
    """All points in the order of their numbers; see `IndexBaseTuner`."""

    def __init__(self, task: Any, range_idx: tuple[int, int] | None = None) -> None:
        super().__init__(task, range_idx)
        self.index: int | None = self._next(self.begin_idx - 1)

    def _next(self, index: int) -> int | None:
        found: int | None = self.space.get_next_index(index, start=self.begin_idx, end=self.end_idx)
        return found

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """The next points, at most so many."""
        found: list[ConfigEntity] = []
        while len(found) < batch_size and self.index is not None and self.has_next():
            found.append(self.space.get(self.index))
            self.visited.append(self.index)
            self.index = self._next(self.index)
        return found

    def reset(self) -> None:
        """Begin again."""
        super().reset()
        self.index = self._next(self.begin_idx - 1)


class RandomTuner(IndexBaseTuner):
    """Points at random, none twice; see `IndexBaseTuner`."""

    def __init__(self, task: Any, range_idx: tuple[int, int] | None = None) -> None:
        super().__init__(task, range_idx)
        self._seen: set[int] = set()

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """Points that weren't visited, at most so many."""
        found: list[ConfigEntity] = []
        while len(found) < batch_size and self.has_next():
            index = self.space.get_rand_index(self.begin_idx, self.end_idx, to_exclude=self._seen)
            self._seen.add(index)
            self.visited.append(index)
            found.append(self.space.get(index))
        return found

    def reset(self) -> None:
        """Begin again."""
        super().reset()
        self._seen = set()
