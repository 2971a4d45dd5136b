"""Losses of classifiers."""

from __future__ import annotations

from ...errors import DeclarationError
from ...te.tensor import Tensor
from ...tir import arithmetic, intrin
from ...tir.arithmetic import const
from ...tir.expr import PrimExpr, Var
from .. import broadcast
from ..reduction import sum as sum_over
from ..transform import injective

_REDUCTIONS = ("mean", "sum", "none")


def nll_loss(predictions: Tensor, targets: Tensor, weights: Tensor, reduction: str, ignore_index: int) -> Tensor:
    """The negative log likelihood of classes: -weights[t] * predictions[..., t, ...] at each target t.

    Args:
        predictions: [N, C, d1, ...], or [C]: logarithms of probabilities.
        targets: [N, d1, ...], or a scalar: classes.
        weights: [C].
        reduction: "none" for each target, "sum", or "mean" weighted by the weights.
        ignore_index: the class whose targets count nothing.

    Returns:
        A tensor of the shape of `targets` for "none", else a scalar.

    Raises:
        DeclarationError: for an unknown reduction, or ranks that don't fit together.
    """
    if reduction not in _REDUCTIONS:
        raise DeclarationError(f"nll_loss: reduction is {reduction!r}; it takes {', '.join(_REDUCTIONS)}")
    if predictions.ndim != targets.ndim + 1:
        raise DeclarationError(f"nll_loss: predictions has {predictions.ndim} dimensions and targets {targets.ndim}; it has one more")

    def counted(value: PrimExpr, target: PrimExpr) -> PrimExpr:
        return intrin.if_then_else(arithmetic.convert(target != const(ignore_index, targets.dtype)), value, const(0, predictions.dtype))

    def loss(*i: Var) -> PrimExpr:
        target = targets(*i)
        # The target may be no class (ignore_index); only the arm of if_then_else that is taken reads.
        at = (*i[:1], target, *i[1:]) if i else (target,)
        return counted(-predictions(*at) * weights(target), target)

    losses = injective(targets.shape, loss, "nll_loss")
    if reduction == "none":
        return losses
    if targets.ndim == 0:
        total, share = losses, injective((), lambda: counted(weights(targets()), targets()), "nll_weight")
    else:
        total = sum_over(losses, axis=None)
        share = sum_over(injective(targets.shape, lambda *i: counted(weights(targets(*i)), targets(*i)), "nll_weight"), axis=None)
    made: Tensor = total if reduction == "sum" else broadcast.divide(total, share)
    return made
