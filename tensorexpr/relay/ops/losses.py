"""Losses of classifiers."""

from __future__ import annotations

from typing import Any

from ...relax import op as graph_op
from .row import Expr, Meaning, operator, shape


@operator("nn.cross_entropy")
def cross_entropy(predictions: Expr, targets: Expr) -> Meaning:
    """Minus the mean over rows of the targets by the logarithms of the predictions."""
    return _entropy(graph_op.log(predictions), targets)


def _entropy(logarithms: Any, targets: Any) -> Any:
    """Minus the mean over rows: a mean, not a sum by their number, which may be known only when the graph runs."""
    rows = graph_op.sum(graph_op.multiply(logarithms, targets), list(range(1, len(shape(logarithms)))))
    return graph_op.negative(graph_op.mean(rows))


@operator("nn.cross_entropy_with_logits")
def cross_entropy_with_logits(predictions: Expr, targets: Expr) -> Meaning:
    """Minus the mean over rows of the targets by predictions that are logarithms."""
    return _entropy(predictions, targets)


@operator("nn.nll_loss")
def nll_loss(predictions: Expr, targets: Expr, weights: Expr, reduction: str = "mean", ignore_index: int = -100) -> Meaning:
    """Minus the predictions of the classes that are right, weighted."""
    return graph_op.nn.nll_loss(predictions, targets, weights, reduction, ignore_index)
