"""How a search divides its trials and its seconds, with a clock that is set by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from tensorexpr.tune.budget import Budget
from tensorexpr.tune.trial import TunerOptions


@dataclass
class Clock:
    """Seconds that pass only when somebody says so."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_last_share_of_the_trials_is_for_the_descent() -> None:
    budget = Budget(TunerOptions(100, 32), Clock())
    sizes = [budget.round_size(done, False) for done in (0, 32, 64, 79, 80)]
    assert sizes == [32, 32, 16, 1, 20]
    assert [budget.is_descent_due(done, done) for done in (79, 80, 99)] == [False, True, True]
    assert budget.round_size(64, True) == 32


def test_few_trials_are_all_for_the_search() -> None:
    budget = Budget(TunerOptions(31, 8), Clock())
    assert budget.round_size(24, False) == 7
    assert not budget.is_descent_due(30, 30)
    assert not Budget(TunerOptions(100, 8, descent_share=0.0), Clock()).is_descent_due(99, 99)


def test_the_last_share_of_the_seconds_is_for_the_descent_once_enough_is_known() -> None:
    clock = Clock()
    budget = Budget(TunerOptions(1000, 8, budget_s=50.0), clock)
    budget.start(None)
    assert (budget.descend_at, budget.deadline) == (140.0, 148.0)
    clock.now = 141.0
    assert budget.is_descent_due(16, 16) and not budget.is_descent_due(15, 15)
    assert not budget.is_over
    clock.now = 148.0
    assert budget.is_over and budget.affordable(8, 16, True) == 0


@pytest.mark.parametrize(("now", "descending", "wanted"), [(100.0, False, 8), (136.0, False, 2), (144.0, True, 2), (139.5, False, 1)])
def test_a_round_is_as_long_as_there_is_time_at_the_pace_so_far(now: float, descending: bool, wanted: int) -> None:
    clock = Clock()
    budget = Budget(TunerOptions(1000, 8, budget_s=50.0), clock)
    budget.start(None)
    budget.busy_s = 20.0  # of 10 trials
    clock.now = now
    assert budget.affordable(8, 10, descending) == wanted


def test_without_a_time_budget_every_round_is_affordable() -> None:
    budget = Budget(TunerOptions(10, 8), Clock())
    budget.start(None)
    assert budget.deadline == math.inf and budget.affordable(8, 5, False) == 8
