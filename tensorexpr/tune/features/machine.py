"""A roofline over the memory hierarchy: cycles per stage from footprints, for whole populations.

Traffic into a cache: take the outermost level whose working set fits. What one iteration of the loop around it touches
stays until the next, so that every pass over that loop loads its footprint once. Rows a power of two apart share few
sets of a cache, which shrinks what it holds for them. Rates are per core and cycle; they are those of a server core
with 512-bit vectors and scale with the target's vector width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...target import Target
from .access import LINE_BYTES, Access
from .nest import Array, StageNest


@dataclass(frozen=True)
class Cache:
    """One level: capacity in bytes, ways, bytes per cycle and core that the level below delivers into it, and whether it keeps
    what fits from one call to the next."""

    size: int
    ways: int
    fill_bytes: float
    keeps: bool = False

    @property
    def way_bytes(self) -> int:
        """Addresses this far apart share a set."""
        return max(LINE_BYTES, self.size // self.ways)


@dataclass(frozen=True)
class Machine:
    """What the cost of a loop nest depends on."""

    cores: int
    lanes_bytes: int
    registers: int
    fma_per_cycle: float
    loads_per_cycle: float
    stores_per_cycle: float
    caches: tuple[Cache, ...]

    @staticmethod
    def of(target: Target) -> Machine:
        """The machine of a target."""
        width = target.vector_bits // 8
        return Machine(
            cores=target.num_cores,
            lanes_bytes=width,
            registers=target.vector_registers,
            fma_per_cycle=2.0,
            loads_per_cycle=2.0,
            stores_per_cycle=1.0,
            caches=(
                Cache(target.l1_cache_size_bytes, 12, width),
                Cache(target.l2_cache_size_bytes, 16, 20.0),
                Cache(max(target.l3_cache_size_bytes, 1 << 20), 16, 8.0, keeps=True),
            ),
        )


def traffic(nest: StageNest, touched: Sequence[Access], cache: Cache) -> Array:
    """[n]: bytes moved into `cache` over the whole nest. What all fits in the last cache is there from the call before."""
    depth = len(nest.loops)
    fits = np.sum([_occupied(access, cache) for access in touched], axis=0) <= 1.0
    fits[:, depth] = True
    level = fits.argmax(axis=1)
    rows, above = np.arange(len(level)), np.maximum(level - 1, 0)
    passes = _outer_trips(nest)[rows, above]
    total = np.zeros(len(level))
    for access in touched:
        total += access.lines[rows, above] * passes * LINE_BYTES * (2.0 if access.is_store else 1.0)
    return np.where(level == 0, 0.0, total) if cache.keeps else total


def nest_extent(nest: StageNest) -> Array:
    """[n, m]: the extents of the loops."""
    return np.stack([loop.extent for loop in nest.loops], axis=1) if nest.loops else np.ones((len(nest.unroll_step), 0))


def _outer_trips(nest: StageNest) -> Array:
    """[n, m + 1]: how often loop d is entered."""
    extents = nest_extent(nest)
    return np.concatenate([np.ones((len(extents), 1)), np.cumprod(extents, axis=1)], axis=1)


def _occupied(access: Access, cache: Cache) -> Array:
    """[n, m + 1]: which part of a cache an access takes: of its lines, or of the ways of few sets, if rows lie a power of two apart."""
    row = access.row_bytes.astype(np.int64)
    starts = np.maximum(1, cache.way_bytes // np.gcd(np.maximum(row, 1), cache.way_bytes))
    ways = access.rows / (starts * cache.ways)
    aligned = (row >= LINE_BYTES) & (row % LINE_BYTES == 0)
    return np.maximum(access.lines * LINE_BYTES / cache.size, np.where(aligned, ways, 0.0))
