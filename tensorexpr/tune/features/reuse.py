"""When a tensor is touched again: by which loop, how often, and what is executed and touched in between."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...dataclass import dataclass
from ...te.tensor import Tensor
from .nest import Array, IntArray
from .store_loops import StoreLoops, Touched

REUSE_KINDS = ("LoopMultipleRead", "SerialMultipleReadWrite", "NoReuse")
_LOOP, _SERIAL, _NONE = range(3)
Entries = Mapping[int, list[tuple[Tensor, Array, int]]]


@dataclass(frozen=True, eq=False)
class Reuse:
    """[n] each: the number of the kind in REUSE_KINDS; executions and bytes until the next use; how often. Zeros without any."""

    kind: IntArray
    iterations: Array
    bytes: Array
    count: Array


def reuse_of(loops: StoreLoops, tensor: Touched, entries: Entries) -> Reuse:
    """The nearest reuse of a tensor, from the innermost loop outwards.

    Args:
        loops: around the store.
        tensor: that the store touches.
        entries: per loop all that was touched under it, up to this store.
    """
    n = loops.count
    kind, found_iterations = np.full(n, _NONE, np.int64), np.zeros(n)
    found_bytes, found_count = np.zeros(n), np.zeros(n)
    # -1: no loop inside has run yet, so that one execution lies between two uses
    iterations, passed = np.ones(n), np.full(n, -1.0)
    for level in reversed(range(len(loops.places))):
        extent = loops.extents[:, level]
        there = entries[loops.places[level]]
        whole = np.sum([elements * item for _, elements, item in there], axis=0)
        single = float(sum(item for _, _, item in there))
        # from within, and settled programs stay as they are: the first loop that qualifies is the nearest reuse
        open_now = (kind == _NONE) & (extent > 1)
        again = open_now & ~tensor.moves[:, level]
        kind = np.where(again, _LOOP, kind)
        found_iterations = np.where(again, iterations, found_iterations)
        found_bytes = np.where(again, np.where(passed < 0, single, passed), found_bytes)
        found_count = np.where(again, extent, found_count)
        on = open_now & ~again
        iterations, passed = np.where(on, iterations * extent, iterations), np.where(on, whole, passed)
        same = [elements for other, elements, _ in there if other is tensor.tensor]
        # an entry beside our own: another store, or an earlier one of the same, touched it under this loop
        if len(same) > 1:
            kind = np.where(on, _SERIAL, kind)
            found_iterations = np.where(on, np.min(same, axis=0) / extent, found_iterations)
            found_bytes = np.where(on, whole / extent, found_bytes)
            # this access is one of them itself
            found_count = np.where(on, len(same) - 1.0, found_count)
    return Reuse(kind, found_iterations, found_bytes, found_count)
