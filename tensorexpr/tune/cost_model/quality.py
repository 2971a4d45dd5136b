"""How good predictions are, judged by what a search needs: the right order, and the best found among the best predicted."""

from __future__ import annotations

import numpy as np

from ...dataclass import dataclass
from ...errors import TuningError
from .base import FloatArray

# Of n programs the best n/4 count as "the best", at most 32: Ansor's a-peak@32.
_PART, _MOST = 4, 32


@dataclass(frozen=True)
class Quality:
    """How good some predictions were.

    Args:
        count: programs.
        correlation: Spearman's rank correlation, from -1 to 1.
        top: how many programs count as the best.
        recall: the share of the `top` fastest among the `top` predicted to be.
        peak: the speed of the fastest of the `top` best predicted, relative to the fastest of all (a-peak@top).
        regret: how much longer the first choice takes than the fastest of all: 0.1 for a tenth. Of equal predictions, on average.
    """

    count: int
    correlation: float
    top: int
    recall: float
    peak: float
    regret: float

    def __str__(self) -> str:
        return (
            f"rank correlation {self.correlation:.2f}, recall of the best {self.top} {self.recall:.2f}, "
            f"a-peak@{self.top} {self.peak:.2f}, regret of the first choice {self.regret:.0%}, over {self.count} programs"
        )


def quality(predicted: FloatArray, throughput: FloatArray, top: int | None = None) -> Quality:
    """How good predictions of programs are.

    Args:
        predicted: scores [n], more is better; their scale doesn't matter.
        throughput: [n], as measured, calls a second.
        top: how many count as the best; a quarter of them, at most 32, if None.

    Raises:
        TuningError: if these are no two equal rows of numbers.
    """
    _check(predicted, throughput)
    count = len(throughput)
    best = max(1, min(_MOST, count // _PART)) if top is None else max(1, min(top, count))
    return Quality(
        count,
        rank_correlation(predicted, throughput),
        best,
        top_recall(predicted, throughput, best),
        best_of_top(predicted, throughput, best),
        regret(predicted, throughput),
    )


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


def regret(predicted: FloatArray, measured: FloatArray) -> float:
    """How much longer the program with the best prediction takes than the fastest, as a part of its time; `measured` are throughputs."""
    _check(predicted, measured)
    scores, speeds = np.asarray(predicted, np.float64), np.asarray(measured, np.float64)
    return float(np.mean(speeds.max() / speeds[scores == scores.max()]) - 1.0)


def _check(predicted: FloatArray, measured: FloatArray) -> None:
    if np.ndim(predicted) != 1 or np.shape(predicted) != np.shape(measured) or not np.size(measured):
        raise TuningError(f"predictions {np.shape(predicted)} and measurements {np.shape(measured)} are no two equal rows of numbers")
