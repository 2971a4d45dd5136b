"""The timing policy on a machine whose clock and neighbours are made up."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import pytest

from tensorexpr.tune.measure.timing import Quiet, Timing, TimingPolicy, calls_per_repeat, calmest, interleave, time_candidate

POLICY = TimingPolicy(number=1, repeat=3, min_repeat_ms=10.0, racing_factor=3.0)


@dataclass
class Machine:
    """A kernel that takes `cost` seconds, `taken` times as much while a neighbour has a core: from one time to another."""

    cost: float
    taken_from: float = math.inf
    taken_until: float = math.inf
    slowdown: float = 8.0
    now: float = 0.0
    calls: list[int] = field(default_factory=list)

    def _factor(self) -> float:
        return self.slowdown if self.taken_from <= self.now < self.taken_until else 1.0

    def run(self, number: int) -> float:
        """Call the kernel `number` times."""
        self.calls.append(number)
        spent = sum(self._spend(self.cost) for _ in range(number))
        return spent / number

    def _spend(self, seconds: float) -> float:
        spent = seconds * self._factor()
        self.now += spent
        return spent

    def probe(self) -> float:
        """A millisecond of work."""
        return self._spend(1e-3)

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def quiet(self, patience_s: float = 0.5) -> Quiet:
        """What watches this machine; it has seen a free one."""
        made = Quiet(self.probe, patience_s, self.sleep, lambda: self.now)
        made.now()
        return made


def timed(machine: Machine, first: float, best: float = math.inf, policy: TimingPolicy = POLICY, patience_s: float = 0.5) -> Timing:
    return time_candidate(machine.run, first, policy, best, machine.quiet(patience_s))


def test_repeats_are_filled_with_calls() -> None:
    machine = Machine(cost=1e-3)
    timing = timed(machine, first=2e-3)
    assert timing.costs == pytest.approx((1e-3, 1e-3, 1e-3))
    assert timing.number == 10
    assert machine.calls == [1, 10, 10, 10]


def test_a_call_that_fills_a_repeat_is_one() -> None:
    machine = Machine(cost=2e-2)
    assert timed(machine, first=2.2e-2).costs == pytest.approx((2.2e-2, 2e-2, 2e-2)) and machine.calls == [1, 1]  # so was the first
    slower = Machine(cost=2e-2)
    assert timed(slower, first=2e-2, best=1.2e-2).costs == pytest.approx((2e-2,)) and slower.calls == []
    short = Machine(cost=1.3e-2)
    assert timed(short, first=1.3e-2, policy=replace(POLICY, number=2)).number == 2 and short.calls == [1, 2, 2, 2]


def test_a_slow_candidate_is_timed_once() -> None:
    machine = Machine(cost=1e-3)
    timing = timed(machine, first=1e-3, best=1e-4)
    assert timing.costs == pytest.approx((1e-3,))
    assert timing.raced
    assert machine.calls == [7]  # that would take 2 ms if it were just as slow as is allowed
    slower = Machine(cost=9e-3)
    assert timed(slower, first=9e-3, best=1e-3).raced and slower.calls == []


@pytest.mark.parametrize(("cost", "raced"), [(7e-5, False), (2e-3, True)])
def test_a_first_call_in_a_pause_is_not_all_that_is_known(cost: float, raced: bool) -> None:
    """A core that pauses for 27 ms and is free when it is asked: 400 times the best of 0.07 ms."""
    timing = timed(Machine(cost), first=27e-3, best=6.8e-5)
    assert timing.raced is raced and timing.costs == pytest.approx([cost] * len(timing.costs))


def test_threads_that_wake_up_make_no_short_candidate_slow() -> None:
    machine = Machine(cost=1e-4)

    def run(number: int) -> float:
        return machine.run(number) + 3e-4 / number  # what waking up costs, once a row of calls

    timing = time_candidate(run, 4e-4, POLICY, 1e-4, machine.quiet())
    assert not timing.raced and min(timing.costs) < 1.1e-4


def test_a_very_slow_first_call_is_enough() -> None:
    machine = Machine(cost=0.1)
    assert timed(machine, first=0.1, best=1e-2) == Timing((0.1,), 1, raced=True)
    assert machine.calls == []


@pytest.mark.parametrize("first", [1e-3, 8e-3])
def test_a_neighbour_does_not_make_a_fast_candidate_a_slow_one(first: float) -> None:
    machine = Machine(cost=1e-3, taken_from=1e-3, taken_until=0.3)
    timing = timed(machine, first, best=0.9e-3)
    assert not timing.raced
    assert timing.costs == pytest.approx((1e-3, 1e-3, 1e-3))


def test_a_slow_candidate_beside_a_neighbour_that_stays_is_marked() -> None:
    timing = timed(Machine(cost=1e-2, taken_from=1e-3), first=8e-2, best=1e-3)
    assert timing.raced
    assert timing.disturbed


def test_cold_caches_do_not_race_a_fast_candidate() -> None:
    machine = Machine(cost=1e-5)
    assert not timed(machine, first=1e-3, best=1.1e-5).raced


def test_no_racing_without_a_factor() -> None:
    assert not timed(Machine(cost=1e-3), first=1e-3, best=1e-6, policy=replace(POLICY, racing_factor=0.0)).raced


def test_a_candidate_that_can_not_win_gets_one_repeat() -> None:
    assert len(timed(Machine(cost=1e-3), first=1e-3, best=0.8e-3).costs) == 1
    assert len(timed(Machine(cost=1e-3), first=1e-3, best=0.9e-3).costs) == 3
    assert len(timed(Machine(cost=1e-3), first=1e-3, best=0.6e-3, policy=replace(POLICY, repeat_factor=0.0)).costs) == 3


def test_a_candidate_that_takes_seconds_is_not_run_again() -> None:
    machine = Machine(cost=5.0)
    assert timed(machine, first=5.0) == Timing((5.0,), 1)
    assert machine.calls == []


def test_repeats_of_tenths_of_seconds_are_fewer() -> None:
    assert len(timed(Machine(cost=0.2), first=0.2).costs) == 2


def test_a_neighbour_is_waited_for() -> None:
    machine = Machine(cost=1e-3, taken_from=2e-3, taken_until=0.3)
    timing = timed(machine, first=1e-3)
    assert timing.costs == pytest.approx((1e-3, 1e-3, 1e-3))
    assert not timing.disturbed


def test_patience_ends() -> None:
    machine = Machine(cost=1e-3, taken_from=2e-3)
    timing = timed(machine, first=1e-3)
    assert timing.disturbed
    assert timing.costs == pytest.approx((8e-3, 8e-3, 8e-3))
    assert machine.now < 2.0


def test_of_disturbed_repeats_the_shortest_count() -> None:
    machine = Machine(cost=1e-3)
    factors = iter([1, 1, 8, 8, 1, 8, 8, 8, 8, 8])

    def run(number: int) -> float:
        return next(factors) * machine.run(number)

    timing = time_candidate(run, 1e-3, POLICY, math.inf, machine.quiet())
    assert timing.disturbed
    assert timing.costs == pytest.approx((1e-3, 1e-3, 8e-3))


def test_patience_halves_when_it_was_in_vain_and_comes_back() -> None:
    machine = Machine(cost=1e-3, taken_from=5e-3, taken_until=3.0)
    quiet = machine.quiet()
    machine.now = 0.01
    waits = []
    for _ in range(4):
        start = machine.now
        assert not quiet.wait()
        waits.append(machine.now - start)
    assert waits[3] < waits[0] / 3
    machine.now = 3.1
    assert quiet.wait()
    machine.taken_until = math.inf
    start = machine.now
    assert not quiet.wait()
    assert machine.now - start > waits[3]


def test_a_clock_that_is_faster_after_a_rest_is_not_waited_for() -> None:
    machine = Machine(cost=1e-3)
    rested_until = 0.0

    def probe() -> float:
        factor = 1.0 if machine.now < rested_until else 1.3
        machine.now += factor * 1e-3
        return factor * 1e-3

    def sleep(seconds: float) -> None:
        nonlocal rested_until
        machine.now += seconds
        rested_until = machine.now + (0.05 if seconds > 0.1 else 0.0)

    quiet = Quiet(probe, 0.5, sleep, lambda: machine.now)
    rested_until = 0.01  # the first probes find a processor that has rested
    begun = machine.now
    for _ in range(50):
        quiet.wait()
        machine.now += 0.04
    assert machine.now - begun < 50 * 0.045 + 1.5
    machine.now += 1.0
    assert quiet.now()


def test_a_disturbance_between_probes_shows_in_the_spread() -> None:
    machine = Machine(cost=1e-3, taken_from=0.02, taken_until=0.03)
    timing = timed(machine, first=1e-3)
    assert timing.costs == pytest.approx((1e-3, 1e-3, 1e-3))
    assert len(machine.calls) > 4


def test_without_patience_nothing_is_probed() -> None:
    def fail() -> float:
        raise AssertionError("probed")

    quiet = Quiet(fail, 0.0)
    assert quiet.now()
    assert quiet.wait()


def test_cold_measurements_have_one_call_a_repeat() -> None:
    assert timed(Machine(cost=1e-6), first=1e-6, policy=replace(POLICY, flush_caches=True)).number == 1


@pytest.mark.parametrize(("cost", "number", "calls"), [(1e-3, 1, 10), (1e-3, 30, 30), (0.25, 5, 2), (30.0, 1, 1), (0.0, 1, 1_000_000)])
def test_calls_per_repeat(cost: float, number: int, calls: int) -> None:
    assert calls_per_repeat(cost, replace(POLICY, number=number)) == calls


def test_interleaving_lets_drift_hit_all_alike() -> None:
    machine = Machine(cost=1e-3, taken_from=0.05, taken_until=0.1, slowdown=2.0)
    order: list[str] = []

    def runner(name: str, cost: float) -> float:
        order.append(name)
        machine.cost = cost
        return machine.run(1)

    costs = interleave(
        [lambda n: runner("a", 1e-3), lambda n: runner("b", 1.02e-3), lambda n: runner("c", 2e-3)], [1] * 3, 4, machine.quiet()
    )
    assert order == ["a", "b", "c"] * 3 + ["a", "b"]  # one that is far slower leaves
    assert [sorted(row)[2] for row in costs] == pytest.approx([1e-3, 1.02e-3, 2e-3])
    assert [len(row) for row in calmest(costs, 2)] == [2, 2, 3]


def test_rounds_that_were_disturbed_are_left_out_for_all_alike() -> None:
    costs = [[1.0, 9.0, 1.1, 1.0, 1.2], [2.0, 2.0, 2.0, 2.1, 4.0]]
    assert calmest(costs, 3) == [[1.0, 1.1, 1.0], [2.0, 2.0, 2.1]]
    assert calmest([[3.0, 1.0]], 2) == [[3.0, 1.0]]


@pytest.mark.parametrize(
    ("best", "factor", "limit"), [(0.1, 20.0, 2.0), (1e-6, 20.0, 0.5), (math.inf, 20.0, math.inf), (0.1, 0.0, math.inf)]
)
def test_a_first_call_may_take_some_multiples_of_the_best(best: float, factor: float, limit: float) -> None:
    assert replace(POLICY, stop_factor=factor).first_call_limit(best) == limit


def test_only_one_call_after_a_flush_is_a_cold_one() -> None:
    assert calls_per_repeat(1e-6, replace(POLICY, number=10, flush_caches=True)) == 1
