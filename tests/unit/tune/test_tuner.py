"""The search loop with a measurer that makes up its results, and a clock that is set by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr.auto_scheduler import SearchTask, SketchPolicy
from tensorexpr.schedule.trace import Trace
from tensorexpr.tune.cost_model import PriorModel
from tensorexpr.tune.evolution import Candidate, EvolutionOptions, preferred
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo, MeasureResult, Program
from tensorexpr.tune.proposals import supported
from tensorexpr.tune.tuner import Trial, Tuner, TunerObserver, TunerOptions

TASK = SearchTask(func="v06_matmul", args=(16, 32, 8), target="llvm -mcpu=x86-64-v3 -num-cores=2")
SKETCHES = SketchPolicy(TASK).generate_sketches()


@dataclass
class Clock:
    """Seconds that pass only when somebody says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class MadeUp:
    """Every program costs what a hash of its text says, or fails, and takes a second to measure."""

    clock: Clock
    failing: bool = False
    rounds: list[int] = field(default_factory=list)
    best_cost: float = float("inf")

    def measure(self, programs: Sequence[Program]) -> Iterator[MeasureResult]:
        self.rounds.append(len(programs))
        for program in programs:
            self.clock.now += 1.0
            yield self.result(program)

    def remeasure(self, programs: Sequence[Program], offsets: Sequence[int] = ()) -> list[MeasureResult]:
        return [self.result(program) for program in programs]

    def result(self, program: Program) -> MeasureResult:
        cost = 0.5 if not len(program.trace) else 0.001 * (1 + sum(map(ord, program.key)) % 97)
        if self.failing and len(program.trace):
            return MeasureResult((FAILED_COST,), MeasureErrorNo.RUNTIME_DEVICE, "broken", 0.1, 1.0, number=program.number)
        return MeasureResult((cost,), MeasureErrorNo.NO_ERROR, "", 0.1, 1.0, True, number=program.number)


class Heard(TunerObserver):
    """Remembers how the search ended."""

    reason = ""

    def finished(self, reason: str) -> None:
        self.reason = reason


def tuner(trials: int = 12, seed: int = 0, failing: bool = False, observer: TunerObserver | None = None, **changes: Any) -> Tuner:
    clock = Clock()
    options = {name: changes.pop(name) for name in ("early_stopping", "budget_s") if name in changes}
    sketches = changes.pop("sketches", SKETCHES)
    return Tuner(
        sketches=sketches,
        target=TASK.target,
        model=PriorModel(),
        measurer=MadeUp(clock, failing),  # type: ignore[arg-type]
        options=TunerOptions(trials, changes.pop("round_size", 4), evolution=EvolutionOptions(64, 2), **options),
        observer=observer or TunerObserver(),
        record=lambda batch: None,
        seed=seed,
        clock=clock,
        **changes,
    )


def test_33_the_same_seed_gives_the_same_trials_and_the_same_winner() -> None:
    first, again, other = (tuner(seed=seed) for seed in (0, 0, 1))
    traces = [[trial.trace for trial in made.run()] for made in (first, again, other)]
    assert traces[0] == traces[1] != traces[2]
    assert first.best() is not None and again.best() is not None
    assert first.best().trace == again.best().trace  # type: ignore[union-attr]


def test_36_the_first_batch_ends_with_the_plain_program_and_nothing_slower_wins() -> None:
    made = tuner()
    trials = made.run()
    plain = trials[made.measurer.rounds[0] - 1]  # type: ignore[union-attr]
    assert not len(plain.trace) and plain.candidate is None
    best = made.best()
    assert best is not None and best.result.median <= plain.result.median
    failing = tuner(failing=True)
    failing.run()
    found = failing.best()
    assert found is not None and found.candidate is None


def test_no_candidate_is_measured_twice() -> None:
    trials = tuner(40).run()
    assert len({trial.trace for trial in trials}) == len(trials)


def test_a_time_budget_ends_the_search_in_the_middle_of_a_batch_and_keeps_the_best() -> None:
    heard = Heard()
    made = tuner(1000, observer=heard, budget_s=6.5)
    trials = made.run()
    assert len(trials) == 6  # 5.85 s are for these, the rest for timing the best again
    assert heard.reason == "Stop since the time budget of 6.5 s is used up."
    assert made.best() is not None


def test_under_a_budget_the_last_round_gets_what_there_is_time_for() -> None:
    made = tuner(1000, budget_s=6.0)
    made.run()
    assert made.measurer.rounds == [4, 1, 1]  # type: ignore[union-attr]


def test_a_budget_counts_from_when_the_user_asked() -> None:
    made = tuner(1000, budget_s=10.0)
    made.clock.now = 6.5  # type: ignore[attr-defined]
    assert len(made.run(started=0.0)) == 3


def test_a_budget_that_is_over_at_once_still_measures_what_sketches_prefer() -> None:
    assert [trial.candidate for trial in tuner(1000, budget_s=1e-9).run()] == preferred(SKETCHES)[:1]


def test_early_stopping_counts_trials_without_a_better_one() -> None:
    heard = Heard()
    made = tuner(1000, observer=heard, failing=True, early_stopping=6)
    assert 6 < len(made.run()) <= 12
    assert heard.reason == "Stop early since no performance improvement in the last 6 measurements trials."


def test_the_end_of_the_space_is_said() -> None:
    heard = Heard()
    small = SearchTask(func="v06_matmul", args=(2, 1, 1), target="llvm")
    sketches = SketchPolicy(small).generate_sketches()
    tuner(10_000, observer=heard, sketches=sketches, round_size=64).run()
    assert heard.reason == "It seems all candidates in the search space have been measured."


def test_preloaded_candidates_are_not_measured_again_and_the_plain_program_need_not_be() -> None:
    first = tuner(12)
    known = [(trial.candidate, trial.result.median) for trial in first.run() if trial.candidate is not None]
    second = tuner(12, preloaded=known, with_baseline=False)
    candidates = [trial.candidate for trial in second.run()]
    assert None not in candidates
    assert not {candidate for candidate, _ in known} & set(candidates)


def test_what_sketches_prefer_is_measured_first() -> None:
    wanted = preferred(SKETCHES)
    assert wanted
    candidates = [trial.candidate for trial in tuner(12).run()]
    plain = candidates.index(None)  # the last of the first batch
    assert [*candidates[:plain], *candidates[plain + 1 :]][: len(wanted)] == wanted
    assert len(set(candidates)) == len(candidates)
    known = [(wanted[0], 0.5)]
    assert wanted[0] not in [trial.candidate for trial in tuner(12, preloaded=known).run()]


def test_most_of_a_round_goes_to_sketches_near_the_best() -> None:
    known = {Candidate(0, (0,)): 1.0, Candidate(1, (0,)): 1.1, Candidate(2, (0,)): 3.0}
    found = [(0.9, Candidate(3, (n,))) for n in range(20)]  # never measured: the model guesses
    found += [(0.8, Candidate(2, (n,))) for n in range(1, 20)]
    found += [(0.5, Candidate(n % 2, (n,))) for n in range(1, 9)]
    found += [(0.0, Candidate(0, (n,))) for n in range(20, 40)]
    chosen = supported(found, set(known), known, 12, may_wait=True)
    assert [candidate.sketch for candidate in chosen] == [1, 0] * 4 + [3, 2, 3]
    lone = supported([entry for entry in found if entry[1].sketch > 1], set(), known, 8, may_wait=True)
    assert [candidate.sketch for candidate in lone] == [3, 2, 3, 2]  # too little is known: a short round
    assert len(supported(found, set(), known, 60, may_wait=False)) == 60
    assert supported([], set(), {}, 8, may_wait=True) == []


@pytest.mark.parametrize(("slower", "stands"), [(1.4, True), (1.6, False)])
def test_a_plan_is_compared_again_unless_it_is_far_slower(slower: float, stands: bool) -> None:
    made = tuner(1)
    plan = preferred(SKETCHES)[0]
    costs = [1.0, 1.01, 1.02, 1.03, slower]
    candidates = [*(Candidate(9, (n,)) for n in range(4)), plan]
    made.trials = [
        Trial(candidate, Trace(), MeasureResult((cost,), MeasureErrorNo.NO_ERROR, "", 0.1, 1.0))
        for candidate, cost in zip(candidates, costs, strict=True)
    ]
    assert [trial.candidate for trial in made.finalists()] == candidates[: 4 + stands]


def test_predictions_are_kept_with_their_trials() -> None:
    trials = tuner(8).run()
    assert [trial.predicted is None for trial in trials] == [trial.candidate is None for trial in trials]
    assert all(trial.predicted is not None and np.isfinite(trial.predicted) for trial in trials if trial.candidate is not None)


class Longest:
    """A user's model: the longer the program's text, the better."""

    def __init__(self) -> None:
        self.learned: list[Trial] = []

    def score(self, traces: Sequence[Trace]) -> np.ndarray:
        return np.array([float(len(str(trace.to_json()))) for trace in traces])

    def learn(self, trials: Sequence[Trial]) -> None:
        self.learned += trials


def test_a_model_of_programs_chooses_and_learns_each_trial_once() -> None:
    model = Longest()
    trials = tuner(12, program_model=model).run()
    assert len(model.learned) == len({trial.trace for trial in model.learned}) == len(trials)
    assert all(trial.predicted == len(str(trial.trace.to_json())) for trial in trials if trial.candidate is not None)


def test_parts_of_the_time_are_known() -> None:
    made = tuner(8)
    made.run()
    assert {"search", "measure", "train", "measure again"} == set(made.seconds)


@pytest.mark.parametrize("cost", [float("inf"), float("nan")])
def test_preloaded_failures_do_not_start_the_search(cost: float) -> None:
    made = tuner(4, preloaded=[(Candidate(0, tuple(0 for _ in SKETCHES[0].decisions)), cost)])
    assert len(made.run()) == 4
