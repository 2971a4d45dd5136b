"""Devices that don't run anything: `python -m tensorexpr worker ... --device tensorexpr.fleet.simulated:sleeping`.

They show what a fleet itself costs, and what it does when devices fail, without as many machines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..tune.measure.builder import Failure
from ..tune.measure.compiled import CompiledCandidate
from ..tune.measure.places import Ran
from ..tune.measure.protocol import Frame
from ..tune.measure.results import MeasureOptions

# Read where the worker runs; seconds.
SECONDS = "TENSOREXPR_SIMULATED_SECONDS"
_USUAL_SECONDS = "0.05"


class Sleeping:
    """A device on which each candidate takes the same time; its cost is that time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    @property
    def pids(self) -> list[int]:
        """None."""
        return []

    def start(self) -> None:
        """Nothing."""

    def prepare(self) -> None:
        """Nothing."""

    def run(self, candidates: Sequence[CompiledCandidate], best: Callable[[], float]) -> Iterator[Ran]:
        """Sleep for each candidate."""
        for position in range(len(candidates)):
            time.sleep(self._seconds)
            costs = [self._seconds]
            made = {"costs": costs, "number": 1, "raced": False, "disturbed": False, "verified": True, "timings": {}}
            yield position, made, self._seconds

    def interleave(
        self, candidates: Sequence[CompiledCandidate], costs: Sequence[float], rounds: int, offsets: Sequence[int]
    ) -> list[list[float]] | Failure:
        """The same time for all."""
        return [[self._seconds] * rounds for _ in candidates]

    def rest(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def sleeping(subject: Frame, options: MeasureOptions, folder: Path) -> Sleeping:
    """A device that sleeps 50 ms for each candidate, or what the worker's environment says."""
    return Sleeping(float(os.environ.get(SECONDS, _USUAL_SECONDS)))
