"""Contenders in turn: each round calls every one of them, so that a drift of the clock hits all alike.

A turn waits until the other side's threads sleep (OpenBLAS's spin for 60 to 100 ms after a call and would halve whatever
runs next), calls once untimed, which wakes its own threads, and then times a batch of calls from Python.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...tune.measure.native import drop_from_caches
from .probes import Probes, wait_until_quiet

Call = Callable[[], object]


@dataclass(frozen=True)
class Sample:
    """Seconds per call: the median over the rounds, the middle half of them, and the median with cold caches."""

    median: float
    low: float
    high: float
    cold: float
    disturbed: int = 0


@dataclass(frozen=True)
class Rules:
    """How to time.

    Args:
        rounds: turns of each contender.
        pause: seconds between two contenders.
        batch: seconds that a turn's calls fill, about.
        cold_rounds: single calls after the arrays were dropped from the caches.
        patience: seconds that a round waits for a quiet machine before it goes on and says so.
    """

    rounds: int = 9
    pause: float = 0.15
    batch: float = 0.02
    cold_rounds: int = 5
    patience: float = 20.0


@dataclass(frozen=True)
class Contender:
    """A name, what to call, and the memory that a cold call finds outside the caches, as (address, bytes).

    What lives in another process times itself: `timer` gives the seconds of one call, from a loop of so many.
    """

    name: str
    call: Call
    memory: Sequence[tuple[int, int]] = ()
    timer: Callable[[int], float] | None = None

    def seconds(self, count: int) -> float:
        """Seconds of one call, as the mean of `count`."""
        if self.timer is not None:
            return self.timer(count)
        start = time.perf_counter()
        for _ in range(count):
            self.call()
        return (time.perf_counter() - start) / count


def interleaved(contenders: Sequence[Contender], rules: Rules, probes: Probes | None = None, peak: float = 0.0) -> Mapping[str, Sample]:
    """Time the contenders in turn.

    Args:
        probes, peak: if given, every round waits until the machine reaches 90 % of this FMA peak.
    """
    counts = {one.name: _batch_size(one, rules) for one in contenders}
    warm: dict[str, list[float]] = {one.name: [] for one in contenders}
    cold: dict[str, list[float]] = {one.name: [] for one in contenders}
    disturbed = 0
    for number in range(rules.rounds):
        if probes is not None and peak and not wait_until_quiet(probes, peak, rules.patience):
            disturbed += 1
        for one in contenders:
            time.sleep(rules.pause)
            one.call()
            warm[one.name].append(one.seconds(counts[one.name]))
            if number < rules.cold_rounds and one.memory:
                drop_from_caches(one.memory)
                cold[one.name].append(one.seconds(1))
    return {name: _sample(times, cold[name], disturbed) for name, times in warm.items()}


def _batch_size(one: Contender, rules: Rules) -> int:
    one.call()
    seconds = min(one.seconds(1) for _ in range(3))
    return max(1, min(10_000, int(rules.batch / max(seconds, 1e-7))))


def _sample(warm: Sequence[float], cold: Sequence[float], disturbed: int) -> Sample:
    ordered = sorted(warm)
    quarter = len(ordered) // 4
    return Sample(
        statistics.median(ordered),
        ordered[quarter],
        ordered[-1 - quarter],
        statistics.median(cold) if cold else float("nan"),
        disturbed,
    )
