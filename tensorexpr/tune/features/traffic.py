"""Bytes that move into each level of the memory hierarchy, for whole populations.

Traffic into a cache: take the outermost level whose working set fits. What one iteration of the loop around it touches
stays until the next, so that every pass over that loop loads its footprint once. Rows a power of two apart share few
sets of a cache, which shrinks what it holds for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...target.machine import Cache
from .access import Access
from .nest import Array, StageNest


def traffic(nest: StageNest, touched: Sequence[Access], cache: Cache) -> Array:
    """[n]: bytes moved into `cache` over the whole nest. What all fits in the last cache is there from the call before."""
    return misses(nest, touched, cache)[0]


def misses(nest: StageNest, touched: Sequence[Access], cache: Cache, streams: int = 1) -> tuple[Array, Array]:
    """[n] each: bytes moved into `cache`, and lines that nothing asks for ahead: a prefetcher follows lines to the end of a row,
    and where the next one starts is read first by an instruction that then waits. It follows so many `streams` at a time."""
    depth = len(nest.loops)
    lines = [access.lines if cache.line == access.line_bytes else access.lines_of(cache.line) for access in touched]
    fits = sum(_occupied(access, its, cache) for access, its in zip(touched, lines, strict=True)) <= np.ones((1, 1))
    # one execution counts as fitting: argmax of a row without any True would be 0, that is "all of it fits"
    fits[:, depth] = True
    level = fits.argmax(axis=1)
    rows, above = np.arange(len(level)), np.maximum(level - 1, 0)
    passes = _outer_trips(nest)[rows, above]
    if cache.keeps:
        passes = np.where(level == 0, 0.0, passes)
    total, sudden = np.zeros(len(level)), np.zeros(len(level))
    for access, its in zip(touched, lines, strict=True):
        moved = its[rows, above]
        # a line that is stored to is read before and written back after
        total += moved * (cache.line * (2.0 if access.is_store else 1.0))
        if not access.is_store:  # stores wait in their buffer
            starts = access.jumps(streams)[rows, above]
            sudden += np.where(starts > 1, np.minimum(starts, moved), 0.0)
    return total * passes, sudden * passes


def nest_extent(nest: StageNest) -> Array:
    """[n, m]: the extents of the loops."""
    return np.stack([loop.extent for loop in nest.loops], axis=1) if nest.loops else np.ones((len(nest.unroll_step), 0))


def _outer_trips(nest: StageNest) -> Array:
    """[n, m + 1]: how often loop d is entered."""
    extents = nest_extent(nest)
    return np.concatenate([np.ones((len(extents), 1)), np.cumprod(extents, axis=1)], axis=1)


def _occupied(access: Access, lines: Array, cache: Cache) -> Array:
    """[n, m + 1]: which part of a cache an access takes.

    Sets are a power of two: rows whose distance is a multiple of 2**k use every 2**k-th byte of the sets, so that each takes 2**k
    bytes of the cache, up to those of a way. The last cache has slices that a hash of the address chooses: no distance puts
    all rows into one. A TLB has no sets.
    """
    taken = lines * cache.line
    if not cache.keeps and cache.way_bytes > cache.line:
        taken = np.maximum(taken, access.rows * np.minimum(access.apart_bytes, cache.way_bytes))
    return np.asarray(taken / cache.size)
