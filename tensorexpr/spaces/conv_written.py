"""Convolutions on small planes: tiles of neighbouring pixels that run on over row ends, each with code of its own.

    parallel over panels of channels:
        accumulators = ...                               tile 0: pixels 0 to 5
        for channels of the data: 3 pixels times the panel's vectors of tap (0, 0)
        for channels of the data: ...                    of tap (0, 1), and so on: pixels that read the border have no term
        ...                                              tile 1: pixels 6 to 11

Rows of 7 or 14 pixels are cut badly by tiles of 6: 14 is 5 + 5 + 4, and at a row's ends a tap has a pixel less, so that few
multiply-adds are left to hide their latency. Two rows of 14, or all 49 pixels of 7 rows, are tiles of 5 and 6. Which of their
pixels a tap leaves out follows no pattern that a loop could have, so the tiles and taps of some rows are written out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import prod

from ..target import Target
from .contraction_plan import Pack
from .conv_plan import Order, Plan, has_far_rows, is_peeled, plan_of, reordered
from .conv_tile import all_cycles, register_tiles
from .convolutions import Convolution
from .register_tile import balanced_sizes

# Multiply-adds of whole vectors that are written out at most: with their loads some 20 KB of code, as much as a first-level
# instruction cache holds, and a second or two of compiling.
_WRITTEN = 2048


def plan_written(convolution: Convolution, target: Target) -> Plan | None:
    """The plan with the fewest cycles whose tiles run on over row ends; None if there is none, or too much to write out."""
    if len(convolution.pixels) < 2 or convolution.merged_pixels() or convolution.is_transposed or convolution.depth < 2:
        return None
    *outer, height, width = (convolution.extents[pixel] for pixel in convolution.pixels)
    plane = [convolution.live_pixels(pixel, not is_peeled(convolution)) for pixel in convolution.pixels[-2:]]
    if 2 * width * len(plane[0]) * len(plane[1]) > _WRITTEN:
        return None
    live = [[y in rows and x in columns for y in range(height) for x in range(width)] for rows in plane[0] for columns in plane[1]]
    found: list[Plan] = []
    for rows in (rows for rows in range(2, height + 1) if height % rows == 0):
        # The first and the last rows have bodies of their own if they meet a border.
        bodies = min(height // rows, 3 if is_peeled(convolution) else 1)
        for vectors, tile in register_tiles(convolution, [*outer, rows * width], target):
            fewer = -(-rows * width // tile[-1]) < rows * -(-width // tile[-1])
            if not fewer or bodies * rows * width * vectors * len(live) > _WRITTEN or prod(list(tile[:-1])) > 1:
                continue
            cycles = _cycles(convolution, live, rows * width, tile[-1], vectors, target)
            plan = plan_of(convolution, target, [*outer, height * width], tile, vectors, cycles)
            # Few tiles make a copy of weights whose rows are pages apart too dear, and go to each page for every one of them.
            if plan is not None and plan.chunks == 1 and not (plan.packing is Pack.NONE and has_far_rows(convolution)):
                # Tiles that are no loops have loops over panels around them.
                by_panels = reordered(plan) if plan.order is Order.PIXELS else plan
                found.append(replace(by_panels, rows=rows, taps_inside=False))
    return min(found, key=lambda plan: plan.cycles, default=None)


def _cycles(convolution: Convolution, live: list[list[bool]], group: int, most: int, vectors: int, target: Target) -> float:
    """Cycles on one core with tiles of so many pixels, balanced in each group of rows."""
    sizes, begin, bordered = Counter[int](), 0, not is_peeled(convolution)
    tiles = [size for size, count in balanced_sizes(group, most) for _ in range(count)] * (len(live[0]) // group)
    for size in tiles:
        sizes.update(sum(tap[begin : begin + size]) for tap in live)
        begin += size
    # Axes of pixels outside the plane: loops whose iterations all do the same, but for taps that meet a border.
    repeats = prod([sum(map(len, convolution.live_pixels(pixel, bordered))) for pixel in convolution.pixels[:-2]])
    sizes = Counter({size: count * repeats for size, count in sizes.items()})
    planes = convolution.size(*convolution.pixels[:-2])
    return all_cycles(convolution, sizes, planes * len(tiles), vectors, target, stored=True)
