"""The kernels of a network while trials tune them: one table that is redrawn on a terminal, a line for each round elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

from ...auto_scheduler.loaded import LoadedRecord
from ...auto_scheduler.task_callbacks import TaskSchedulerCallback
from ...relax.tuning.progress import Watch

_HEAD = f"{'ms first':>10} {'ms best':>10} {'gain':>6} {'calls':>6} {'trials':>7}  kernel"
_LINES_BELOW = 4  # of a terminal: heading, rest, progress, and the line of the cursor


def _ms(seconds: float) -> str:
    """Milliseconds; of small kernels to the nanosecond."""
    return f"{seconds * 1e3:.{3 if seconds >= 1e-5 else 6}f}"


class TuningTable(TaskSchedulerCallback):
    """Shows what each task of a scheduler takes, those with the most time first.

    Args:
        tasks: of the scheduler.
        calls: how often each runs in a run of the network.
        trials: that are measured in all.
        earlier: records of these tasks that are there already.
        stream: where it goes; standard output.
    """

    def __init__(
        self, tasks: Sequence[Any], calls: Sequence[float], trials: int, earlier: Sequence[LoadedRecord] = (), stream: TextIO | None = None
    ) -> None:
        self._tasks, self._calls, self._trials = tasks, calls, trials
        self._out = stream or sys.stdout
        self._redraws = self._out.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn = 0  # lines that the next drawing replaces
        self._began = time.monotonic()
        # It counts as a callback of measuring: what was measured first, and best.
        self.watch = Watch(False, 0.0, 0.0, {task.workload_key: count for task, count in zip(tasks, calls, strict=True)})
        self.watch.recall(earlier)

    def pre_tune(self, task_scheduler: Any, task_id: int) -> None:
        """Draw the table before a round; elsewhere than on a terminal rounds are told when they are over."""
        if self._redraws:
            self._draw(task_id)

    def post_tune(self, task_scheduler: Any, task_id: int) -> None:
        """Draw it after a round, or say what came of that."""
        if self._redraws:
            self._draw(task_id)
        else:
            print(self._progress(task_id), file=self._out, flush=True)

    def close(self) -> None:
        """Print the whole table once, and what it sums up to."""
        self._erase()
        first, best = (sum(map(self._seconds(one).__getitem__, self._measured())) for one in (self.watch.first, self.watch.best))
        lacking = len(self._tasks) - len(self._measured())
        without = f"; {lacking} of {len(self._tasks)} kernels have no program that ran" if lacking else ""
        gain = f", {first / best:.2f}x" if best else ""
        summary = f"kernels: {_ms(first)} ms by the first programs, {_ms(best)} ms by the best{gain}{without}"
        print("\n".join([_HEAD, *self._rows(), summary]), file=self._out, flush=True)

    def _seconds(self, of: dict[str, float]) -> dict[int, float]:
        """What all calls of a task take in a run of the network, by its number."""
        keys = [task.workload_key for task in self._tasks]
        return {number: of[key] * self._calls[number] for number, key in enumerate(keys) if key in of}

    def _measured(self) -> list[int]:
        """Tasks that have a program that ran, the most time first."""
        seconds = self._seconds(self.watch.best)
        return sorted(seconds, key=lambda number: -seconds[number])

    def _rows(self) -> Iterator[str]:
        first, best = self._seconds(self.watch.first), self._seconds(self.watch.best)
        measured = self._measured()
        for number in [*measured, *(number for number in range(len(self._tasks)) if number not in best)]:
            task = self._tasks[number]
            before, after = (_ms(of[number]) if number in of else "-" for of in (first, best))
            gain = f"{first[number] / best[number]:.2f}x" if number in best and first[number] > best[number] else "-"
            count = self.watch.counts.get(task.workload_key, 0)
            yield f"{before:>10} {after:>10} {gain:>6} {self._calls[number]:6.0f} {count:7d}  {task.desc or task.workload_key[:40]}"

    def _progress(self, task_id: int) -> str:
        best, measured = self._seconds(self.watch.best), sum(self.watch.counts.values())
        return (
            f"{time.monotonic() - self._began:5.0f} s  {measured:5d} of {self._trials} tried  {len(best)} of {len(self._tasks)} kernels: "
            f"{_ms(sum(best.values()))} ms  {self._tasks[task_id].desc}"
        )

    def _draw(self, task_id: int) -> None:
        width, height = shutil.get_terminal_size()
        rows = list(self._rows())
        room = max(1, height - _LINES_BELOW)
        rest = [f"{'':42} ... and {len(rows) - room} others"] if len(rows) > room else []
        lines = [line[: width - 1] for line in (_HEAD, *rows[:room], *rest, self._progress(task_id))]
        self._erase()
        print("\n".join(lines), file=self._out, flush=True)
        self._drawn = len(lines)

    def _erase(self) -> None:
        if self._drawn:
            print(f"\x1b[{self._drawn}F\x1b[J", end="", file=self._out)
            self._drawn = 0
