"""`RoundRobin`: one task after the other."""

from __future__ import annotations

from .task_scheduler import PyTaskScheduler


class RoundRobin(PyTaskScheduler, kind="round-robin"):
    """Works on the tasks in turn."""

    def __init__(self) -> None:
        self._last = -1

    def next_task_id(self) -> int:
        """The next task after the last one that isn't done."""
        count = len(self.tasks_)
        for step in range(1, count + 1):
            task_id = (self._last + step) % count
            if not self.tasks_[task_id].is_terminated:
                self._last = task_id
                return task_id
        return -1
