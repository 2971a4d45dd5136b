"""What is decided before a convolution is scheduled: the register tile, where weights are packed, which loops are parallel.

Tiles are steps of loops over rows of pixels or, on small planes, run on over row ends, each with code of its own:

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
from ..target.machine import Machine
from ..te.operation import ComputeOp
from ..tir.arithmetic import as_int
from ..tir.expr import Call, FloatImm, IntImm, Select
from .access import bytes_of, element_bytes
from .contraction_plan import Order, Pack, Plan
from .conv_tile import (
    LOOP,
    USES,
    all_cycles,
    channel_lanes,
    has_taps_inside,
    is_near,
    panel_of,
    register_tiles,
    tile_cycles,
    waits_for_pixels,
)
from .convolutions import Convolution
from .tile_cycles import RegisterTile, balanced_sizes, waits_for_rows

_PACKED = 8.0  # cycles to load a vector of weights, transpose and store it
_FAR_ROWS = 1024  # bytes between rows of weights of which a page has but four
# Tiles for which a panel is worth its copy (of others USES) where each of them would wait for its rows: three tiles of 1,536 rows 2 KB
# apart take 0.25 ms with a copy and 0.30 without (Sapphire Rapids, C1D-3 of the Ansor suite).
_FEW_USES = 3
# Multiply-adds of whole vectors that are written out at most: with their loads some 20 KB of code, as much as a first-level
# instruction cache holds, and a second or two of compiling.
_WRITTEN = 2048
# Tiles that share the pixels and weights of a block of channels, at least, and the part of a block's cycles that what is around it may
# take: 3x3 of 256 channels on 14 x 14, blocks of 16, where it is a quarter, takes 1.15 times as long (two cores of Zen 3).
_BLOCK_TILES = 4
_FEW_AROUND = 0.125
# What blocks leave of the time of a plan whose cycles are counted without them, at least: 0.66 to 0.82 in `in_blocks`' examples.
_IN_BLOCKS = 0.8
# Pixels that make many tiles for all cores, whatever the plane is cut into: 14 x 14.
_MANY_PIXELS = 192
# Tasks for each core from which one more or less than the others is less than an eighth.
_EVEN = 8


def convolution_plans(convolution: Convolution, target: Target) -> list[Plan]:
    """The ways to compute a convolution with tiles in loops, the one of the fewest cycles first; none if there are too few channels for
    vectors of them.

    The others have other vectors or a tile of more axes, copied borders instead of peeled ones, or another order. How many pixels
    a tile has is left to the search.
    """
    # Channels last, vectors of anything else would be gathered: even a few lanes of a vector of channels are better.
    # Example: 3 channels of results with 8 lanes: `window` puts pixels in the lanes instead, of which there are enough.
    few = convolution.size(convolution.column) < channel_lanes(convolution, target) // 2 and not convolution.is_column_last
    phases = dict(zip(convolution.rows, convolution.phases, strict=True))
    if few or convolution.depth < 2:
        return []
    # Of windows of one pixel a whole plane is one axis: 7 x 7 is 49 pixels, cut into 9 tiles of 5 or 6 instead of 14 of 3 or 4.
    merged = convolution.merged_rows()
    left = [pixel for pixel in convolution.rows if pixel not in merged]
    pixels = [-(-convolution.size(pixel) // phases[pixel]) for pixel in left]
    live = [convolution.live_pixels(pixel, not is_peeled(convolution)) for pixel in left]
    if merged:
        pixels.append(convolution.size(*merged))
        live.append([range(pixels[-1])])
    tiles = register_tiles(convolution, pixels, target)
    # Counted for one core: what all tiles cost together doesn't depend on who does them, and the share comes with the plan.
    timed = [replace(tile, cycles=tile_cycles(convolution, tile, pixels, live, target)) for tile in tiles]
    best: dict[tuple[int, ...], tuple[float, Plan]] = {}
    for tile in sorted(timed, key=lambda tile: (tile.cycles, tile.sizes, tile.vectors)):
        # by what a search can't change: the vectors of a tile, and the axes that it has several pixels of
        kind = (tile.vectors, *(number for number, size in enumerate(tile.sizes) if size > 1))
        if kind not in best and (plan := _plan_of(convolution, tile, pixels, target)) is not None:
            # Without a copy's own time: what it saves where rows of weights are far apart isn't counted either.
            summed = replace(plan.tile, cycles=tile.cycles / (target.num_cores if plan.parallel else 1))
            best[kind] = replace(plan, tile=summed).cycles(target), plan
    if not best:
        return []
    first, *others = [plan for _, plan in sorted(best.values(), key=lambda one: one[0])]
    # The same tile with borders in a copy of the data, and with panels and pixels in another order.
    return [first, *([replace(first, peeled=False)] if first.peeled else []), reordered(first), *others]


def written_plan(convolution: Convolution, target: Target) -> Plan | None:
    """The plan with the fewest cycles whose tiles run on over row ends; None if there is none, or too much to write out."""
    if len(convolution.rows) < 2 or convolution.merged_rows() or convolution.is_transposed or convolution.depth < 2:
        return None
    *outer, height, width = (convolution.size(pixel) for pixel in convolution.rows)
    plane = [convolution.live_pixels(pixel, not is_peeled(convolution)) for pixel in convolution.rows[-2:]]
    if 2 * width * len(plane[0]) * len(plane[1]) > _WRITTEN:
        return None
    live = [[y in rows and x in columns for y in range(height) for x in range(width)] for rows in plane[0] for columns in plane[1]]
    found: list[Plan] = []
    for rows in (rows for rows in range(2, height + 1) if height % rows == 0):
        # The first and the last rows have bodies of their own if they meet a border.
        bodies = min(height // rows, 3 if is_peeled(convolution) else 1)
        for tile in register_tiles(convolution, [*outer, rows * width], target):
            size = tile.sizes[-1]
            # Running on over row ends has to save a tile; else loops do the same with less code.
            fewer = -(-rows * width // size) < rows * -(-width // size)
            if not fewer or bodies * rows * width * tile.vectors * len(live) > _WRITTEN or prod(tile.sizes[:-1]) > 1:
                continue
            timed = replace(tile, cycles=_written_cycles(convolution, live, rows * width, tile, target))
            plan = _plan_of(convolution, timed, [*outer, height * width], target)
            # Few tiles make a copy of weights whose rows are pages apart too dear, and go to each page for every one of them.
            if plan is not None and plan.tile.chunks == 1 and not (plan.pack is Pack.NONE and has_far_rows(convolution)):
                # Tiles that are no loops have loops over panels around them.
                by_panels = reordered(plan) if plan.order is Order.ROWS else plan
                found.append(replace(by_panels, written=rows, taps_inside=False))
    return min(found, key=lambda plan: plan.cycles(target), default=None)


def _written_cycles(convolution: Convolution, live: list[list[bool]], group: int, tile: RegisterTile, target: Target) -> float:
    """Cycles on one core with tiles that are balanced in each group of so many pixels."""
    # Which pixels of a tile are live under a tap follows no pattern once tiles cross row ends, so each tile and tap is counted.
    sizes, begin, bordered = Counter[int](), 0, not is_peeled(convolution)
    tiles = [size for size, count in balanced_sizes(group, tile.sizes[-1]) for _ in range(count)] * (len(live[0]) // group)
    for size in tiles:
        sizes.update(sum(tap[begin : begin + size]) for tap in live)
        begin += size
    # Axes of pixels outside the plane: loops whose iterations all do the same, but for taps that meet a border.
    repeats = prod(sum(map(len, convolution.live_pixels(pixel, bordered))) for pixel in convolution.rows[:-2])
    sizes = Counter({size: count * repeats for size, count in sizes.items()})
    return all_cycles(convolution, sizes, convolution.size(*convolution.rows[:-2]) * len(tiles), tile.vectors, target, stored=True)


def in_blocks(plan: Plan, target: Target) -> Plan | None:
    """The plan with a loop over blocks of channels around all tiles of a small plane; None where the first level keeps what tiles meet.

    A tile reads a line or two of each channel and leaves the rest of it to the next tiles. With all channels in between, each of them
    meets its pixels, and the panel of weights, in the second level or behind it. The pixels of a block of channels and the rows of a
    panel for these stay in the first level while all tiles go by, at the price of loading and storing sums for each block:

        for panels in parallel:  for blocks of channels:  for tiles of pixels:  for taps, channels of a block:  C[y, x, o] += ...

    Example:
        2048 channels of 7 x 7 to 512 in blocks of 64: 1.09 -> 0.74 ms (two cores of Zen 3, 6 x 2).
    """
    convolution, machine = plan.contraction, target.machine
    assert isinstance(convolution, Convolution)
    channels, tiles = convolution.channels, convolution.size(*convolution.rows) // plan.tile.rows
    # NCHW: a line has pixels of one channel. NHWC: a line has channels of one pixel, all of which the sum takes while it is there.
    by_pixels = convolution.rows[-1] in convolution.data.moved[-1]  # else a line has channels, which follow each other in the sum
    outside = plan.order in (Order.PANELS, Order.BATCHES) and plan.tile.chunks == 1 and convolution.size(*convolution.batch) == 1
    # what is left in `Tiles` to build: tiles along one axis of pixels, whose taps are written out, and one axis of channels
    is_plain = plan.written > 0 or convolution.size(*convolution.taps) == 1
    is_plain = is_plain and len(channels) == 1 and not convolution.is_transposed and prod(plan.tile.sizes[:-1]) == 1
    if not (by_pixels and outside and is_plain) or tiles < _BLOCK_TILES or not waits_for_pixels(convolution, plan.tile, target):
        return None
    count, taps, rows, vectors = convolution.size(*channels), convolution.size(*convolution.taps), plan.tile.rows, plan.tile.vectors
    data, of_panel = bytes_of(convolution.data.tensor) // count, taps * plan.width * convolution.right.bytes
    sums = convolution.size(*convolution.rows) * plan.width * convolution.bytes
    # sums + block * (pixels of a channel + a panel's rows for it) <= first level.
    most = max(0, machine.caches[0].size - sums) // (data + of_panel)
    block = max((size for size in range(1, most + 1) if count % size == 0), default=count)
    around = 2 * rows * vectors + LOOP * taps  # cycles for sums to be loaded and stored, and to start the loops of a block
    is_worth = _FEW_AROUND * block * taps * machine.step_cycles(rows * vectors, rows + vectors) >= around
    if not is_worth or block == count:
        return None
    return replace(plan, block=block, tile=replace(plan.tile, cycles=_IN_BLOCKS * plan.tile.cycles))


def reordered(plan: Plan) -> Plan:
    """The plan with pixels outside of panels, or panels outside of pixels if they aren't."""
    # With pixels outside, a panel is met once for each row of them; packed inside of that loop it would be packed as often.
    order = Order.BATCHES if plan.order is Order.ROWS else Order.ROWS
    pack = Pack.ROOT if plan.pack is Pack.PANEL else plan.pack
    return replace(plan, order=order, pack=pack, tile=replace(plan.tile, chunks=1), prefetched=False)


def _plan_of(convolution: Convolution, tile: RegisterTile, pixels: list[int], target: Target) -> Plan | None:
    """The plan of a tile whose cycles are those of the sums on one core; None where weights can't be brought into panels of its vectors."""
    lanes, channels = channel_lanes(convolution, target), convolution.size(convolution.column)
    width = lanes * tile.vectors
    # One core is done before a second one has begun: 14 x 2 for 3 rows of 28 pixels and 32 channels, on one, takes 3.05 us; 28 x 1, which
    # makes a panel for each of two cores, 3.8 (Ice Lake server).
    parallel = target.num_cores > 1 and tile.cycles * (1 - 1 / target.num_cores) > target.machine.fork_join_cycles
    order, chunks = _order(convolution, -(-channels // width), pixels, target.num_cores if parallel else 1, target)
    uses = prod(-(-extent // size) for extent, size in zip(pixels, tile.sizes, strict=True)) * convolution.size(*convolution.batch)
    stays = order is not Order.PANELS and is_near(convolution, width, target)
    pack = _packing(convolution, width, target.machine, not stays and uses >= _worth_copy(convolution, tile, target))
    cycles = tile.cycles
    if pack is not Pack.NONE:
        if len(convolution.right.load.indices) < 2 or not convolution.places:
            return None
        pack = Pack.PANEL if order is Order.PANELS and chunks == 1 else Pack.ROOT
        cycles += _PACKED * convolution.depth * channels / lanes
    return Plan(
        convolution,
        replace(tile, chunks=chunks, cycles=cycles / (target.num_cores if parallel else 1)),
        lanes,
        pack,
        parallel,
        order,
        taps_inside=has_taps_inside(convolution, tile, target),
        peeled=is_peeled(convolution),
        prefetched=order is Order.ROWS and chunks == 1 and _comes_from_afar(convolution, pixels, tile, target),
    )


def _comes_from_afar(convolution: Convolution, pixels: list[int], tile: RegisterTile, target: Target) -> bool:
    """True if the cores' second level caches don't hold the data, but what the next iteration reads.

    Each iteration reads a tile, or all tiles along the other axes. Where tiles of two sizes begin, or taps of phases, no constant
    stride leads.
    """
    if pixels[0] % tile.sizes[0] or convolution.is_transposed:
        return False
    iterations = convolution.size(*convolution.batch) * pixels[0] // tile.sizes[0]
    windows, data = convolution.size(*convolution.taps), bytes_of(convolution.data.tensor)
    return data > target.num_cores * target.l2_cache_size_bytes and 2 * windows * data <= iterations * target.l2_cache_size_bytes


def _order(convolution: Convolution, panels: int, pixels: list[int], cores: int, target: Target) -> tuple[Order, int]:
    """What is outside, and the chunks of the first pixel axis that make work for all cores."""
    weights, data = bytes_of(convolution.right.tensor), bytes_of(convolution.data.tensor)
    batches = convolution.size(*convolution.batch)
    half = target.l2_cache_size_bytes // 2
    # Channels last, kernels of a network that share out rows of pixels find in a core's cache what it has written: SqueezeNet 5.1 -> 4.7
    # ms, DenseNet-121 37.4 -> 36.1, MobileNetV2 5.5 -> 5.4, ResNet-50 48.1 -> 46.8 (two cores of Zen 4); alone 0.95 to 1.05 times as long.
    shares_rows = convolution.is_column_last and prod(pixels) >= _MANY_PIXELS
    if panels > 1 and weights <= half and (data > half or shares_rows):
        # All weights stay in the second level cache, and the data is read once. Border tiles of a parallel loop would choose their body in
        # every iteration.
        return Order.ROWS, cores if len(pixels) == 1 and is_peeled(convolution) and pixels[0] >= cores else 1
    # Bytes that come from memory either way: all panels read their share of the data, or all images read all weights.
    share = data * convolution.per_group // convolution.size(convolution.column)  # a panel reads the channels of its group
    by_panels = batches == 1 or (_is_even(panels, cores) and panels * share < batches * weights)
    tasks = panels if by_panels else batches * panels
    return Order.PANELS if by_panels else Order.BATCHES, 1 if _is_even(tasks, cores) or pixels[0] < cores else cores


def _is_even(tasks: int, cores: int) -> bool:
    """True if all cores get nearly as many of the tasks."""
    # Example: 5 tasks on 4 cores take as long as 8; 33 take as long as 36, which is within a tenth.
    return tasks % cores == 0 or tasks >= _EVEN * cores


def is_peeled(convolution: Convolution) -> bool:
    """True if tiles at a border have bodies of their own: the data is another tensor with a border of zeros.

    Example:
        D[y] = X[y - 1] if 1 <= y < 8 else 0.0
    """
    op = None if convolution.is_transposed else convolution.data.tensor.op
    match op.body if isinstance(op, ComputeOp) else ():
        case (Select(_, _, IntImm() | FloatImm() as border) | Call(op="tir.if_then_else", args=(_, _, IntImm() | FloatImm() as border)),):
            return border.value == 0
    return False


def has_far_rows(convolution: Convolution) -> bool:
    """True if the weights of a step, next to each other, are far from those of the next step: on a page that few others share."""
    return _has_channels_last(convolution) and _row_bytes(convolution) >= _FAR_ROWS


def _displaces_rows(convolution: Convolution, machine: Machine) -> bool:
    """True if rows of weights fall on a quarter of the second level's lines at most, and are as many as these: pixels displace them.

    Example:
        512 bytes apart they fall on 1,024 of the 8,192 lines of Zen 3: 3x3 of 256 to 128 channels last on 14 x 14, 2,304 rows, 0.76 ms with
        a copy of each panel and 0.92 without.
    """
    second = machine.caches[1]
    lines = second.rows(_row_bytes(convolution))
    return _has_channels_last(convolution) and 4 * lines <= second.size // second.line and convolution.depth >= lines


def _has_channels_last(convolution: Convolution) -> bool:
    """True if the channels of a vector are neighbours in the weights."""
    return convolution.right.load.indices[-1] is convolution.axis(convolution.column).var


def _row_bytes(convolution: Convolution) -> int:
    """Bytes from one row of the weights to the next."""
    weights = convolution.right.tensor
    return element_bytes(weights.dtype) * (as_int(weights.shape[-1]) or 1)


def _worth_copy(convolution: Convolution, tile: RegisterTile, target: Target) -> int:
    """The tiles for which a copy of a panel is worth its time: few where each of them waits for rows that the second level has lost."""
    waits = waits_for_rows(target.machine, tile.rows, tile.vectors, convolution.depth, _row_bytes(convolution))
    return _FEW_USES if waits else USES


def _packing(convolution: Convolution, width: int, machine: Machine, is_used: bool) -> Pack:
    """Where the weights are packed, if a core uses each panel often enough for a copy."""
    # Weights that lie in panels already need no copy; a panel that is full and whose rows are near needs none either.
    if panel_of(convolution):
        return Pack.NONE
    if _has_channels_last(convolution) and convolution.size(convolution.column) % width == 0:
        # Rows far apart are many pages: a copy pays if it is used often.
        is_late = has_far_rows(convolution) or _displaces_rows(convolution, machine)
        return Pack.PANEL if is_late and is_used else Pack.NONE
    return Pack.PANEL
