"""What schedules need to know of a target: lanes of a dtype, and how much work is worth several threads."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..target import Target
from ..tir.dtype import parse_dtype
from ..tir.expr import Call, PrimExpr
from ..tir.intrin import INTRINSICS
from ..tir.rewriting import walk

# Bytes that an operation moves: two numbers are read, one is written to a line that is fetched first.
_MOVED = 16
# Registers of one vector operation: enough to hide the latency of loads.
VECTORS = 4
# Rows of a matrix side by side that prefetchers follow.
STREAMS = 8
# Operations in whose time exp, tanh or their like is computed of a number that is there.
_POLYNOMIAL = 5


def lanes_of(target: Target, dtype: str) -> int:
    """How many elements of a dtype a vector register holds."""
    # At least 8 bits: a bool is a byte in memory, and vectors of it are loaded as bytes.
    return max(1, target.vector_bits // max(8, parse_dtype(dtype).bits))


def accumulators(target: Target, values: int = 1) -> int:
    """How many vectors of partial results of each of some values hide the latency of their sums.

    A sum can be added to again after `fma_latency` cycles, in which `fma_latency * fma_per_cycle` others start: the next power of two,
    which divides most extents. Those of all values together take half of the registers at most.
    """
    machine = target.machine
    # Example: latency 4, two a cycle: 8 sums are under way. Zen 3 and Skylake alike.
    wanted = math.ceil(machine.fma_latency * machine.fma_per_cycle)
    return max(1, min(1 << (wanted - 1).bit_length(), machine.vector_registers // 2 // values))


def is_parallel(target: Target, work: float) -> bool:
    """True if so many operations should be spread over the target's cores: that saves more cycles than it takes to start them.

    From the second cache numbers come at `fill_bytes` a cycle. (znver1, 2 cores: 30K elementwise operations take as long on one core
    as on both, of a sum 60K; this gives 16K.)
    """
    machine = target.machine
    cycles = work * _MOVED / machine.caches[0].fill_bytes
    # n cores save 1 - 1/n of the cycles; to start them costs the same however little they do.
    return target.num_cores > 1 and cycles * (1 - 1 / target.num_cores) >= machine.fork_join_cycles


def parallel_from(target: Target, work: float) -> int:
    """How many iterations of so many operations each are worth the target's threads, as `is_parallel` counts."""
    machine = target.machine
    cycles = max(1.0, work) * _MOVED / machine.caches[0].fill_bytes
    return math.ceil(machine.fork_join_cycles / (cycles * max(0.5, 1 - 1 / target.num_cores)))


def operations(bodies: Sequence[PrimExpr], points: int) -> int:
    """About how many operations evaluate some values at so many points."""
    found = [INTRINSICS.get(node.op) for body in bodies for node in walk(body) if isinstance(node, Call)]
    polynomials = sum(one is not None and one.kind == "float" and bool(one.accuracy) for one in found)
    return points * (1 + _POLYNOMIAL * polynomials)


def outgrows_cache(target: Target, size: int) -> bool:
    """True if a result of so many bytes is better written past the caches.

    What it is made from is at least as large, as a rule, so from half of the last level on neither stays there, and lines
    that are written through the caches are read first: 3 bytes of traffic where 2 would do.
    """
    return 2 * size >= target.l3_cache_size_bytes


def vector_factor(extent: int, lanes: int, most: int = VECTORS) -> int:
    """The part of an axis to vectorise: up to `most` registers, a number that divides the extent if one does.

    An extent below one register is a vector by itself.
    """
    if extent <= lanes:
        return max(1, extent)
    for count in range(min(most, extent // lanes), 0, -1):
        if extent % (count * lanes) == 0:
            return count * lanes
    return lanes * min(most, max(1, extent // lanes))
