"""How a candidate is timed: how often it is called, when it is given up, and when a measurement is not believed."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ...dataclass import asdict, dataclass

# A probe this much slower than usual, or than the fastest one, means that somebody else has a core. A core that is shared is at least
# half as fast; one that has rested may run faster by a quarter for a while than its clock allows at length.
_TAKEN, _HALVED = 1.25, 2.0
# Repeats that differ by more than this are timed again.
_SPREAD = 1.5
_ATTEMPTS = 3
_REMEMBERED_PROBES = 200
_RECENT_PROBES = 8
_FIRST_WAIT_SECONDS = 0.01
_LEAST_PATIENCE_SECONDS = 0.01
# Of candidates that are timed in turn one leaves after so many rounds if its fastest one is so much slower than the best one's: rounds
# of one program differ by 1 to 3 %, the fastest of three by less.
_LEAVES_AFTER, _LEAVES = 3, 1.03
# All repeats of a candidate together; slower ones get fewer and shorter repeats. A call of tenths of a second varies little, and the best
# few are timed in turn at the end.
_BUDGET_SECONDS = 0.5
# A first call that meets cold caches says little below this.
_COLD_SECONDS = 2e-3
# What decides whether a candidate is slow lasts about as long, if it is just as slow as is allowed.
_RACE_SECONDS = 2e-3
_MOST_CALLS_OF_RACE = 200
# A pause of a core, such as the 50 ms of each second that threads of real-time priority rest, makes any call one of so many times the
# best. What a longer call says is believed: to ask again would cost more than the answer is worth.
_FAR, _PAUSE_SECONDS = 10.0, 0.1
# About what a measuring process takes to start and to load its arrays.
_PROCESS_SECONDS = 0.5
# How fast the cores were beside a candidate, among what the measuring process says of it; see `native.Probe.speed`.
SPEED = "speed"
Run = Callable[[int], float]  # how many calls in a row -> seconds per call
Clock = Callable[[], float]


@dataclass(frozen=True)
class TimingPolicy:
    """How candidates are timed; part of every record.

    Args:
        number: calls in a row that make one repeat, at least.
        repeat: repeats; each gives one cost.
        min_repeat_ms: a repeat gets as many calls as fill this time.
        racing_factor: a candidate that is this much slower than the best one so far is called once more only; 0 times all fully.
        repeat_factor: one that is this much slower gets one repeat only; 0 gives all of them to everyone. Repeats differ by a few
            percent, so what lies far beyond that is none of the best few, and needn't be known to the percent.
        flush_caches: drop all arrays from the caches before each repeat, which then is one call.
        swept_bytes: that something else reads on each core before each call, which then finds its arrays further away, as kernels of a
            network do; 0 calls in a row.
        cooldown_s: rest after each candidate, outside of its limit.
        patience_s: how long to wait at most for a core that somebody else has taken; 0 neither probes nor waits.
        stop_factor: a first call that takes this many times the best is stopped; 0 never stops one. The model gives programs 20
            times slower than the best its least weight: how slow they are teaches nothing more.
    """

    number: int = 1
    repeat: int = 3
    min_repeat_ms: float = 12.0
    racing_factor: float = 3.0
    repeat_factor: float = 1.15
    flush_caches: bool = False
    swept_bytes: int = 0
    cooldown_s: float = 0.0
    patience_s: float = 0.5
    stop_factor: float = 20.0

    def first_call_limit(self, best: float) -> float:
        """Seconds that the first call of a candidate may take, beside a best one of so many; infinite without a best.

        Stopping costs a process, so that what takes no longer than to start one goes on.
        """
        return max(_PROCESS_SECONDS, self.stop_factor * best) if self.stop_factor else math.inf

    def to_json(self) -> dict[str, Any]:
        """The policy as JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Timing:
    """Seconds per call of each repeat, the calls of a repeat, and whether it was cut short or disturbed throughout."""

    costs: tuple[float, ...]
    number: int
    raced: bool = False
    disturbed: bool = False


class Quiet:
    """Knows how fast the cores are when nobody else uses them, and waits for that.

    A machine that is always busy would cost all the patience again and again, so patience halves each time it was in vain.
    """

    def __init__(
        self, probe: Callable[[], float], patience_s: float, sleep: Callable[[float], None] = time.sleep, clock: Clock = time.monotonic
    ) -> None:
        self._probe = probe
        self._full_patience_s = self._patience_s = patience_s
        self._sleep = sleep
        self._clock = clock
        self._probes: deque[float] = deque(maxlen=_REMEMBERED_PROBES)

    def now(self) -> bool:
        """Whether all cores are free at this moment, as far as a short probe can tell."""
        if not self._full_patience_s:
            return True
        self._probes.append(self._probe())
        # the quartile is what is usual while others may disturb most of the probes; the least one may be of a core that had rested
        ordered = sorted(self._probes)
        return self._probes[-1] <= min(_TAKEN * ordered[len(ordered) // 4], _HALVED * ordered[0])

    def fastest(self) -> float:
        """Seconds of the fastest of the last few probes; 0 if there were none."""
        return min(list(self._probes)[-_RECENT_PROBES:], default=0.0)

    def wait(self) -> bool:
        """Wait until the cores are free; False if patience ended first."""
        deadline = self._clock() + self._patience_s
        pause = _FIRST_WAIT_SECONDS
        while not self.now():
            if self._clock() + pause > deadline:
                self._patience_s = max(_LEAST_PATIENCE_SECONDS, self._patience_s / 2)
                return False
            self._sleep(pause)
            pause *= 2
        self._patience_s = self._full_patience_s
        return True


def time_candidate(run: Run, first: float, policy: TimingPolicy, best: float, quiet: Quiet) -> Timing:
    """Time a candidate that has run once.

    Args:
        run: calls it.
        first: seconds that its first call took, with cold caches.
        policy: how.
        best: cost of the best candidate so far; infinite if there is none.
        quiet: tells when a measurement can't be believed.
    """
    limit = policy.racing_factor * best if policy.racing_factor else math.inf
    if first > _BUDGET_SECONDS:
        return Timing((first,), 1, raced=first > limit)
    calls = _calls_of_race(limit, policy)
    # Of one that fills a repeat alone the first call was a repeat: what caches and threads add to it is less than what repeats differ by.
    enough = policy.min_repeat_ms * 1e-3 if policy.min_repeat_ms and policy.number == 1 and not policy.flush_caches else math.inf
    warm = first if first > max(min(limit, enough), _COLD_SECONDS) else run(calls)
    if _FAR * best < warm == first < _PAUSE_SECONDS:
        warm = min(first, run(1))
    if warm > limit:
        calm = quiet.now()
        if not calm:  # perhaps it isn't slow at all
            calm = quiet.wait()
            warm = run(calls)
        if warm > limit:
            return Timing((warm,), 1, raced=True, disturbed=not calm)
    number = calls_per_repeat(warm, policy)
    # a warm call of as many calls as a repeat is the first repeat
    begun: list[float] = [warm] if number == (1 if warm == first else calls) else []
    costs: list[float] = []
    for _ in range(_ATTEMPTS):
        timing, begun = _repeats(run, begun, number, policy, best), []
        calm = quiet.now()
        costs += timing.costs
        # against the fastest of all attempts: one that is slow from end to end has no spread of its own
        if calm and max(timing.costs) <= _SPREAD * min(costs):
            return timing
        if not calm and not quiet.wait():
            break
    # Others only ever add time, so the shortest repeats are nearest to the truth.
    return Timing(tuple(sorted(costs)[: len(timing.costs)]), timing.number, disturbed=True)


def _calls_of_race(limit: float, policy: TimingPolicy) -> int:
    """How many calls in a row decide whether a candidate is slow: alone, a short one takes as long as its threads take to wake up."""
    if policy.flush_caches or not 0 < limit < _RACE_SECONDS:
        return 1
    return min(_MOST_CALLS_OF_RACE, math.ceil(_RACE_SECONDS / limit))


def _repeats(run: Run, begun: Sequence[float], number: int, policy: TimingPolicy, best: float) -> Timing:
    """All repeats of so many calls, the first of which may be there; one of a candidate that can't win."""
    costs = [*begun] or [run(number)]
    if not policy.repeat_factor or costs[0] <= policy.repeat_factor * best:
        repeat = min(policy.repeat, int(_BUDGET_SECONDS / max(costs[0] * number, 1e-9)))
        costs += [run(number) for _ in range(repeat - 1)]
    return Timing(tuple(costs), number)


def calls_per_repeat(cost: float, policy: TimingPolicy) -> int:
    """How many calls of `cost` seconds make a repeat. Only the first call after a flush meets cold caches, so that is one then."""
    if policy.flush_caches:
        return 1
    wanted = max(policy.number, math.ceil(policy.min_repeat_ms * 1e-3 / max(cost, 1e-8)))
    return max(1, min(wanted, math.floor(_BUDGET_SECONDS / max(cost, 1e-8))))


def calmest(costs: Sequence[Sequence[float]], count: int) -> list[list[float]]:
    """So many of the rounds of candidates that were timed in turn: those that were disturbed least.

    Others only ever add time. A round is kept for all candidates or for none, so that they stay comparable round by round; one that
    left before the end keeps what it has.

    Args:
        costs: of each candidate, one number a round.
        count: rounds to keep, in their order.
    """
    rounds = max(map(len, costs))
    # relative to each one's best: else the slowest candidate alone would say which rounds were calm
    slowness = [sum(row[number] / min(row) for row in costs if len(row) == rounds) for number in range(rounds)]
    kept = sorted(sorted(range(rounds), key=lambda number: (slowness[number], number))[:count])
    return [[row[number] for number in kept] if len(row) == rounds else list(row) for row in costs]


def interleave(runs: Sequence[Run], numbers: Sequence[int], rounds: int, quiet: Quiet) -> list[list[float]]:
    """Seconds per call of several candidates in turn, round after round, so that drift of the machine hits all alike.

    One that is clearly slower than another leaves early, and has fewer rounds.
    """
    costs: list[list[float]] = [[] for _ in runs]
    staying = list(range(len(runs)))
    for done in range(rounds):
        quiet.wait()
        for place in staying:
            costs[place].append(runs[place](numbers[place]))
        if done + 1 >= _LEAVES_AFTER:
            least = min((min(costs[place]) for place in staying), default=0.0)
            staying = [place for place in staying if min(costs[place]) <= _LEAVES * least]
    return costs
