"""Which range of floats the integers of few bits shall cover: from what calibration saw of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import DeclarationError

BINS = 2048
_LEVELS = 256  # of integers of eight bits
_CANDIDATES = 128  # ranges that the entropy is computed for
_LIMITS = {"uint8": (0, 255), "int8": (-128, 127)}


@dataclass(frozen=True)
class Seen:
    """What calibration saw of a tensor.

    Args:
        low, high: the least and the largest number; 0 and 0 of none.
        counts: how many numbers lie in each of `BINS` parts of `low` to `high`; empty if they weren't counted.
    """

    low: float
    high: float
    counts: Any = ()


def scale_and_zero(low: float, high: float, dtype: str) -> tuple[float, int]:
    """The scale and the integer that stands for zero, by which a range of floats is that of a dtype.

    The range is widened to one with 0 in it, so that padding and what a ReLU cuts off are exact (Jacob et al. 2018, 2.1).

    Args:
        low, high: the range.
        dtype: "uint8" or "int8".

    Raises:
        DeclarationError: for another dtype, or a range that isn't finite.
    """
    if dtype not in _LIMITS:
        raise DeclarationError(f"activations are quantised to {' or '.join(_LIMITS)}, not to {dtype}")
    if not np.isfinite([low, high]).all():
        raise DeclarationError(f"a range of {low} to {high} can't be quantised: calibration saw numbers that aren't finite")
    least, most = _LIMITS[dtype]
    low, high = min(low, 0.0), max(high, 0.0)
    # In float32, as the operators have it; a range of zeros, or of less than its least normal number, has no scale.
    scale = np.float32((high - low) / (most - least))
    if scale < np.finfo(np.float32).tiny:
        return 1.0, max(least, 0)
    return float(scale), int(np.clip(np.rint(least - low / float(scale)), least, most))


def by_extremes(seen: Seen) -> tuple[float, float]:
    """All that was seen."""
    return seen.low, seen.high


def by_percentile(seen: Seen, percentile: float) -> tuple[float, float]:
    """What is left if as many percent of the numbers stay, of both ends the same number; no end that nothing lies beyond 0 of is cut."""
    counts = np.asarray(seen.counts, np.float64)
    if not counts.sum():
        return seen.low, seen.high
    share, edges = np.cumsum(counts) / counts.sum(), np.linspace(seen.low, seen.high, len(counts) + 1)
    cut = (1 - percentile / 100) / (2 if seen.low < 0 < seen.high else 1)
    # Small steps of a float's sum would cut the last number off: percentile 100 keeps all.
    low = edges[int(np.searchsorted(share, cut - 1e-12, "right"))] if cut > 0 and seen.low < 0 else seen.low
    high = edges[min(int(np.searchsorted(share, 1 - cut - 1e-12)) + 1, len(counts))] if cut > 0 and seen.high > 0 else seen.high
    return float(min(low, 0.0) if seen.low < 0 else low), float(max(high, 0.0) if seen.high > 0 else high)


def by_entropy(seen: Seen) -> tuple[float, float]:
    """The range about 0 whose quantised numbers are distributed as what was seen: that of the least relative entropy (Migacz 2017).

    What lies beyond it becomes its end, as quantising has it.
    """
    counts = np.asarray(seen.counts, np.float64)
    total = counts.sum()
    if not total:
        return seen.low, seen.high
    edges = np.linspace(seen.low, seen.high, len(counts) + 1)
    best: tuple[float, float, float] | None = None
    furthest = max(abs(seen.low), abs(seen.high))
    for part in range(_CANDIDATES, _CANDIDATES // 8, -1):
        limit = furthest * part / _CANDIDATES
        # Bins whose middle is within the limit; fewer bins than levels quantise nothing.
        middle = (edges[1:] + edges[:-1]) / 2
        first, last = int(np.searchsorted(middle, -limit)), int(np.searchsorted(middle, limit, "right"))
        if last - first < _LEVELS:
            break
        lost = _relative_entropy(counts, first, last)
        # Of equal ones the widest, which comes first.
        if best is None or lost < best[0] - 1e-12:
            best = lost, float(edges[first]), float(edges[last])
    return (seen.low, seen.high) if best is None else best[1:]


def _relative_entropy(counts: Any, first: int, last: int) -> float:
    """Of the numbers in some bins, with those beyond at the ends, from what `_LEVELS` groups of the bins tell of them."""
    inside = counts[first:last]
    true = inside.copy()
    true[0] += counts[:first].sum()
    true[-1] += counts[last:].sum()
    begins = np.arange(_LEVELS) * len(inside) // _LEVELS
    sums, filled = np.add.reduceat(inside, begins), np.add.reduceat((inside > 0).astype(np.float64), begins)
    lengths = np.diff([*begins, len(inside)])
    told = np.repeat(np.divide(sums, filled, out=np.zeros_like(sums), where=filled > 0), lengths) * (inside > 0)
    total = true.sum()
    # What the groups know nothing of, numbers beyond the ends, counts as very rare.
    p, q = true / total, np.maximum(told / max(told.sum(), 1e-30), 1e-9)
    some = p > 0
    return float(np.sum(p[some] * np.log(p[some] / q[some])))


METHODS: Mapping[str, Callable[..., tuple[float, float]]] = {
    "minmax": by_extremes,
    "entropy": by_entropy,
    "percentile": by_percentile,
}


def weight_scales(values: Any, axis: int | None) -> tuple[Any, Any]:
    """Weights as int8 with 0 at 0, -127 to 127, and their scales: one for each element of an axis, or one.

    Args:
        values: floats.
        axis: whose elements have scales of their own; None for one of the whole.

    Returns:
        int8 as values, and float32 as long as the axis, or 1.
    """
    others = tuple(n for n in range(values.ndim) if n != axis)
    largest = np.abs(values).max(axis=others if axis is not None else None, keepdims=True).astype(np.float64)
    scales = (largest / 127).astype(np.float32)
    scales[scales < np.finfo(np.float32).tiny] = 1.0
    whole = np.clip(np.rint(values.astype(np.float64) / scales), -127, 127).astype(np.int8)
    return whole, scales.reshape(-1)
