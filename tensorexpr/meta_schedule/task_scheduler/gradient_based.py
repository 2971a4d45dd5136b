"""`GradientBased`: the task where more trials are expected to save most time."""

from __future__ import annotations

import math
import random
from typing import Any

from .task_record import TaskRecord
from .task_scheduler import PyTaskScheduler


class GradientBased(PyTaskScheduler, kind="gradient"):
    """Works on every task once, and then on the one whose weighted time falls fastest.

    How fast it falls is estimated from how much it fell lately, and from how much it would fall if it went on in proportion to
    the rounds so far.

    Args:
        alpha: the weight of the first estimate; the second has the rest.
        window_size: rounds that count as lately.
        seed: of choices among equals; random if negative.
    """

    def __init__(self, *, alpha: float = 0.2, window_size: int = 3, seed: int = -1) -> None:
        self.alpha = alpha
        self.window_size = window_size
        self._rng = random.Random(seed if seed >= 0 else None)
        self._history: dict[int, list[float]] = {}

    def tune(self, *args: Any, **kwargs: Any) -> None:
        """Search all tasks, see `TaskScheduler.tune`."""
        self._history = {}
        super().tune(*args, **kwargs)

    def join_running_task(self, task_id: int) -> list[Any]:
        """Wait for a round's results, and remember the best time after it."""
        results = super().join_running_task(task_id)
        self._history.setdefault(task_id, []).append(self.tasks_[task_id].best_ms)
        return results

    def next_task_id(self) -> int:
        """The task that promises most; -1 if all are done."""
        alive = [n for n, record in enumerate(self.tasks_) if not record.is_terminated]
        for task_id in alive:
            if not self._history.get(task_id):
                return task_id
        if not alive:
            return -1
        gains = {task_id: self._gain(self.tasks_[task_id], self._history[task_id]) for task_id in alive}
        most = max(gains.values())
        return self._rng.choice([task_id for task_id, gain in gains.items() if gain == most])

    def _gain(self, record: TaskRecord, best: list[float]) -> float:
        """The time that one more round is expected to save, weighted."""
        now, rounds = best[-1], len(best)
        if not math.isfinite(now):  # nothing ran yet
            return math.inf
        window = min(self.window_size, rounds - 1)
        before = best[rounds - 1 - window]
        # where only failures came before, there is no time that could have fallen
        lately = (before - now) / window if window and math.isfinite(before) else 0.0
        return record.task_weight * (self.alpha * lately + (1 - self.alpha) * now / rounds)
