"""How a task scheduler ends: a descent from each task's best program, and the best few of each timed again in turn.

The last share of the trials is not given out by gradients: it is divided by what each task adds to the objective, and
measures the neighbours of what was found (`tune.descent`). Then all that was found alone, in other weather, is compared.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..tune.descent import BATCH
from .options import UNLIMITED

# Seconds of a time budget that timing the best few of one task again takes, and the most of the budget that all may take.
_AGAIN_S, _AGAIN_PART = 2.0, 0.1


def descent_trials(share: float, trials: int, tasks: int) -> int:
    """Trials that are kept for the descent: none if most tasks would not get a batch of them."""
    kept = 0 if trials >= UNLIMITED else round(share * trials)
    return kept if kept >= BATCH * tasks else 0


def divided(total: int, parts: Sequence[float]) -> list[int]:
    """A number divided in proportion to parts; what rounding leaves goes to the largest remainders. Parts of 0 get nothing."""
    # Exact, so that equal parts get equal shares whatever their order.
    whole = math.fsum(parts)
    if whole <= 0 or not math.isfinite(whole):
        return [0] * len(parts)
    exact = [total * part / whole for part in parts]
    given = [math.floor(value) for value in exact]
    # the largest remainder is the most negative number here
    order = sorted(range(len(parts)), key=lambda n: (given[n] - exact[n], n))
    for number in order[: total - sum(given)]:
        given[number] += 1
    return given


def descend(descend_task: Callable[[int, int, float], object], parts: Sequence[float], left: int, deadline: float, is_timed: bool) -> None:
    """Spend the trials, or the time, that are left on descents from the tasks' best programs.

    Args:
        descend_task: takes the number of a task, its trials, and the moment of `time.monotonic` at which it ends.
        parts: what each task adds to the objective.
        left: trials.
        deadline: of all, of which each task gets its part if there is a budget of time.
    """
    trials = divided(left, parts) if left < UNLIMITED // 2 else [UNLIMITED] * len(parts)
    for number, count in enumerate(trials):
        now = time.monotonic()
        # of the time that is left now, so that what one task didn't use goes to the others
        rest = math.fsum(parts[number:])
        if parts[number] and count and now < deadline:
            descend_task(number, count, now + (deadline - now) * parts[number] / rest if is_timed else deadline)


def seconds_for_timing_again(budget: float | None, tasks: int) -> float:
    """Seconds of a budget that are kept for timing the best few again."""
    return 0.0 if budget is None else min(_AGAIN_S * tasks, _AGAIN_PART * budget)


def descent_share(policies: Sequence[Any]) -> float:
    """The share of trials that policies give to the descent; of several the least."""
    return min((float(policy.params.get("descent_share", 0.0)) for policy in policies), default=0.0)
