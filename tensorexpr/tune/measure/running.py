"""Candidates run on this machine: the arrays of their task, and the measuring process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .builder import Failure
from .compiled import CompiledCandidate
from .results import MeasureOptions
from .runner import Runner
from .workers import Workers

if TYPE_CHECKING:
    from .places import Ran, Subject


class RunningHere:
    """Runs candidates of one task in a process apart, one after the other.

    Args:
        subject: what is measured.
        options: how.
        folder: where the arrays are.
        workers: serve other tasks too, and outlive it; None for processes of its own.
    """

    def __init__(self, subject: Subject, options: MeasureOptions, folder: Path, workers: Workers | None = None) -> None:
        self._subject, self._options, self._folder, self._workers = subject, options, folder, workers
        self._arrays = subject.arrays_in(options, folder, workers)
        self._runner: Runner | None = None
        self._is_started = False

    @property
    def pids(self) -> list[int]:
        """The process ids of the workers that run now."""
        return [*self._arrays.pids, *([] if self._runner is None else self._runner.pids)]

    def start(self) -> None:
        """Begin to make the arrays, without waiting; once."""
        if not self._is_started:
            self._is_started = True
            self._arrays.start()

    def prepare(self) -> None:
        """Start the measuring process, once the arrays are there."""
        if self._runner is None:
            self._the_runner().start()

    def run(self, candidates: Sequence[CompiledCandidate], best: Callable[[], float]) -> Iterator[Ran]:
        """Check and time candidates in their order; see `runner.Runner.run`."""
        for position, candidate in enumerate(candidates):
            outcome, seconds = self._the_runner().run(candidate, best())
            time.sleep(self._options.timing.cooldown_s)
            yield position, outcome, seconds

    def interleave(
        self, candidates: Sequence[CompiledCandidate], costs: Sequence[float], rounds: int, offsets: Sequence[int]
    ) -> list[list[float]] | Failure:
        """Costs of candidates that ran before, measured in turn; see `runner.Runner.interleave`."""
        return self._the_runner().interleave(candidates, costs, rounds, offsets)

    def close(self) -> None:
        """Kill the processes, but those that others use too. Safe to call again."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None
        self._arrays.close()

    def rest(self) -> None:
        """Kill the measuring process, which holds all arrays in memory, unless others use it too; the files stay."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def _the_runner(self) -> Runner:
        if self._runner is None:
            self.start()
            self._runner = Runner(self._subject, self._arrays.arrays(), self._options, self._folder, self._workers)
        return self._runner
