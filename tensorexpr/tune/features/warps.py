"""How the threads of a warp meet memory: sectors of global memory and banks of shared memory, counted for whole populations.

The 32 threads of a warp are neighbours along threadIdx.x, then .y and .z. Where each reads is evaluated, so that nothing is guessed:

    A[i, k], thread t at i = t: rows apart, 32 sectors;      B[k, j], thread t at j = t: 128 bytes, 4 sectors
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .axis_values import root_values
from .nest import Array, Form, IntArray, StageNest

WARP = 32
SECTOR = 32
"""Bytes of global memory that are moved at once."""
_BANKS = 32
_WORD = 4
_GLOBAL_WIDEST = 16


def lane_axes(nest: StageNest) -> tuple[dict[int, Array], npt.NDArray[np.bool_]]:
    """[n, 32] per root axis of a stage where the threads of the first warp stand, counted from where the stage's box starts, and which of
    the 32 are beyond those of the block."""
    count = len(nest.unroll_step)
    rest = np.tile(np.arange(WARP), (count, 1))
    zero = np.zeros((count, WARP))
    leaves = dict.fromkeys(nest.stage.leaf, (zero, zero))
    found: dict[int, Array] = {}
    for axis in "xyz":
        tag = f"threadIdx.{axis}"
        own = next((leaf for leaf in nest.stage.leaf if (mark := nest.stage.mark(leaf).thread) is not None and mark.tag == tag), None)
        if own is not None:
            extent = np.maximum(nest.extents[own], 1).astype(np.int64)[:, None]
            leaves[own] = (rest % extent + zero,) * 2
            rest = rest // extent
        for loop in reversed([loop for loop in nest.loops if loop.thread == tag and not loop.own]):
            extent = np.maximum(loop.extent, 1).astype(np.int64)[:, None]
            for root, stride in loop.strides.items():
                found[root] = found.get(root, zero) + rest % extent * stride[:, None]
            rest = rest // extent
    # a loop that was fused and then split moves several axes in steps of all sizes
    values = root_values(nest, leaves)
    return {root: found.get(root, zero) + values[root][0] for root in (*nest.stage.spatial, *nest.stage.reduction)}, rest > 0


def lane_offsets(nest: StageNest, forms: Sequence[Form | None], pitches: Sequence[Array]) -> IntArray:
    """[n, 32]: which element each thread of the first warp accesses; threads beyond those of the block do what its first one does.

    Args:
        nest: the loops around the access.
        forms: its indices.
        pitches: elements from one index to the next, of each dimension.
    """
    axes, beyond = lane_axes(nest)
    offsets = np.zeros(beyond.shape, np.int64)
    for form, pitch in zip(forms, pitches, strict=True):
        if form is None:  # it may be anywhere: each thread elsewhere
            index = np.arange(WARP) * np.ones(beyond.shape)
        else:
            index = np.sum([factor * axes[root] for root, factor in form.items()], axis=0) + np.zeros(beyond.shape)
        # 1e-6: sums of 1/32 and the like
        whole = np.floor(index + 1e-6)
        whole = whole % form.period if form is not None and form.period else whole
        offsets += (whole * pitch[:, None]).astype(np.int64)
    return np.where(beyond, offsets[:, :1], offsets)


def sectors(offsets: IntArray, item: int, width: Array) -> Array:
    """[n]: sectors of 32 bytes that a warp moves at once, each thread `width` elements from where it is."""
    first = offsets * item
    last = first + (np.maximum(width, 1)[:, None] * item - 1).astype(np.int64)
    both = np.concatenate([first // SECTOR, last // SECTOR], axis=1)
    return _distinct(both)


def wavefronts(offsets: IntArray, item: int, width: Array) -> Array:
    """[n]: cycles in which shared memory serves a warp, each thread `width` elements: threads that want other words of a bank wait.

    Accesses of 8 and 16 bytes are served by halves and quarters of the warp.
    """
    found = np.ones(len(offsets))
    sizes = np.minimum(np.maximum(width, 1) * item, _GLOBAL_WIDEST)
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        words = max(1, int(size) // _WORD)
        starts = offsets[rows] * item // _WORD
        parts = np.split(starts, words, axis=1)
        found[rows] = np.sum([_fullest_bank((part[:, :, None] + np.arange(words)).reshape(len(rows), -1)) for part in parts], axis=0)
    return found


def _fullest_bank(words: IntArray) -> Array:
    """[n]: different words in the bank that has the most of those wanted [n, m]."""
    ordered = np.sort(words, axis=1)
    new = np.ones_like(ordered, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    places = (np.arange(len(ordered)) * _BANKS)[:, None] + ordered % _BANKS
    counts = np.bincount(places[new], minlength=len(ordered) * _BANKS)
    return np.asarray(counts.reshape(len(ordered), _BANKS).max(axis=1), float)


def _distinct(numbers: IntArray) -> Array:
    """[n]: how many different numbers each row has."""
    ordered = np.sort(numbers, axis=1)
    return np.asarray(1.0 + (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1), float)
