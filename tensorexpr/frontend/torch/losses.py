"""Losses of classes. PyTorch's own decompositions of these take every reduction for a mean, and index by what is ignored."""

from __future__ import annotations

from typing import Any

from ... import relax
from .table import Context, aten

_MEAN, _SUM = 1, 2  # at::Reduction


def _reduced(c: Context, loss: Any, weights: Any, reduction: int) -> Any:
    """A loss of each element as it is, the sum of all, or that by the sum of their weights."""
    if reduction not in (_MEAN, _SUM):
        return loss
    total = c.op("sum", loss)
    return c.op("divide", total, c.op("sum", weights)) if reduction == _MEAN else total


def _likelihoods(c: Context, logs: Any, target: Any, weight: Any, reduction: int, ignored: int, smoothing: float = 0.0) -> Any:
    """-log(p) of each element's class by its weight; those of an ignored class have none."""
    axis = 1 if c.rank(logs) > 1 else 0
    dtype, zero = c.dtype_of(logs), relax.const(0, c.dtype_of(target))
    is_kept = c.op("not_equal", target, relax.const(ignored, c.dtype_of(target)))
    # A class that there is, whatever is ignored: mostly that is -100.
    place = c.cast(c.op("where", is_kept, target, zero), "int64")
    found = c.op("squeeze", c.op("gather_elements", logs, c.op("expand_dims", place, axis=axis), axis=axis), axis=[axis])
    weights = c.cast(is_kept, dtype)
    if weight is not None:
        weights = c.op("multiply", weights, c.op("take", weight, place, axis=0))
    loss = c.op("negative", c.op("multiply", found, weights))
    if smoothing:
        by_class = logs if weight is None else c.op("multiply", logs, _along(c, weight, axis, c.rank(logs)))
        evenly = c.op("multiply", c.op("sum", by_class, axis=[axis]), c.cast(is_kept, dtype))
        share = smoothing / c.shape_of(logs)[axis]
        kept = c.op("multiply", loss, relax.const(1 - smoothing, dtype))
        loss = c.op("subtract", kept, c.op("multiply", evenly, relax.const(share, dtype)))
    return _reduced(c, loss, weights, reduction)


def _along(c: Context, weight: Any, axis: int, rank: int) -> Any:
    return c.reshape(weight, [c.shape_of(weight)[0] if n == axis else 1 for n in range(rank)])


@aten("nll_loss", "nll_loss2d", "nll_loss_nd")
def _nll_loss(c: Context, logs: Any, target: Any, weight: Any = None, reduction: int = _MEAN, ignore_index: int = -100) -> Any:
    return _likelihoods(c, logs, target, weight, reduction, ignore_index)


@aten("cross_entropy_loss")
def _cross_entropy(
    c: Context, x: Any, target: Any, weight: Any = None, reduction: int = _MEAN, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Any:
    axis = 1 if c.rank(x) > 1 else 0
    logs = c.op("nn.log_softmax", x, axis=axis)
    if c.rank(target) < c.rank(x) or "float" not in c.dtype_of(target):
        return _likelihoods(c, logs, target, weight, reduction, ignore_index, label_smoothing)
    # Shares of each class.
    dtype, classes = c.dtype_of(logs), c.shape_of(logs)[axis]
    if label_smoothing:
        target = c.op(
            "add", c.op("multiply", target, relax.const(1 - label_smoothing, dtype)), relax.const(label_smoothing / classes, dtype)
        )
    if weight is not None:
        logs = c.op("multiply", logs, _along(c, weight, axis, c.rank(logs)))
    loss = c.op("negative", c.op("sum", c.op("multiply", logs, target), axis=[axis]))
    return _reduced(c, loss, c.op("ones_like", loss), reduction)
