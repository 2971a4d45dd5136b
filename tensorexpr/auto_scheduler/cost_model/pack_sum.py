"""Boosted trees over the rows of programs: a row for each store, and a program's throughput is the sum of what its rows score.

The parts for a learned model of your own on `auto_scheduler.feature`'s features; they need xgboost (the `tune` extra) only where
a matrix is made. Zheng et al., Ansor (2020), section 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import TuningError

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


class XGBDMatrixContext:
    """Facts that belong to matrices, which have no place for them: by name, and by the matrix itself."""

    def __init__(self) -> None:
        self.context_dict: dict[str, dict[int, tuple[Any, Any]]] = {}

    def get(self, key: str, matrix: Any, default: Any = None) -> Any:
        """The fact `key` of a matrix, or `default`."""
        return self.context_dict.get(key, {}).get(id(matrix), (None, default))[1]

    def set(self, key: str, matrix: Any, value: Any) -> None:
        """Keep a fact of a matrix, and the matrix with it."""
        # the matrix too: an id is free for another object once its owner is gone
        self.context_dict.setdefault(key, {})[id(matrix)] = (matrix, value)


dmatrix_context = XGBDMatrixContext()


def feature_to_pack_sum_xgbmatrix(xs: Sequence[npt.ArrayLike]) -> tuple[Any, Ids]:
    """The rows of several programs as one matrix, and for each row the number of its program.

    Args:
        xs: for each program its features [stores, columns].

    Raises:
        TuningError: if xgboost isn't installed.
    """
    rows, ids = _rows(xs)
    return _matrix(rows), ids


def pack_sum_xgbmatrix(
    xs: Sequence[npt.ArrayLike],
    ys: npt.ArrayLike,
    gids: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> Any:
    """A matrix to train on: every row has its program's throughput, and `dmatrix_context` knows the rows' programs ("pack_ids").

    Args:
        xs: for each program its features [stores, columns].
        ys: the throughputs.
        gids: a number for each program's task, by which programs are sorted.
        weights: of the programs.

    Raises:
        TuningError: if xgboost isn't installed.
    """
    labels, listed = np.asarray(ys, np.float64), list(xs)
    # stable: programs of a task stay in the caller's order
    order = np.arange(len(listed)) if gids is None else np.argsort(np.asarray(gids), kind="stable")
    rows, ids = _rows([listed[place] for place in order])
    matrix = _matrix(rows, labels[order][ids], None if weights is None else np.asarray(weights, np.float64)[order][ids])
    dmatrix_context.set("pack_ids", matrix, ids)
    return matrix


def predict_throughput_pack_sum(raw_preds: npt.ArrayLike, pack_ids: npt.ArrayLike) -> Floats:
    """The score of each program: the sum of its rows'.

    Args:
        raw_preds: the scores of the rows.
        pack_ids: for each row the number of its program.
    """
    return np.asarray(np.bincount(np.asarray(pack_ids, np.int64), weights=np.asarray(raw_preds, np.float64)), np.float64)


def pack_sum_square_error(preds: npt.ArrayLike, dtrain: Any) -> tuple[Floats, Floats]:
    """The gradient and the second derivative of half the squared error of programs, for each row: an objective of xgboost.

    Args:
        preds: the scores of the rows.
        dtrain: what `pack_sum_xgbmatrix` made.
    """
    ids = dmatrix_context.get("pack_ids", dtrain)
    # d(sum - y)**2 / 2 by each row's score is sum - y, the same for all rows of a program.
    gradient = predict_throughput_pack_sum(preds, ids)[ids] - dtrain.get_label()
    hessian, weight = np.ones_like(gradient), dtrain.get_weight()
    return (gradient, hessian) if len(weight) == 0 else (gradient * weight, hessian * weight)


def pack_sum_rmse(raw_preds: npt.ArrayLike, labels: Any) -> tuple[str, float]:
    """The root of the mean squared error of programs, as xgboost's evaluations are told: its name and value.

    Args:
        raw_preds: the scores of the rows.
        labels: what `pack_sum_xgbmatrix` made.
    """
    ids = dmatrix_context.get("pack_ids", labels)
    preds = predict_throughput_pack_sum(raw_preds, ids)[ids]
    return "p-rmse", float(np.sqrt(np.mean(np.square(preds - labels.get_label()))))


def pack_sum_average_peak_score(N: int) -> Callable[[npt.ArrayLike, Any], tuple[str, float]]:
    """The evaluation that says how near the best program comes if the first `N` by score are tried, on average over 1 to N.

    Args:
        N: of how many the mean is taken.
    """

    def feval(preds: npt.ArrayLike, labels: Any) -> tuple[str, float]:
        """The name of the evaluation and its value, as xgboost asks for it."""
        ids = dmatrix_context.get("pack_ids", labels)
        scores = predict_throughput_pack_sum(preds, ids)
        throughputs = np.zeros(len(scores))
        # All rows of a program have its label, so any of them will do.
        throughputs[ids] = labels.get_label()
        curve = max_curve(throughputs[np.argsort(-scores)]) / max(float(throughputs.max(initial=0.0)), np.finfo(np.float64).tiny)
        return f"a-peak@{N}", float(np.mean(curve[:N]))

    return feval


def max_curve(trial_scores: npt.ArrayLike) -> Floats:
    """The best score so far, after each trial."""
    return np.asarray(np.maximum.accumulate(np.asarray(trial_scores, np.float64)))


def _rows(xs: Sequence[npt.ArrayLike]) -> tuple[npt.NDArray[np.float32], Ids]:
    parts = [np.atleast_2d(np.asarray(x, np.float32)) for x in xs]
    if not parts:
        raise TuningError("a matrix is made of the features of at least one program")
    return np.concatenate(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def _matrix(rows: npt.NDArray[np.float32], label: Any = None, weight: Any = None) -> Any:
    try:
        import xgboost
    except ImportError:
        raise TuningError("matrices of xgboost need the package: pip install xgboost-cpu, or the extra `tune`") from None
    return xgboost.DMatrix(rows, label=label, weight=weight)
