"""Measures of predictions, against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorexpr.errors import TuningError
from tensorexpr.tune.cost_model import best_of_top, quality, rank_correlation, top_recall
from tests.effort import share_of

rows = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=12)


def ranks_by_hand(values: list[int]) -> list[float]:
    return [sum(other < value for other in values) + (values.count(value) - 1) / 2 for value in values]


@settings(deadline=None, derandomize=True, max_examples=share_of(100))
@given(rows)
def test_rank_correlation_is_the_correlation_of_ranks(pairs: list[tuple[int, int]]) -> None:
    first, second = (list(column) for column in zip(*pairs, strict=True))
    if len(set(first)) == 1 or len(set(second)) == 1:
        expected = 0.0
    else:
        expected = float(np.corrcoef(ranks_by_hand(first), ranks_by_hand(second))[0, 1])
    assert rank_correlation(np.array(first), np.array(second)) == pytest.approx(expected, abs=1e-12)


def test_rank_correlation_ignores_scale() -> None:
    values = np.array([3.0, 1.0, 2.0, 10.0])
    assert rank_correlation(values, np.exp(values)) == pytest.approx(1.0)
    assert rank_correlation(values, -values) == pytest.approx(-1.0)


@pytest.mark.parametrize(("count", "recall"), [(1, 0.0), (2, 0.5), (3, 2 / 3), (4, 1.0), (9, 1.0)])
def test_top_recall_counts_the_best_that_were_found(count: int, recall: float) -> None:
    predicted, measured = np.array([9.0, 5.0, 7.0, 1.0]), np.array([2.0, 1.0, 6.0, 4.0])
    assert top_recall(predicted, measured, count) == pytest.approx(recall)


def test_best_of_top_is_relative_to_the_best() -> None:
    predicted, measured = np.array([3.0, 2.0, 1.0]), np.array([10.0, 5.0, 40.0])
    assert [best_of_top(predicted, measured, count) for count in (1, 2, 3)] == [0.25, 0.25, 1.0]


def test_unequal_rows_are_refused() -> None:
    with pytest.raises(TuningError, match="no two equal rows"):
        rank_correlation(np.zeros(3), np.zeros(4))
    with pytest.raises(TuningError, match="no two equal rows"):
        top_recall(np.zeros(0), np.zeros(0), 1)


def test_the_regret_is_of_the_first_choice_on_average_over_equal_ones() -> None:
    speeds = np.array([4.0, 2.0, 1.0])
    assert quality(np.array([0.0, 1.0, 0.0]), speeds).regret == pytest.approx(1.0)
    assert quality(np.array([1.0, 1.0, 0.0]), speeds).regret == pytest.approx(0.5)
