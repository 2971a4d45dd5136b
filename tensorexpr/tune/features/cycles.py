"""The cycles of a stage, counted: what its vector instructions take of each kind of pipe, what moves between the levels of the memory
hierarchy, and what nothing hides. `Machine` has the rates; no term was fitted to an operator.

- busy: multiply-adds, loads and stores go on side by side, so that the slowest of them counts, and a part of the others. A sum is
  added to once in the latency of an addition, which bounds tiles of few accumulators. Accumulators that don't fit in registers are
  loaded and stored in every step.
- memory: bytes into a level over bytes per cycle, of the slowest level; translations of the TLB are one.
- stalls: where rows start, no prefetcher has asked for the line. All multiply-adds after such a load wait for it, as each adds to what
  the one before has added to; loads and all else go on until the scheduler is full of them, so that each time it is filled with such
  a load among them lasts as long as a line takes to arrive:

    12 multiply-adds in 6 cycles, 100 entries: 50 cycles of 80 are hidden
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from ...dataclass import dataclass
from ...target.machine import Cache, Machine
from .access import Access
from .nest import Array, StageNest
from .traffic import misses

GATHER_CYCLES = 1.5  # per lane: a load of half a cycle, and an insertion
# Of what goes on beside the slowest: instructions wait for each other at the ends of loops, lines arrive in bursts. From 0.2 to 0.5
# order programs alike.
_UNHIDDEN = 0.3


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of a stage's register tile, arrays [n].

    Args:
        count: of all threads.
        adds, loads: vector instructions of a step.
        inserted: lanes that are gathered in a step.
        stored: vectors of results stored in all, and loaded before where they are sums.
        is_sum: whether results are added to.
        slowdown: of the arithmetic by long bodies.
    """

    count: Array
    adds: Array
    loads: Array
    inserted: Array
    stored: Array
    is_sum: npt.NDArray[np.bool_]
    slowdown: Array


@dataclass(frozen=True, eq=False)
class Cycles:
    """Of one stage on one core, arrays [n]: see above. `levels` are the bytes moved into each cache."""

    compute: Array
    load: Array
    store: Array
    memory: Array
    stalls: Array
    levels: tuple[Array, ...]

    @property
    def busy(self) -> Array:
        """Of the instructions, were all data in the first cache."""
        return partly_hidden((self.compute, self.load, self.store))

    @property
    def alone(self) -> Array:
        """Of the stage, while nothing else runs."""
        return partly_hidden((self.busy, self.memory)) + self.stalls


def partly_hidden(parts: Sequence[Array]) -> Array:
    """Cycles of what goes on at the same time."""
    slowest = np.maximum.reduce(list(parts))
    return np.asarray(slowest + _UNHIDDEN * (np.sum(parts, axis=0) - slowest))


def cycles_of(
    nest: StageNest, touched: Sequence[Access], steps: Steps, share: Array, kept: npt.NDArray[np.bool_], machine: Machine
) -> Cycles:
    """The cycles of a stage.

    Args:
        nest: its loops.
        touched: its store and its loads.
        steps: what its register tile does.
        share: which part of the steps is executed.
        kept: whether accumulators stay in registers while the reduction runs.
        machine: that it is for.
    """
    sums = np.where(steps.is_sum, float(machine.fma_latency), 0.0)
    # a step adds to what the step before added to, so that it is no shorter than one addition's latency
    compute = steps.count * np.maximum(steps.adds / machine.fma_per_cycle, sums) * steps.slowdown
    reloaded = np.where(steps.is_sum, steps.stored, 0.0)
    load = (steps.count * steps.loads + reloaded) / machine.loads_per_cycle + steps.count * steps.inserted * GATHER_CYCLES
    store = steps.stored / machine.stores_per_cycle
    # loads wait in a queue of their own on most cores: what fills the scheduler is arithmetic
    windows = np.maximum(1.0, (steps.count * steps.adds + steps.stored) / machine.waiting)
    window = partly_hidden((compute, load, store)) / windows
    stalls, levels = np.zeros_like(compute), []
    for cache in machine.caches:
        moved, sudden = _moved(nest, touched, cache, kept, machine.translations)
        levels.append(moved * share)
        stalls = stalls + np.minimum(sudden * share, windows) * np.maximum(0.0, cache.wait_under_load - window)
    # a TLB is a cache whose lines are pages
    pages = _moved(nest, touched, machine.tlb, kept, machine.translations)[0] * share / machine.tlb.fill_bytes
    memory = np.maximum.reduce([pages, *(level / cache.fill_bytes for level, cache in zip(levels, machine.caches, strict=True))])
    return Cycles(compute, load, store, memory, stalls, tuple(levels))


def _moved(nest: StageNest, touched: Sequence[Access], cache: Cache, kept: npt.NDArray[np.bool_], streams: int) -> tuple[Array, Array]:
    """Bytes into a cache, and lines that nothing asked for. Accumulators that are kept are written once, and take no room till then."""
    if not kept.any():
        return misses(nest, touched, cache, streams)
    loads, sudden = misses(nest, touched[1:], cache, streams)
    # the last cache has the results from the call before, so that they are no traffic of it
    once = loads + (0.0 if cache.keeps else touched[0].lines[:, 0] * touched[0].line_bytes)
    if kept.all():
        return once, sudden
    # accumulators that aren't kept are an access like the loads, in each step
    both = misses(nest, touched, cache, streams)
    return np.where(kept, once, both[0]), np.where(kept, sudden, both[1])


def together(stages: Iterable[tuple[int, Cycles, Array]]) -> Array:
    """Cycles [n] of all stages. Of those around one loop, one computes while the memory serves another.

    Args:
        stages: the number of the stage whose loop each is at, its cycles, and the part of them that the busiest core has.
    """
    homes: dict[int, list[tuple[Array, ...]]] = {}
    for home, cycles, part in stages:
        homes.setdefault(home, []).append((cycles.busy * part, cycles.memory * part, cycles.stalls * part))
    spent = []
    for members in homes.values():
        busy, memory, stalls = (np.sum(column, axis=0) for column in zip(*members, strict=True))
        spent.append(partly_hidden((busy, memory)) + stalls)
    return np.asarray(np.sum(spent, axis=0), float)
