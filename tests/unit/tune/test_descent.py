"""Coordinate descent, on costs that are made up: it goes downhill, ends at a local optimum, and stays within its share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr.auto_scheduler import SearchTask, SketchPolicy
from tensorexpr.errors import TuningError
from tensorexpr.tune.cost_model import PriorModel
from tensorexpr.tune.descent import BATCH, Descent, is_faster
from tensorexpr.tune.evolution import Candidate, EvolutionOptions
from tensorexpr.tune.measure import MeasureErrorNo, MeasureResult, Program
from tensorexpr.tune.space import IntArray
from tensorexpr.tune.tuner import Tuner, TunerObserver, TunerOptions
from tests.effort import share_of

TASK = SearchTask(func="v06_matmul", args=(16, 32, 8), target="llvm -mcpu=x86-64-v3 -num-cores=2")
SKETCHES = SketchPolicy(TASK).generate_sketches()[::2]
LARGEST = max(range(len(SKETCHES)), key=lambda number: len(SKETCHES[number].decisions))
Cost = Callable[[Candidate], float]


def no_opinion(number: int, rows: IntArray) -> Any:
    return np.zeros(len(rows))


def bowl(goal: Sequence[int]) -> Cost:
    """The farther a row is from the goal, the slower."""
    return lambda candidate: 1.0 + sum(abs(a - b) for a, b in zip(candidate.row, goal, strict=True))


def rugged(seed: int) -> Cost:
    """Any row costs anything, always the same."""
    return lambda candidate: 1.0 + float(np.random.default_rng([seed, candidate.sketch, *candidate.row]).random())


def centre_of(sketch: int) -> Candidate:
    return Candidate(sketch, tuple(decision.count // 2 for decision in SKETCHES[sketch].decisions))


def walk(cost: Cost, start: Candidate, batches: int, score: Any = no_opinion, count: int = BATCH) -> tuple[Descent, list[list[Candidate]]]:
    """A whole descent, and what it measured."""
    made = Descent(SKETCHES, score, lambda candidates: [[cost(c)] * 7 for c in candidates])
    made.start({start: cost(start)})
    seen, asked = {start}, []
    for _ in range(batches):
        batch = made.propose(count, seen)
        if not batch:
            break
        assert not seen & set(batch) and len(set(batch)) == len(batch) <= count
        seen |= set(batch)
        asked.append(batch)
        made.judge({candidate: cost(candidate) for candidate in batch})
    return made, asked


def neighbours(candidate: Candidate) -> set[Candidate]:
    found = set()
    for axis, decision in enumerate(SKETCHES[candidate.sketch].decisions):
        table, counts = decision.neighbours
        for choice in table[candidate.row[axis], : counts[candidate.row[axis]]].tolist():
            found.add(Candidate(candidate.sketch, (*candidate.row[:axis], choice, *candidate.row[axis + 1 :])))
    return found - {candidate}


@settings(deadline=None, derandomize=True, max_examples=share_of(15))
@given(st.integers(0, 10_000), st.integers(1, 12))
def test_it_ends_no_slower_than_it_began_and_better_than_every_neighbour(seed: int, count: int) -> None:
    cost, start = rugged(seed), centre_of(LARGEST)
    _, asked = walk(cost, start, 60, count=count)
    measured = [start, *(candidate for batch in asked for candidate in batch)]
    best = min(measured, key=cost)
    assert cost(best) <= cost(start)
    if len(asked) < 60:  # it stopped by itself: nothing near is left to try, beyond what counts as noise
        assert all(cost(other) >= 0.995 * cost(best) for other in neighbours(best))


def test_it_finds_the_bottom_of_a_bowl() -> None:
    goal = tuple(0 for _ in SKETCHES[LARGEST].decisions)
    made, asked = walk(bowl(goal), centre_of(LARGEST), 200)
    best = min((c for batch in asked for c in batch), key=bowl(goal))
    assert bowl(goal)(best) < bowl(goal)(centre_of(LARGEST)) and made.moves > 1


def test_what_may_not_be_built_is_never_proposed() -> None:
    def even_only(number: int, rows: IntArray) -> Any:
        return np.where(rows.sum(axis=1) % 2 == 0, 0.0, -np.inf)

    start = centre_of(LARGEST)
    _, asked = walk(rugged(1), start, 20, even_only)
    assert asked and all(sum(candidate.row) % 2 == 0 for batch in asked for candidate in batch)


def test_the_first_batch_moves_different_decisions_and_the_unlikely_come_last() -> None:
    start = centre_of(LARGEST)

    def dislikes_first(number: int, rows: IntArray) -> Any:
        return np.where(rows[:, 0] != start.row[0], -5.0, 0.0)

    _, asked = walk(lambda candidate: 1.0, start, 1, dislikes_first)
    axes = [[a != b for a, b in zip(c.row, start.row, strict=True)].index(True) for c in asked[0]]
    assert 0 not in axes and len(set(axes)) > 1


def test_noise_alone_moves_nothing() -> None:
    """A neighbour that looked faster alone but isn't in turn."""
    start = centre_of(LARGEST)
    made = Descent(SKETCHES, no_opinion, lambda candidates: [[1.0] * 7 for _ in candidates])
    made.start({start: 1.0})
    batch = made.propose(4, {start})
    assert not made.judge({candidate: 0.5 for candidate in batch})
    assert made.centre == start and made.moves == 0


def test_a_failed_contest_moves_nothing() -> None:
    start = centre_of(LARGEST)
    made = Descent(SKETCHES, no_opinion, lambda candidates: [() for _ in candidates])
    made.start({start: 1.0})
    batch = made.propose(4, {start})
    assert not made.judge({candidate: 0.5 for candidate in batch}) and made.centre == start


def test_it_starts_at_the_best_of_the_contest_not_of_single_timings() -> None:
    first, second = centre_of(LARGEST), Candidate(LARGEST, tuple(0 for _ in SKETCHES[LARGEST].decisions))
    true = {first: 1.0, second: 0.8}
    made = Descent(SKETCHES, no_opinion, lambda candidates: [[true[c]] * 7 for c in candidates])
    made.start({first: 0.7, second: 0.9})
    assert made.centre == second and made.cost == made.start_cost == 0.8


def test_nothing_known_proposes_nothing() -> None:
    made = Descent(SKETCHES, no_opinion, lambda candidates: [])
    made.start({})
    assert made.propose(8, set()) == [] and not made.judge({})


@pytest.mark.parametrize(
    ("costs", "faster"),
    [
        ([0.9] * 7, True),
        ([0.999] * 7, False),  # too little
        ([0.9] * 6 + [1.1], True),
        ([0.9] * 5 + [1.1] * 2, False),  # too often slower
        ([1.1] * 7, False),
        ([], False),
    ],
)
def test_faster_is_beyond_the_noise(costs: list[float], faster: bool) -> None:
    assert is_faster(costs, [1.0] * len(costs)) is faster


@dataclass
class MadeUp:
    """A measurer that makes up its costs, one second each."""

    seed: int = 0
    now: float = 0.0
    best_cost: float = float("inf")
    timed_again: int = 0
    numbers: list[int] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def measure(self, programs: Sequence[Program]) -> Any:
        for program in programs:
            self.now += 1.0
            self.numbers.append(program.number)
            yield self.result(program)

    def remeasure(self, programs: Sequence[Program], offsets: Sequence[int] = ()) -> list[MeasureResult]:
        self.timed_again += 1
        return [self.result(program) for program in programs]

    def result(self, program: Program) -> MeasureResult:
        cost = 0.5 if not len(program.trace) else 1e-3 * (1 + (sum(map(ord, program.key)) * (7 + self.seed)) % 97)
        return MeasureResult((cost,), MeasureErrorNo.NO_ERROR, "", 0.1, 1.0, True, number=program.number)


class Heard(TunerObserver):
    """Counts the rounds of a descent."""

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def descending(self, count: int, cost: float) -> None:
        self.rounds.append(count)


def tuner(trials: int, seed: int = 0, share: float = 0.25, observer: TunerObserver | None = None, **changes: Any) -> Tuner:
    measurer = MadeUp(seed)
    options = {name: changes.pop(name) for name in ("early_stopping", "budget_s") if name in changes}
    return Tuner(
        sketches=SKETCHES,
        target=TASK.target,
        model=PriorModel(),
        measurer=measurer,  # type: ignore[arg-type]
        options=TunerOptions(trials, 8, descent_share=share, evolution=EvolutionOptions(24, 1), **options),
        observer=observer or TunerObserver(),
        record=lambda batch: None,
        seed=seed,
        clock=measurer.clock,
        **changes,
    )


@pytest.mark.parametrize("trials", [32, 40])
def test_the_last_share_of_the_trials_goes_to_the_descent(trials: int) -> None:
    heard = Heard()
    made = tuner(trials, observer=heard)
    assert len(made.run()) == trials
    assert made.descent is not None and sum(heard.rounds) <= round(0.25 * trials)
    assert made.descent.tried == sum(heard.rounds) > 0


def test_it_never_makes_the_result_worse() -> None:
    made = tuner(40, seed=1)
    made.run()
    best = made.best()
    assert best is not None and best.result.median == min(trial.result.median for trial in made.trials)


def test_the_same_seed_descends_the_same_way() -> None:
    first, again = ([trial.trace for trial in tuner(36).run()] for _ in range(2))
    assert first == again and len(set(first)) == len(first)


@pytest.mark.parametrize(("trials", "share"), [(31, 0.25), (36, 0.0)])
def test_short_searches_and_a_share_of_nothing_do_without(trials: int, share: float) -> None:
    made = tuner(trials, share=share)
    assert len(made.run()) == trials and made.descent is None


def test_under_a_time_budget_it_gets_its_share_of_the_time() -> None:
    heard = Heard()
    made = tuner(1 << 30, observer=heard, budget_s=60.0)
    trials = made.run()
    assert 50 <= len(trials) <= 60 and 0 < sum(heard.rounds) <= 20
    assert made.clock() <= 60.0


def test_early_stopping_counts_in_the_descent_too() -> None:
    made = tuner(1000, share=0.98, early_stopping=20)
    assert len(made.run()) < 1000 and made.descent is not None


def test_going_on_with_a_log_may_start_from_its_best() -> None:
    first = tuner(40)
    known = [(trial.candidate, trial.result.median) for trial in first.run() if trial.candidate is not None]
    made = tuner(32, preloaded=known, with_baseline=False)
    trials = made.run()
    assert not {candidate for candidate, _ in known} & {trial.candidate for trial in trials}
    assert made.descent is not None and made.descent.start_cost <= min(cost for _, cost in known)


def test_rounds_are_numbered() -> None:
    trials = tuner(32).run()
    assert trials[0].round == 0 and [t.round for t in trials] == sorted(t.round for t in trials) and trials[-1].round >= 3


def test_the_policy_has_the_share_and_ansor_alone_does_without() -> None:
    assert SketchPolicy(TASK).params["descent_share"] == 0.2
    assert SketchPolicy(TASK, params={"rules": "ansor"}).params["descent_share"] == 0.0
    assert SketchPolicy(TASK, params={"rules": "ansor", "descent_share": 0.3}).params["descent_share"] == 0.3
    with pytest.raises(TuningError, match=r"descent_share is 1\.5; it takes a share"):
        SketchPolicy(TASK, params={"descent_share": 1.5})
