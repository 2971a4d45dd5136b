"""Schedules of reductions over small windows: depthwise convolutions, pooling, and convolutions of a few channels.

Neighbouring results read overlapping windows, so several rows of results are computed at once and share their loads, with
the whole window written out:

    for n, c in parallel:  for rows of a tile, for vectors of columns:  X row by row -> up to 14 accumulators -> results

Paddings are part of the loads. With mask registers, rows outside are skipped by a test and lanes outside are masked. Without, a
mask made at run time is a vector that takes a register and several instructions per load, so the border is peeled: the first and
last tiles of rows and vectors of columns have bodies of their own with constant masks, and those between load as they are:

    for i in 14:  for j in 7:  X[4i - 1 : 4i + 5, 8j - 1 : 8j + 9] where inside
    ->  i = 0: (j = 0, j in 1..5, j = 6);  i in 1..12: (j = 0, j in 1..5: no masks, j = 6);  i = 13: ...

A convolution of too few channels for vectors of them is the same with a loop over what else is summed around each tile's terms:

    for y, x in parallel:  for rc in 32:  X[rc, y : y + 3, x : x + 18] -> up to 14 accumulators of Y[0, y, x : x + 16]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeGuard

from ..dataclass import dataclass, replace
from ..schedule.te_schedule import Schedule
from ..schedule.tree import ScheduleTree, StageNode
from ..target import Target
from ..te.operation import ComputeOp, Operation, loads
from ..te.tensor import Tensor
from ..tir.expr import IterVar, Reduce, Var
from .access import bytes_of, element_bytes, flat_access, is_streamed
from .contractions import inline_borders
from .convolutions import convolution_of
from .machine import is_parallel, lanes_of
from .nests import accumulators_of, as_tasks, in_vectors
from .sizes import decided, registers, written_rows
from .stages import constant_extents, extents_of, tiled_result

# Terms of one window that are written out, and of all windows of a tile: code that is lowered and compiled up to nine times, once
# for each combination of borders.
_TERMS = 64
_TILE_TERMS = 160
# Rows computed at once where the weights don't stay in registers beside them, and each is read in turn. r rows read r + k - 1 rows of
# the data, so four need half of the loads of single ones for k = 3; more would save a tenth, and spill as the weights take turns.
_LEAST_ROWS = 4
# Pixels of a tile with its window, one after the other.
_PIXELS = 8
# Vectors of pixels that channels share: more of them are fewer channels that do.
_VECTORS = 4
# Cycles until a line of the third level arrives, up to which tiles needn't be such that prefetchers follow: 46 on Zen 3; 70 on Ice Lake.
_NEAR_WAIT = 50.0


@dataclass(frozen=True)
class Window:
    """A reduction that slides over what it reads.

    Args:
        op: the definition.
        moved: the axis of the result along which a reduction axis moves the window, for those that do.
        taps: the axes of the window that are written out.
        first: those of them that a tile goes through one by one, its rows inside; none where it goes through its rows one by one.
        sharing: the place of the axis whose results read the same elements, and how many in a row do; (0, 0) where rows share more.
    """

    op: ComputeOp
    moved: Mapping[Var, Var]
    taps: tuple[IterVar, ...]
    first: tuple[IterVar, ...]
    sharing: tuple[int, int] = (0, 0)

    @property
    def is_along(self) -> bool:
        """True if the window moves along the lanes."""
        return self.op.axis[-1].var in self.moved.values()

    @property
    def terms(self) -> int:
        """The terms of a window that are written out."""
        return prod(extents_of(self.taps))

    @property
    def held(self) -> int:
        """Registers for what the terms of a window read."""
        return self.terms * len({load.producer for load in loads(self.op)})


def windows_of(tree: ScheduleTree, stage: StageNode, target: Target) -> list[Window]:
    """A reduction of one value whose axes all move a window along an axis of the result, by a few elements; none for any other stage.

    Example:
        Y[c, y, x] = max over r, s of X[c, 2y + r, 2x + s]: r moves the window along y, s along x. Not with X[c, y + r, k], k summed.
    """
    op = stage.op
    if not _is_one_sum(op) or prod(extents_of(op.reduce_axis)) > _TERMS:
        return []
    moved = _moved_axes(op)
    return [_described(op, moved, target)] if len(moved) == len(op.reduce_axis) and prod(extents_of(op.axis)) > 1 else []


def sums_of_windows(tree: ScheduleTree, stage: StageNode, target: Target) -> list[Window]:
    """A convolution whose channels fill less than half a vector, where its rows of pixels fill more; none for any other stage.

    Example:
        32 channels of data to 3 of results: a vector of 8 would have 5 lanes that compute nothing.
    """
    convolution = convolution_of(stage.op) if _is_one_sum(stage.op) else None
    if convolution is None or convolution.is_transposed or convolution.is_column_last:
        return []
    op = convolution.op
    lanes, row = lanes_of(target, op.output_dtype(0)), len(op.axis) - 1
    # a vector of weights serves the pixels of one group: where groups of 4 channels fill a quarter of it, no tile takes them
    channels = convolution.size(convolution.column)
    in_parts = convolution.per_group < channels and convolution.per_group % lanes > 0
    fills = (in_parts or 2 * channels < lanes) and lanes <= 2 * convolution.size(row)
    moved = _moved_axes(op) if fills else {}
    if op.axis[row].var not in moved.values():
        return []
    found = _described(op, moved, target)
    # Where the window is one element its rows share none, and channels of a group share all.
    return [found if found.terms > 1 else replace(found, sharing=(convolution.column, convolution.per_group))]


def _is_one_sum(op: Operation) -> TypeGuard[ComputeOp]:
    """True for a reduction of one value to a tensor of two axes or more, all of known extents."""
    is_sum = isinstance(op, ComputeOp) and op.num_outputs == 1 and isinstance(op.body[0], Reduce)
    return is_sum and len(op.axis) >= 2 and constant_extents((*op.axis, *op.reduce_axis)) is not None


def _moved_axes(op: ComputeOp) -> dict[Var, Var]:
    """The axis of the result along which a reduction axis moves the window, for those that do."""
    spatial, reduced = {axis.var for axis in op.axis}, {axis.var for axis in op.reduce_axis}
    moved: dict[Var, Var] = {}
    for load in loads(op):
        for form in flat_access(load).partial:
            along = [var for var in form if var in spatial]
            # y + r moves the window along y; y + x + r moves it along neither.
            if len(along) == 1:
                moved.update({var: along[0] for var in form if var in reduced})
    return moved


def _described(op: ComputeOp, moved: Mapping[Var, Var], target: Target) -> Window:
    """What is written out: of the axes that move the window the last ones, and which of them a tile goes through one by one.

    A row is a chain of k * k multiply-adds, each of which waits for the one before. Where all weights are in registers, rows one by one
    load each but once. Where they aren't, those of one column of the window are: so many rows as there are accumulators go on at a time,
    independent of each other (znver1, planes of 112, 56 and 28: 1.09, 1.05 and 1.03 times as fast with four rows, 1.21, 1.18 and 1.15
    with seven or eight). At a stride neighbouring taps are halves of the same loads, which the tile would do again (0.96 to 1.08 times).
    Vectors of channels go through the window's rows, whose taps share pixels (40 moves to the stack become none: 1.0 to 1.14 times).
    """
    taps = tuple[IterVar, ...]()
    for axis in reversed(op.reduce_axis):
        if axis.var in moved and prod(extents_of((axis, *taps))) <= _TERMS:
            taps = (axis, *taps)
    window, last = Window(op, moved, taps, ()), op.axis[-1].var
    has_gaps = any(flat_access(load).stride(last) not in (0, 1) for load in loads(op))
    if has_gaps or window.held + _LEAST_ROWS <= target.vector_registers:
        return window
    along = last if window.is_along else next(axis.var for axis in op.axis if axis.var in moved.values())
    return replace(window, first=tuple(axis for axis in taps if moved.get(axis.var) is along))


def build_window(s: Schedule, stage: StageNode, found: Window, target: Target) -> None:
    """Schedule a reduction over windows, with the paddings that it reads and the stage that reads it.

    What was scheduled is inlined, computed at a loop of another stage, or has vector loops afterwards.
    """
    inline_borders(s, stage)
    result = tiled_result(s, stage)
    window = s[accumulators_of(s, stage.origin.output(0), result)]
    window.compute_at(s[result], _tile_result(s, result, found, target))
    *outer, lane = window.op.axis
    own = dict(zip(found.op.reduce_axis, window.op.reduce_axis, strict=True))
    taps, first = [own[tap] for tap in found.taps], [own[tap] for tap in found.first]
    written = [*first, *(tap for tap in taps if tap not in first), *outer] if first else [*outer, *taps]
    in_vectors(window, [axis for axis in own.values() if axis not in taps], written, lane)
    for axis in () if found.is_along else first:  # or LLVM would keep pixels of this row of the window for the next
        window.pragma(axis, "no_load_merge")


def _tile_result(s: Schedule, result: Tensor, window: Window, target: Target) -> IterVar:
    """Cut the result in tiles of some rows of a vector; returns the loop over tiles."""
    op, extents = window.op, extents_of(window.op.axis)
    axes = list(s[result].op.axis)
    stage = s[result]
    lanes = lanes_of(target, result.dtype)
    count, sizes = _tile(window, extents, lanes, target)
    width = min(extents[-1], lanes * count)
    column, lane = stage.split(axes[-1], factor=decided(stage, axes[-1], width, registers(lanes, target)) if count > 1 else width)
    tiles: dict[int, tuple[IterVar, IterVar]] = {}
    for place, size in sizes.items():
        # Of nearly equal sizes: a guard on the rows of a last, shorter tile would have some computed in vain.
        rows = decided(stage, axes[place], size, written_rows(target))
        tiles[place] = stage.split(axes[place], factor=rows, balanced=True)
    innermost = max(tiles)
    outer = [tiles[place][0] if place in tiles else axis for place, axis in enumerate(axes[:-1]) if place != innermost]
    inside = [inner for _, inner in tiles.values()]
    in_vectors(stage, [*outer, tiles[innermost][0], column], inside, lane)
    outermost = outer[0] if outer else tiles[innermost][0]
    if is_parallel(target, prod(extents_of((*op.axis, *op.reduce_axis)))):
        groups = prod([-(-extent // sizes.get(place, 1)) for place, extent in enumerate(extents[:-1]) if place != innermost])
        # Tiles of one image share the threads if there are too few images to balance them.
        shared = [*outer, tiles[innermost][0]] if groups < 4 * target.num_cores else outer
        outermost = as_tasks(stage, shared, parallel=True)
    # With mask registers a masked load costs what a plain one does, so that bodies of their own would be code for nothing.
    if not target.machine.mask_registers:
        stage.pragma(outermost, "loop_partition_hint")
    # A line of which but a part is stored before others are goes to memory in parts (Ice Lake server, two: 10 ms instead of 2.4).
    whole_lines = width * element_bytes(result.dtype) % target.machine.line_bytes == 0
    if whole_lines and is_streamed(s, result, target):
        stage.store_nontemporal()
    return column


def _tile(window: Window, extents: Sequence[int], lanes: int, target: Target) -> tuple[int, dict[int, int]]:
    """Registers of a vector, and the extents of a tile by the places of its axes.

    Vectors along which the window moves load every element for each of its columns, so one long axis of rows shares most.
    Where vectors are channels, a tile of both axes of the window shares more with as many accumulators; two registers of
    channels then fetch lines in pairs, where the lines of neighbours in the tile are far apart. Where they are near, and come
    from beyond the caches, a tile of one column goes along some rows without a step back, which prefetchers follow (Ice Lake
    server, 112 x 112 pixels of 32 and 64 channels, 16 images: 1.16 and 1.25 times as fast, one image 1.00 and 1.13).
    """
    op, terms, moved = window.op, window.terms, set(window.moved.values())
    place, shared = window.sharing
    if shared:
        # A quarter of the registers is for weights and pixels on their way.
        budget, vectors = 3 * target.vector_registers // 4, -(-extents[-1] // lanes)
        # A divisor: a tile across two groups would read what both read. Pixels, then rows, fill up what it leaves of the accumulators.
        channels = next(size for size in range(min(budget // min(2, vectors), shared), 0, -1) if shared % size == 0)
        count = _even(vectors, min(_VECTORS, budget // channels))
        row, rows = len(extents) - 2, budget // (channels * count)
        return count, {place: channels, **({row: _even(extents[row], rows)} if rows > 1 and row != place else {})}
    places = [number for number, axis in enumerate(op.axis[:-1]) if axis.var in moved] or [len(op.axis) - 2]
    columns = extents_of(window.first)
    # accumulators + terms * operands <= registers, or accumulators + a column's weights + 1; terms * accumulators <= _TILE_TERMS
    held = terms // prod(columns) + 1 if columns else window.held
    most = max(_LEAST_ROWS, min(target.vector_registers - held, _TILE_TERMS // terms))
    if window.is_along or len(places) == 1:
        return 1, {places[-1]: _even(extents[places[-1]], most)}
    # Registers in pairs where a page holds no more pixels than a tile reads in a row.
    pixel_bytes = extents[-1] * element_bytes(op.output(0).dtype)
    is_far = _PIXELS * pixel_bytes >= target.machine.page_bytes
    moved_bytes = bytes_of(op.output(0)) + sum(bytes_of(load.producer) for load in loads(op) if isinstance(load.producer, Tensor))
    streams = not is_far and moved_bytes > _near_bytes(target)
    registers = 2 if is_far or (streams and extents[-1] >= 2 * lanes) else 1
    first, second = places[-2:]
    budget = max(_LEAST_ROWS, min(target.vector_registers // 2, _TILE_TERMS // terms))
    width = 1 if streams else _even(extents[second], min(4, budget))
    rows = min(_LEAST_ROWS, budget // registers) if streams else budget // (width * registers)
    return registers, {first: _even(extents[first], max(1, rows)), second: width}


def _near_bytes(target: Target) -> int:
    """What fits into caches whose lines multiply-adds don't wait for, in whatever order they are read."""
    # 112 x 112 pixels of 32 channels in the third level of Zen 3, 46 cycles away: tiles of 2 x 4 in 0.056 ms, 4 x 1 by pairs in 0.075.
    private, third = target.num_cores * target.l2_cache_size_bytes, target.machine.caches[1].wait
    return max(private, target.l3_cache_size_bytes) if third <= _NEAR_WAIT else private


def _even(extent: int, most: int) -> int:
    """The size of tiles of at most `most`: a divisor that isn't much smaller, or such that all tiles have nearly that size."""
    for size in range(min(extent, most), most // 2, -1):
        if extent % size == 0:
            return size
    return -(-extent // -(-extent // most))
