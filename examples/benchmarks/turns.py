"""What benchmarks beside other libraries share: calls of several in turn, in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def in_turn(calls: Sequence[Callable[[], Any]], rounds: int, each: int, pause: float) -> list[float]:
    """Milliseconds of each, the 20th percentile of its calls.

    Args:
        calls: what is timed; each is called once more before its calls of a round, which find its data in the caches.
        rounds: how often all have their turn.
        each: calls of a turn that are timed.
        pause: seconds before a turn, until the threads of the others sleep.
    """
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, found in zip(calls, times, strict=True):
            time.sleep(pause)
            call()
            for _ in range(each):
                start = time.perf_counter()
                call()
                found.append(time.perf_counter() - start)
    return [float(np.percentile(one, 20)) * 1e3 for one in times]
