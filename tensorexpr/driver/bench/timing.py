"""Contenders in turn: each round calls every one of them, so that a drift of the clock hits all alike.

A turn waits until the other side's threads sleep (OpenBLAS's spin for 60 to 100 ms after a call and would halve whatever
runs next), calls once untimed, which wakes its own threads, and then times a batch of calls from Python.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

from ...dataclass import dataclass
from ...tune.measure.native import drop_from_caches
from .probes import OWN_CORES, Probes, wait_until_quiet

Call = Callable[[], object]


@dataclass(frozen=True)
class Sample:
    """Seconds per call: the median over the rounds, their 20th and 80th percentile, and the median with cold caches.

    `disturbed` counts the rounds in which the FMA probe stayed below `OWN_CORES` of its best, `share` is the least part that it reached.
    """

    median: float
    low: float
    high: float
    cold: float
    disturbed: int = 0
    share: float = 1.0


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


def interleaved(contenders: Sequence[Contender], rules: Rules, probes: Probes | None = None) -> Mapping[str, Sample]:
    """Time the contenders in turn.

    Args:
        probes: if given, every round waits until the FMA probe reaches 90 % of its best, and is probed again at its end.
    """
    counts = {one.name: _batch_size(one, rules) for one in contenders}
    warm: dict[str, list[float]] = {one.name: [] for one in contenders}
    cold: dict[str, list[float]] = {one.name: [] for one in contenders}
    shares = [1.0]
    for number in range(rules.rounds):
        share = 1.0 if probes is None else wait_until_quiet(probes, rules.patience)
        for one in contenders:
            time.sleep(rules.pause)
            one.call()
            warm[one.name].append(one.seconds(counts[one.name]))
            if number < rules.cold_rounds and one.memory:
                drop_from_caches(one.memory)
                cold[one.name].append(one.seconds(1))
        if probes is not None:
            time.sleep(rules.pause)
            shares.append(min(share, probes.share_of_best()))
    return {name: _sample(times, cold[name], shares) for name, times in warm.items()}


def _batch_size(one: Contender, rules: Rules) -> int:
    one.call()
    seconds = min(one.seconds(1) for _ in range(3))
    return max(1, min(10_000, int(rules.batch / max(seconds, 1e-7))))


def _sample(warm: Sequence[float], cold: Sequence[float], shares: Sequence[float]) -> Sample:
    ordered = sorted(warm)
    # of nine rounds one at each end is left out
    fifth = len(ordered) // 5
    return Sample(
        statistics.median(ordered),
        ordered[fifth],
        ordered[-1 - fifth],
        statistics.median(cold) if cold else float("nan"),
        sum(share < OWN_CORES for share in shares),
        min(shares),
    )
