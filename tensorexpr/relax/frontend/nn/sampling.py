"""Tokens drawn from sorted probabilities of which only the most likely ones count (nucleus sampling: Holtzman et al. 2020)."""

from __future__ import annotations

from typing import Any

from ....errors import DeclarationError
from ... import op as relax_op
from ...expr import const
from .core import Tensor, emitted


def _last_counted(sums: Any, top_p: Any, top_k: Any) -> Any:
    """The place in each row behind which nothing counts: where `top_p` is reached, or `top_k` have been counted; (batch, 1)."""
    info = sums.struct_info
    places = relax_op.arange(1, info.extents[1] + 1, dtype=top_k.struct_info.dtype)
    before = relax_op.logical_and(relax_op.less(sums, top_p), relax_op.less(places, top_k))
    return _capped(relax_op.sum(relax_op.astype(before, "int64"), 1, True), info.extents[1])


def _capped(places: Any, count: Any) -> Any:
    last = relax_op.subtract(relax_op.arange(count, count + 1, dtype="int64"), const(1, "int64"))
    return relax_op.minimum(places, last)


def sample_top_p_top_k_from_sorted_prob(
    sorted_prob: Tensor, sorted_index: Tensor, top_p: Tensor, top_k: Tensor, uniform_sample: Tensor, sample_indices: Tensor | None = None
) -> Any:
    """Numbers of tokens that are drawn from the most likely ones.

    Args:
        sorted_prob: probabilities, descending: (batch, tokens).
        sorted_index: the numbers of their tokens.
        top_p: of each row as many count as reach this sum: (batch, 1).
        top_k: and at most so many.
        uniform_sample: numbers between 0 and 1 that decide: (samples, 1).
        sample_indices: the row of each sample; the rows in order if None.

    Returns:
        (samples, 1) of the dtype of `sorted_index`.

    Raises:
        DeclarationError: for shapes that don't fit.
    """
    rows, wanted = sorted_prob.shape[0], uniform_sample.shape
    if (sample_indices is None and wanted[0] != rows) or (sample_indices is not None and list(sample_indices.shape) != list(wanted)):
        raise DeclarationError(f"nn.op.sample_top_p_top_k_from_sorted_prob: {wanted} numbers for {rows} rows; sample_indices says which")
    sums = emitted(relax_op.cumsum(sorted_prob._expr, 1), "cumsum")._expr
    whole = relax_op.gather_elements(sums, _last_counted(sums, top_p._expr, top_k._expr), 1)
    shares, tokens = relax_op.divide(sums, whole), sorted_index._expr
    if sample_indices is not None:
        drawn = emitted(relax_op.reshape(sample_indices._expr, [-1]), "rows")._expr
        shares, tokens = relax_op.take(shares, drawn, 0), relax_op.take(tokens, drawn, 0)
    passed = relax_op.sum(relax_op.astype(relax_op.less_equal(shares, uniform_sample._expr), "int64"), 1, True)
    return emitted(relax_op.gather_elements(tokens, _capped(passed, sorted_prob._info.extents[1]), 1), "sample")  # type: ignore[index]


def renormalize_top_p_top_k_prob(prob: Tensor, sorted_prob: Tensor, top_p: Tensor, top_k: Tensor) -> Any:
    """Probabilities (batch, tokens) of which only the most likely ones are left, with a sum of 1.

    Args:
        prob: the probabilities.
        sorted_prob: they, descending.
        top_p: of each row as many count as reach this sum: (batch, 1).
        top_k: and at most so many.
    """
    sums = emitted(relax_op.cumsum(sorted_prob._expr, 1), "cumsum")._expr
    least = relax_op.gather_elements(sorted_prob._expr, _last_counted(sums, top_p._expr, top_k._expr), 1)
    kept = emitted(relax_op.where(relax_op.greater_equal(prob._expr, least), prob._expr, const(0.0, prob.dtype)), "kept")._expr
    return emitted(relax_op.divide(kept, relax_op.sum(kept, 1, True)), "renormalized")


__all__ = ["renormalize_top_p_top_k_prob", "sample_top_p_top_k_from_sorted_prob"]
