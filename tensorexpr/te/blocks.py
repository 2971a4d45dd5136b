"""Index boxes: large iteration spaces cut into pieces of bounded volume, in lexicographic order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from .evaluation import Array

Box = tuple[tuple[int, int], ...]


def boxes(extents: Sequence[int], volume: int) -> Iterator[Box]:
    """Boxes of (begin, end) that cover `extents` in lexicographic order, each of at most `volume` points if that is 1 or more."""
    if any(extent == 0 for extent in extents):
        return
    pivot, inner = len(extents), 1
    # inner dimensions that fit are whole, the one before them is cut into runs, those before that into single indices
    while pivot > 0 and inner * extents[pivot - 1] <= volume:
        pivot -= 1
        inner *= extents[pivot]
    rest = tuple((0, extent) for extent in extents[pivot:])
    if pivot == 0:
        yield rest
        return
    step = max(1, volume // inner)
    for outer in product(*(range(extent) for extent in extents[: pivot - 1])):
        for begin in range(0, extents[pivot - 1], step):
            yield (*((i, i + 1) for i in outer), (begin, min(begin + step, extents[pivot - 1])), *rest)


def open_grid(box: Box, offset: int, ndim: int, starts: Sequence[int], dtypes: Sequence[np.dtype[np.generic]]) -> list[Array]:
    """Coordinates of a box that broadcast against each other: coordinate d lies along dimension `offset + d` of `ndim`."""
    grid = []
    for d, (begin, end) in enumerate(box):
        shape = [1] * ndim
        shape[offset + d] = end - begin
        grid.append(np.arange(starts[d] + begin, starts[d] + end, dtype=dtypes[d]).reshape(shape))
    return grid
