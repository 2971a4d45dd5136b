"""The caches of attention that graphs keep between calls: `vm.builtin.attention_kv_cache_*`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...runtime.device import cpu
from ...runtime.ndarray import NDArray


class AttentionKVCache:
    """Rows that are appended, in an array that grows; the first axis is that of positions."""

    def __init__(self, rows: np.ndarray[Any, Any], count: int) -> None:
        self.rows, self.count = rows, count


def create(first: NDArray, shape: Sequence[int], count: int) -> AttentionKVCache:
    """A cache.

    Args:
        first: an array whose first rows are the first ones of the cache, and whose elements are of its dtype.
        shape: what there is room for in the beginning.
        count: how many rows of `first` count.
    """
    given = first.numpy()
    rows = np.empty(tuple(map(int, shape)), given.dtype)
    rows[: int(count)] = given[: int(count)]
    return AttentionKVCache(rows, int(count))


def append(cache: AttentionKVCache, value: NDArray) -> AttentionKVCache:
    """Add rows; one that lacks the axis of positions is a single row.

    Raises:
        ArgumentError: for rows of another shape.
    """
    given = value.numpy()
    given = given[None] if given.shape == cache.rows.shape[1:] else given
    if given.shape[1:] != cache.rows.shape[1:]:
        raise ArgumentError(f"attention_kv_cache_append: rows of the cache are {cache.rows.shape[1:]}, not {given.shape[1:]}")
    end = cache.count + len(given)
    if end > len(cache.rows):
        # Twice as many, so that appending one by one copies each row a constant number of times on the mean.
        grown = np.empty((max(end, 2 * len(cache.rows)), *cache.rows.shape[1:]), cache.rows.dtype)
        grown[: cache.count] = cache.rows[: cache.count]
        cache.rows = grown
    cache.rows[cache.count : end] = given
    cache.count = end
    return cache


def view(cache: AttentionKVCache, shape: Sequence[int]) -> NDArray:
    """The first rows, without a copy.

    Raises:
        ArgumentError: for another shape than that of the rows, or more of them than there are.
    """
    wanted = tuple(map(int, shape))
    if wanted[1:] != cache.rows.shape[1:] or wanted[0] > cache.count:
        raise ArgumentError(f"attention_kv_cache_view: the cache holds {(cache.count, *cache.rows.shape[1:])}, not {wanted}")
    return NDArray(cache.rows[: wanted[0]], cpu())


__all__ = ["AttentionKVCache", "append", "create", "view"]
