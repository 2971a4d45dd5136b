"""Losses of classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import topi
from ...errors import DeclarationError
from ...tir.arithmetic import cast
from ..relations import same_extents
from ..struct_info import StructInfo
from .elementwise import broadcast_info
from .row import Expr, Pattern, indices_of, operator, tensor


def _te_nll(predictions: Any, targets: Any, weights: Any = None, *, reduction: str, ignore_index: int) -> Any:
    classes = predictions.shape[0 if predictions.ndim == 1 else 1]
    own = topi.full((classes,), predictions.dtype, 1) if weights is None else weights
    return topi.nn.nll_loss(predictions, targets, own, reduction, ignore_index)


def _np_nll(predictions: Any, targets: Any, weights: Any = None, *, reduction: str, ignore_index: int) -> Any:
    classes = 0 if predictions.ndim == 1 else 1
    own = np.ones(predictions.shape[classes]) if weights is None else weights.astype(np.float64)
    counted = targets != ignore_index
    # The class that is ignored may be no index: -100 by default.
    safe = np.where(counted, targets, 0).astype(int)
    picked = np.take_along_axis(predictions.astype(np.float64), np.expand_dims(safe, classes), classes).squeeze(classes)
    share = np.where(counted, own[safe], 0)
    losses = -picked * share
    if reduction == "none":
        return losses.astype(predictions.dtype)
    return np.asarray(losses.sum() / (share.sum() if reduction == "mean" else 1)).astype(predictions.dtype)


@operator("nn.nll_loss", Pattern.OUT_FUSABLE, te=_te_nll, numpy=_np_nll)
def nll_loss(
    predictions: Expr, targets: Expr, weights: Expr | None = None, reduction: str = "mean", ignore_index: int = -100
) -> StructInfo:
    """The negative log likelihood of classes; see `topi.nn.nll_loss`. Without weights each class counts 1."""
    p, t = tensor(predictions, "predictions"), indices_of(targets, "targets")
    if reduction not in ("none", "sum", "mean"):
        raise DeclarationError(f"relax.op.nn.nll_loss: no reduction {reduction!r}; there are none, sum and mean")
    if -1 not in (p.ndim, t.ndim) and p.ndim != t.ndim + 1:
        raise DeclarationError(f"relax.op.nn.nll_loss: predictions have one axis more than targets, not {p.info} and {t.info}")
    if p.extents is not None and t.extents is not None:
        rows = (*p.extents[:1], *p.extents[2:]) if p.ndim > 1 else ()
        if any(same_extents(a, b) is False for a, b in zip(rows, t.extents, strict=True)):
            raise DeclarationError(f"relax.op.nn.nll_loss: targets have the axes of predictions without classes: {p.info}, {t.info}")
    return p.like(t.info.shape, ndim=t.ndim) if reduction == "none" else p.like([])


def _te_cross_entropy(predictions: Any, labels: Any) -> Any:
    total = topi.negative(topi.sum(topi.multiply(predictions, labels)))
    return topi.divide(total, cast(predictions.shape[0], predictions.dtype)) if predictions.ndim > 1 else total


def _np_cross_entropy(predictions: Any, labels: Any) -> Any:
    count = predictions.shape[0] if predictions.ndim > 1 else 1
    return np.asarray(-np.sum(predictions.astype(np.float64) * labels) / count).astype(predictions.dtype)


@operator("nn.cross_entropy_with_logits", Pattern.OUT_FUSABLE, te=_te_cross_entropy, numpy=_np_cross_entropy)
def cross_entropy_with_logits(predictions: Expr, labels: Expr) -> StructInfo:
    """Minus the sum of products of logits and labels, by the number of rows where there are several."""
    broadcast_info([predictions, labels], "nn.cross_entropy_with_logits")
    p, known = tensor(predictions, "predictions"), tensor(labels, "labels")
    if -1 not in (p.ndim, known.ndim) and p.ndim != known.ndim:
        raise DeclarationError(f"relax.op.nn.cross_entropy_with_logits: labels have the axes of predictions: {p.info}, {known.info}")
    return p.like([])
