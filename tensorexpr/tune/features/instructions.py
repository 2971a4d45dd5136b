"""Nests in which an intrinsic does the work of the innermost loops, seen as nests of vectors.

The first of those loops is taken as the lanes, and reduction loops inside it as what one instruction sums: they come before
the tile, since all of it takes part in each of their iterations, and `group` of them take one instruction.

    for k.o: for i: for j.i (tensorized): for k.i    ->    for k.o: for k.i: for i: for j.i in lanes
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...schedule.tree import LoopKind
from .nest import StageNest


def in_vectors(nest: StageNest) -> StageNest:
    """The nest with an intrinsic's loops as lanes and groups; the same nest if there is no intrinsic."""
    first = next((place for place, loop in enumerate(nest.loops) if loop.own and loop.kind is LoopKind.TENSORIZE), None)
    if first is None:
        return nest
    lanes = replace(nest.loops[first], kind=LoopKind.VECTORIZE)
    inside = nest.loops[first + 1 :]
    summed = tuple(loop for loop in inside if loop.reduction)
    others = tuple(replace(loop, kind=LoopKind.UNROLL) for loop in inside if not loop.reduction)
    start = first
    # the stage's own spatial loops next to the intrinsic are its tile
    while start and nest.loops[start - 1].own and not nest.loops[start - 1].reduction:
        start -= 1
    loops = (*nest.loops[:start], *summed, *nest.loops[start:first], *others, lanes)
    return replace(nest, loops=loops, group=float(np.prod([loop.extent.max() for loop in summed])) if summed else 1.0)
