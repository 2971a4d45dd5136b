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

from collections.abc import Sequence
from math import prod

from ..schedule.steps import ComputeInline
from ..schedule.te_schedule import Schedule
from ..schedule.tree import Inline, StageNode
from ..target import Target
from ..te.operation import ComputeOp, loads
from ..te.tensor import Tensor
from ..tir.expr import IterVar, Reduce, Var
from .access import bordered, bytes_of, element_bytes, flat_access, is_streamed
from .convolutions import convolution_of
from .machine import is_parallel, lanes_of
from .sizes import decided, registers, written_rows
from .stages import constant_extents, extents_of, tiled_result, untouched

# Terms of one window that are written out, and of all windows of a tile: code that is lowered and compiled up to nine times, once
# for each combination of borders.
_TERMS = 64
_TILE_TERMS = 160
# Rows computed at once where the weights don't stay in registers beside them, and each is read in turn. r rows read r + k - 1 rows of
# the data, so four need half of the loads of single ones for k = 3; more would save a tenth, and spill as the weights take turns.
_LEAST_ROWS = 4
# Pixels of a tile with its window, one after the other.
_PIXELS = 8
# Cycles until a line of the third level arrives, up to which tiles needn't be such that prefetchers follow: 46 on Zen 3; 70 on Ice Lake.
_NEAR_WAIT = 50.0


def schedule_windows(s: Schedule, target: Target) -> None:
    """Schedule all reductions over small windows, each with the paddings it reads and the stage that reads it.

    What was scheduled is inlined, computed at a loop of another stage, or has vector loops afterwards.
    """
    for stage in list(s.tree.in_order()):
        if not isinstance(stage.attach, Inline) and is_window(s, stage):
            _schedule(s, stage, target)


def schedule_sums_of_windows(s: Schedule, target: Target) -> None:
    """Schedule the convolutions of too few channels for vectors of them along their last axis, each as `schedule_windows` does."""
    for stage in untouched(s):
        if isinstance(stage.op, ComputeOp) and is_sum_of_windows(stage.op, target):
            _schedule(s, stage, target)


def is_window(s: Schedule, stage: StageNode) -> bool:
    """True for a reduction of one value whose axes all move a window along an axis of the result, by a few elements.

    Example:
        Y[c, y, x] = max over r, s of X[c, 2y + r, 2x + s]: r moves the window along y, s along x. Not with X[c, y + r, k], k summed.
    """
    op = stage.op
    if not isinstance(op, ComputeOp) or not _is_one_sum(op) or prod(extents_of(op.reduce_axis)) > _TERMS:
        return False
    return len(_moved_axes(op)) == len(op.reduce_axis) and prod(extents_of(op.axis)) > 1


def is_sum_of_windows(op: ComputeOp, target: Target) -> bool:
    """True for a convolution whose channels fill less than half a vector, where its rows of pixels fill more."""
    # Example: 32 channels of data to 3 of results: a vector of 8 would have 5 lanes that compute nothing.
    convolution = convolution_of(op) if _is_one_sum(op) else None
    if convolution is None or convolution.is_transposed or convolution.is_column_last:
        return False
    lanes, row = lanes_of(target, op.output_dtype(0)), len(op.axis) - 1
    # a vector of weights serves the pixels of one group: where groups of 4 channels fill a quarter of it, no tile takes them
    channels = convolution.size(convolution.column)
    in_parts = convolution.per_group < channels and convolution.per_group % lanes > 0
    fills = (in_parts or 2 * channels < lanes) and lanes <= 2 * convolution.size(row)
    return fills and op.axis[row].var in _moved_axes(op).values()


def _is_one_sum(op: ComputeOp) -> bool:
    """True for a reduction of one value to a tensor of two axes or more, all of known extents."""
    if not op.reduce_axis or len(op.body) != 1 or len(op.axis) < 2 or constant_extents((*op.axis, *op.reduce_axis)) is None:
        return False
    body = op.body[0]
    assert isinstance(body, Reduce)
    return len(body.source) == 1


def _taps(op: ComputeOp) -> list[IterVar]:
    """The axes of the window that are written out: of those that move it, the last ones."""
    moved, written = _moved_axes(op), list[IterVar]()
    for axis in reversed(op.reduce_axis):
        if axis.var in moved and prod(extents_of((axis, *written))) <= _TERMS:
            written.insert(0, axis)
    return written


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


def _schedule(s: Schedule, stage: StageNode, target: Target) -> None:
    op = stage.compute
    _inline_paddings(s, stage)
    window = stage.origin.output(0)
    result = tiled_result(s, stage)
    if result is window:
        window = s.cache_write(result, "local")
    else:
        s[window].set_scope("local")
    place = _tile_result(s, result, op, target)
    stage_of_window = s[window]
    stage_of_window.compute_at(s[result], place)
    *outer, lane = s[window].op.axis
    own = dict(zip(op.reduce_axis, s[window].op.reduce_axis, strict=True))
    taps = [own[tap] for tap in _taps(op)]
    first, is_along = [own[tap] for tap in _outer_taps(op, target)], op.axis[-1].var in _moved_axes(op).values()
    axes = [*first, *(tap for tap in taps if tap not in first), *outer] if first else [*outer, *taps]
    stage_of_window.reorder(*(axis for axis in own.values() if axis not in taps), *axes, lane)
    for axis in axes:
        stage_of_window.unroll(axis)
    for axis in () if is_along else first:  # or LLVM would keep pixels of this row of the window for the next
        stage_of_window.pragma(axis, "no_load_merge")
    stage_of_window.vectorize(lane)


def _outer_taps(op: ComputeOp, target: Target) -> list[IterVar]:
    """The taps that a tile goes through one by one, its rows inside; none where it goes through its rows one by one.

    A row is a chain of k * k multiply-adds, each of which waits for the one before. Where all weights are in registers, rows one by one
    load each but once. Where they aren't, those of one column of the window are: so many rows as there are accumulators go on at a time,
    independent of each other (znver1, planes of 112, 56 and 28: 1.09, 1.05 and 1.03 times as fast with four rows, 1.21, 1.18 and 1.15
    with seven or eight). At a stride neighbouring taps are halves of the same loads, which the tile would do again (0.96 to 1.08 times).
    Vectors of channels go through the window's rows, whose taps share pixels (40 moves to the stack become none: 1.0 to 1.14 times).
    """
    moved, last = _moved_axes(op), op.axis[-1].var
    if _held(op) + _LEAST_ROWS <= target.vector_registers or any(flat_access(load).stride(last) not in (0, 1) for load in loads(op)):
        return []
    along = last if last in moved.values() else next(axis.var for axis in op.axis if axis.var in moved.values())
    return [axis for axis in _taps(op) if moved.get(axis.var) is along]


def _held(op: ComputeOp) -> int:
    """Registers for what the terms of a window read."""
    return prod(extents_of(_taps(op))) * len({load.producer for load in loads(op)})


def _inline_paddings(s: Schedule, stage: StageNode) -> None:
    """Inline what only this stage reads, if it is no more than a border around a tensor."""
    for producer in {s.tree.producer(load).id: s.tree.producer(load) for load in s.tree.reads(stage)}.values():
        if bordered(producer.op) is not None and not producer.is_output and len(s.tree.consumers(producer)) == 1:
            s.apply_step(ComputeInline(producer.id))


def _tile_result(s: Schedule, result: Tensor, op: ComputeOp, target: Target) -> IterVar:
    """Cut the result in tiles of some rows of a vector; returns the loop over tiles."""
    extents = extents_of(op.axis)
    axes = list(s[result].op.axis)
    stage = s[result]
    lanes = lanes_of(target, result.dtype)
    count, sizes = _tile(op, extents, lanes, target)
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
    stage.reorder(*outer, tiles[innermost][0], column, *inside, lane)
    for axis in inside:
        stage.unroll(axis)
    stage.vectorize(lane)
    outermost = outer[0] if outer else tiles[innermost][0]
    if is_parallel(target, prod(extents_of((*op.axis, *op.reduce_axis)))):
        groups = prod([-(-extent // sizes.get(place, 1)) for place, extent in enumerate(extents[:-1]) if place != innermost])
        # Tiles of one image share the threads if there are too few images to balance them.
        shared = [*outer, tiles[innermost][0]] if groups < 4 * target.num_cores else outer
        outermost = stage.fuse(*shared)
        stage.parallel(outermost)
    # With mask registers a masked load costs what a plain one does, so that bodies of their own would be code for nothing.
    if not target.machine.mask_registers:
        stage.pragma(outermost, "loop_partition_hint")
    # A line of which but a part is stored before others are goes to memory in parts (Ice Lake server, two: 10 ms instead of 2.4).
    whole_lines = width * element_bytes(result.dtype) % target.machine.line_bytes == 0
    if whole_lines and is_streamed(s, result, target):
        stage.store_nontemporal()
    return column


def _tile(op: ComputeOp, extents: Sequence[int], lanes: int, target: Target) -> tuple[int, dict[int, int]]:
    """Registers of a vector, and the extents of a tile by the places of its axes.

    Vectors along which the window moves load every element for each of its columns, so one long axis of rows shares most.
    Where vectors are channels, a tile of both axes of the window shares more with as many accumulators; two registers of
    channels then fetch lines in pairs, where the lines of neighbours in the tile are far apart. Where they are near, and come
    from beyond the caches, a tile of one column goes along some rows without a step back, which prefetchers follow (Ice Lake
    server, 112 x 112 pixels of 32 and 64 channels, 16 images: 1.16 and 1.25 times as fast, one image 1.00 and 1.13).
    """
    moved = set(_moved_axes(op).values())
    places = [number for number, axis in enumerate(op.axis[:-1]) if axis.var in moved] or [len(op.axis) - 2]
    terms, columns = prod(extents_of(_taps(op))), extents_of(_outer_taps(op, target))
    # accumulators + terms * operands <= registers, or accumulators + a column's weights + 1; terms * accumulators <= _TILE_TERMS
    held = terms // prod(columns) + 1 if columns else _held(op)
    most = max(_LEAST_ROWS, min(target.vector_registers - held, _TILE_TERMS // terms))
    if op.axis[-1].var in moved or len(places) == 1:
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
