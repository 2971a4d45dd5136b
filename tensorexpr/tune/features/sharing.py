"""Lines that cores take from each other: those at the ends of what each writes, where cores write parts of the same rows.

A prefetcher that follows a core's stores brings the next line too, which another core is about to write. Each of the two waits for the
other to give it back, and stores leave their buffer in order:

    parallel f.o in 2: for i in 12000: for f.i in 32: C[i, f]      every line of 64 columns is next to one of the other core

On a Zen 3 server with two cores such a product takes 1.2 to 1.6 times as long as with rows for each core, one of 256 columns 1.1 times.
What fits in a core's own cache stays there from call to call, and nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...schedule.tree import At, LoopKind
from ...spaces.tile_cycles import LONG
from ...target.machine import Cache, Machine
from .access import Access, stride_of
from .nest import Array, StageNest

_LINES = 2.0  # of what a core writes in a row that have a neighbour of another core's


def taken_lines(nest: StageNest, touched: Sequence[Access], machine: Machine, threads: Array) -> Array:
    """[n]: lines of a stage's result that a core has to take from another one, of all cores.

    Args:
        nest: its loops.
        touched: its store and its loads.
        machine: that it is for.
        threads: [n] cores that work on it.
    """
    store, count = touched[0], len(threads)
    taken, looked = np.zeros(count), np.zeros(count, bool)
    if isinstance(nest.stage.attach, At):  # each core has a box of its own
        return taken
    lines = store.lines[:, 0]
    stays = _bytes_of(touched, machine.caches[1]) <= machine.caches[1].size
    for place, loop in enumerate(nest.loops):
        # cores have equal shares of the outermost loop that has several iterations: the loops in it are each core's own
        here = ~looked & (loop.extent > 1) & (loop.kind is LoopKind.PARALLEL)
        if here.any():
            whole = stride_of(nest, place) * loop.extent * store.item_bytes
            inside = place + 1
            crosses = (store.rows[:, inside] > 1) & (store.row_bytes[:, inside] >= whole) & (whole > 0)
            run = np.maximum(whole / np.maximum(threads, 1.0), store.line_bytes)
            part = np.where(run < LONG * store.line_bytes, np.minimum(1.0, _LINES * store.line_bytes / run), 0.0)
            taken = np.where(here & crosses & (threads > 1) & ~stays, lines * part, taken)
        looked = looked | here
    return taken


def _bytes_of(touched: Sequence[Access], cache: Cache) -> Array:
    return np.asarray(np.sum([access.lines_of(cache.line)[:, 0] * cache.line for access in touched], axis=0), float)
