"""What schedules need to know of a target: lanes of a dtype, and how much work is worth several threads."""

from __future__ import annotations

import math

from ..target import Target
from ..tir.dtype import parse_dtype

# Operations below which waking other threads costs more than they save (a fork and join is about a microsecond).
PARALLEL_WORK = 1 << 14


def lanes_of(target: Target, dtype: str) -> int:
    """How many elements of a dtype a vector register holds."""
    return max(1, target.vector_bits // max(8, parse_dtype(dtype).bits))


def accumulators(target: Target, values: int = 1) -> int:
    """How many vectors of partial results of each of some values hide the latency of their sums.

    A sum can be added to again after `fma_latency` cycles, in which `fma_latency * fma_per_cycle` others start: the next power of two,
    which divides most extents. Those of all values together take half of the registers at most.
    """
    machine = target.machine
    wanted = math.ceil(machine.fma_latency * machine.fma_per_cycle)
    return max(1, min(1 << (wanted - 1).bit_length(), machine.vector_registers // 2 // values))


def is_parallel(target: Target, work: float) -> bool:
    """True if so many operations should be spread over the target's cores."""
    return target.num_cores > 1 and work >= PARALLEL_WORK


def outgrows_cache(target: Target, size: int) -> bool:
    """True if a result of so many bytes is better written past the caches.

    What it is made from is at least as large, as a rule, so from half of the last level on neither stays there, and lines
    that are written through the caches are read first: 3 bytes of traffic where 2 would do.
    """
    return 2 * size >= target.l3_cache_size_bytes


def vector_factor(extent: int, lanes: int, most: int) -> int:
    """The part of an axis to vectorise: up to `most` registers, a number that divides the extent if one does.

    An extent below one register is a vector by itself.
    """
    if extent <= lanes:
        return max(1, extent)
    for count in range(min(most, extent // lanes), 0, -1):
        if extent % (count * lanes) == 0:
            return count * lanes
    return lanes * min(most, max(1, extent // lanes))
