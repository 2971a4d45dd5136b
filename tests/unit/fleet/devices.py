"""Devices that the tests of fleets name on workers' command lines."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tensorexpr.errors import TuningError
from tensorexpr.fleet.simulated import Sleeping
from tensorexpr.tune.measure import MeasureOptions
from tensorexpr.tune.measure.compiled import CompiledCandidate
from tensorexpr.tune.measure.places import Ran
from tensorexpr.tune.measure.protocol import Frame

DEVICE = "tests.unit.fleet.devices:by_entry"


def candidate(entry: str) -> CompiledCandidate:
    """A candidate that says by its name what happens to it."""
    return CompiledCandidate(b"code", entry, (), (), {}, 0, 0)


class ByEntry(Sleeping):
    """Does what a candidate's name says: a file is made by the first device that meets it, and the next ones go on."""

    def run(self, candidates: Sequence[CompiledCandidate], best: Callable[[], float]) -> Iterator[Ran]:
        """Sleep, kill this worker, hang, or be slow."""
        for position, made in enumerate(candidates):
            what, _, file = made.entry.partition(" ")
            first = bool(file) and not Path(file).exists()
            if first:
                Path(file).touch()
            if what == "kills" and first:
                os.kill(os.getpid(), signal.SIGKILL)
            if what == "hangs" and first:
                time.sleep(600)
            time.sleep(0.01)
            speed = 0.0 if what == "unprobed" else 1.0 if what == "slow" and first else 2.0
            costs = [1.0]
            outcome = {"costs": costs, "number": 1, "raced": False, "disturbed": False, "verified": True, "timings": {}, "speed": speed}
            yield position, outcome, 0.01


def by_entry(subject: Frame, options: MeasureOptions, folder: Path) -> ByEntry:
    """Such a device."""
    return ByEntry(0.0)


def refusing(subject: Frame, options: MeasureOptions, folder: Path) -> ByEntry:
    """A device that can't be opened."""
    raise TuningError("the board is not plugged in")
