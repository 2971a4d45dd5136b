"""How good predictions are, judged by what a search needs: the right order, and the best found among the best predicted."""

from __future__ import annotations

import numpy as np

from ...errors import TuningError
from .base import FloatArray


def rank_correlation(predicted: FloatArray, measured: FloatArray) -> float:
    """Spearman's rank correlation: 1 for the same order, -1 for the reverse, 0 where either says nothing.

    Ties share the mean of their ranks.
    """
    _check(predicted, measured)
    ranks = [_ranks(np.asarray(values, np.float64)) for values in (predicted, measured)]
    centred = [rank - rank.mean() for rank in ranks]
    size = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float((centred[0] * centred[1]).sum() / size) if size else 0.0


def _ranks(values: FloatArray) -> FloatArray:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray(((ends - counts + ends - 1) / 2)[inverse])


def top_recall(predicted: FloatArray, measured: FloatArray, count: int) -> float:
    """Which share of the `count` best measured is among the `count` best predicted (more is better in both)."""
    _check(predicted, measured)
    count = min(count, len(measured))
    best = [set(np.argsort(-np.asarray(values, np.float64), kind="stable")[:count].tolist()) for values in (predicted, measured)]
    return len(best[0] & best[1]) / count


def best_of_top(predicted: FloatArray, measured: FloatArray, count: int) -> float:
    """How fast the fastest of the `count` best predicted is, relative to the fastest of all; `measured` are throughputs."""
    _check(predicted, measured)
    speeds = np.asarray(measured, np.float64)
    chosen = np.argsort(-np.asarray(predicted, np.float64), kind="stable")[:count]
    return float(speeds[chosen].max() / speeds.max())


def _check(predicted: FloatArray, measured: FloatArray) -> None:
    if np.ndim(predicted) != 1 or np.shape(predicted) != np.shape(measured) or not np.size(measured):
        raise TuningError(f"predictions {np.shape(predicted)} and measurements {np.shape(measured)} are no two equal rows of numbers")
