"""Lines while a network is tuned: how long it has taken, what is measured, and what a run of the network is expected to take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...auto_scheduler.callbacks import MeasureCallback
from ...auto_scheduler.loaded import LoadedRecord
from ...dataclass import dataclass, field
from ...tune.measure.results import TIMED_AGAIN
from ...tune.records import choose_best

_EVERY_S = 1.0


@dataclass(frozen=True)
class TuningProgress:
    """Where tuning is.

    Args:
        seconds, budget_s: since it began, and what it has.
        trials: programs measured so far.
        task: the kernel whose program was measured last.
        untuned_s: seconds of a run of the network by rules.
        expected_s: what a run is expected to take with the programs found so far.
    """

    seconds: float
    budget_s: float
    trials: int
    task: str
    untuned_s: float
    expected_s: float

    def __str__(self) -> str:
        return (
            f"{self.seconds:4.0f} of {self.budget_s:.0f} s  {self.trials:5d} programs  expected {self.expected_s * 1e3:.3f} ms, "
            f"untuned {self.untuned_s * 1e3:.3f} ms  {self.task}"
        )


Progress = bool | Callable[[TuningProgress], None] | None


@dataclass(eq=False)
class Watch(MeasureCallback):
    """Counts what is measured, and tells of it.

    Args:
        progress: a function; True for lines on stderr, False for none, None for lines if it is a terminal.
        budget_s: seconds.
        untuned_s: of a run of the network.
        shares: seconds of it by workload key.
    """

    progress: Progress
    budget_s: float
    untuned_s: float
    shares: Mapping[str, float]
    began: float = field(default_factory=time.monotonic)
    trials: int = 0
    first: dict[str, float] = field(default_factory=dict)
    best: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    _last: float = 0.0

    def callback(self, policy: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """Count results of one task."""
        for made, result in zip(inputs, results, strict=True):
            key = made.task.workload_key
            if TIMED_AGAIN not in result.policy:  # which is no other program
                self.trials += 1
                self.counts[key] = self.counts.get(key, 0) + 1
            # What rules choose is measured first: by it the time within the network is scaled. The unscheduled program is none of it.
            if result.is_success and len(made.trace):
                self.first.setdefault(key, result.median)
                self.best[key] = min(self.best.get(key, result.median), result.median)
        if inputs:
            self.tell(inputs[-1].task.desc)

    def expect(self, key: str, seconds: float) -> None:
        """Compare the programs of a task with what a call of its kernel takes by rules, where no program by rules is measured."""
        self.first[key] = seconds
        self.best[key] = min(self.best.get(key, seconds), seconds)

    @property
    def expected_s(self) -> float:
        """What a run of the network is expected to take: each tuned task's share by what its best program takes of its first one."""
        return self.untuned_s - sum(
            self.shares.get(key, 0.0) * (1 - self.best[key] / first) for key, first in self.first.items() if first > 0
        )

    @property
    def prints(self) -> bool:
        """Whether there are lines on stderr."""
        if self.progress is None:
            return sys.stderr is not None and sys.stderr.isatty()
        return self.progress is True

    def say(self, text: str) -> None:
        """A line of its own."""
        if self.prints:
            print(text, file=sys.stderr, flush=True)

    def tell(self, task: str) -> None:
        """Say where it is."""
        now = time.monotonic()
        said = TuningProgress(now - self.began, self.budget_s, self.trials, task, self.untuned_s, self.expected_s)
        if callable(self.progress):
            self.progress(said)
        elif self.prints and now - self._last >= _EVERY_S:
            self._last = now
            print(said, file=sys.stderr, flush=True)

    def recall(self, records: Iterable[LoadedRecord]) -> None:
        """Take up what a log has: the first program of each task, which rules chose, its best one, and how many there are."""
        found: dict[str, list[LoadedRecord]] = {}
        for record in records:
            if record.workload_key in self.shares:
                found.setdefault(record.workload_key, []).append(record)
        for key, known in found.items():
            self.counts[key] = sum(not record.is_timed_again for record in known)
            ran = [record for record in known if record.is_success and len(record.trace)]
            best = choose_best(known)[0]
            if ran and best is not None:
                # Times of one session compare: where both were timed again, it is those.
                of_first = [record.median for record in ran if record.trace == ran[0].trace]
                self.first[key], self.best[key] = max(of_first[-1] if best.is_timed_again else of_first[0], best.median), best.median
