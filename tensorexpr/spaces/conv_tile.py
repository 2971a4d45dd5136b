"""Which register tiles a convolution may have, and how many cycles each takes.

The count is that of `tile_cycles`. What windows add to it: terms of a border are left out, so that tiles at it have fewer pixels;
weights and pixels come from caches further away, again for each tap or panel; and results are stored by columns where pixels lie side by
side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import prod

from ..target import Target
from ..target.machine import is_fused
from .access import panel_along
from .convolutions import Convolution
from .machine import lanes_of
from .sizes import tile_vectors
from .tile_cycles import PLANES, RegisterTile, balanced_sizes, end_cycles, steps_cycles

_WEIGHTS = 0.35  # cycles that loading a vector of weights, from the second level, delays the multiply-adds beside it
_FAR_PANEL = 0.7  # ... a line of them from further away, where a panel doesn't fit
_FAR_WEIGHTS = 3.0  # ... a vector whose rows are far apart
LOOP = 20.0  # cycles to start the loop over the channels for another tap, as the end of the one before is predicted wrongly
_TRANSPOSED = 4.0  # ... more to store a vector of a tile that is read by columns
# So few steps cost less than the loop over them. Their pixels are different ones, so no loads are merged and kept.
FEW_SUMMED = 4
_MOST_TAPS = 8  # of a row of the window that are written out: each is a step of the sum on a whole tile
_REFILL = 0.22  # of a step's cycles, that bringing its pixels back from the second level may take
_LOADS_BESIDE = 0.6  # loads of a step for each of its multiply-adds, where no register is free for those of the next one
_BACK = 0.6  # of the time that pixels take back from the second level, that multiply-adds don't hide
USES = 8  # tiles for which a panel is worth its copy


def channel_lanes(convolution: Convolution, target: Target) -> int:
    """The lanes of a vector of channels: of few that are neighbours in the result, the power of two that holds them."""
    # Where pixels are neighbours in the result, a vector of few channels may stay a full one: what isn't a channel is padding of the panel.
    most, channels = lanes_of(target, convolution.op.output_dtype(0)), convolution.size(convolution.column)
    return most if not convolution.is_column_last else min(most, 1 << (channels - 1).bit_length())


def register_tiles(convolution: Convolution, pixels: list[int], target: Target) -> Iterator[RegisterTile]:
    """Register tiles: MR*NV accumulators, NV vectors of weights and one broadcast in the registers."""
    per_group, panel, lanes = convolution.per_group, panel_of(convolution), channel_lanes(convolution, target)
    for vectors in range(1, max(tile_vectors(target), default=1) + 1):
        block = vectors * lanes
        # no tile reaches from the channels of one group, or from one panel in memory, into the next
        if (per_group < convolution.size(convolution.column) and per_group % block) or (panel and panel % block):
            continue
        # the last vector would have no channel
        if vectors > 1 and (vectors - 1) * lanes >= per_group:
            continue
        most = target.machine.tile_rows(vectors)
        # below half of the most, two tiles fit as one, which loads the weights once for both
        for columns in range(max(1, min(most, pixels[-1]) // 2), min(most, pixels[-1]) + 1):
            yield RegisterTile((*[1] * (len(pixels) - 1), columns), vectors)
        # A row of 7 pixels leaves most of 32 registers idle, so a tile has several rows of such a plane.
        if len(pixels) > 1 and 2 * pixels[-1] <= most:
            rows = min(most // pixels[-1], pixels[-2])
            yield RegisterTile((*[1] * (len(pixels) - 2), rows, pixels[-1]), vectors)


def panel_of(convolution: Convolution) -> int:
    """The channels of a panel if the weights lie in panels already, else 0.

    Example:
        W[o // 32, r, k, o % 32]: 32.
    """
    return panel_along(convolution.right.load, convolution.axis(convolution.column).var)


def has_free_register(tile: RegisterTile, target: Target) -> bool:
    """True if steps of the sum may be written out: the loads of one overlap with the multiply-adds of the one before.

    Without fused multiply-adds a product of each step is on its way too, and a copy of what its instruction overwrites.
    """
    machine, more = target.machine, 1 if is_fused(target.features) else 3
    return tile.rows * tile.vectors + tile.vectors + machine.scalar_registers + more <= machine.vector_registers


def has_taps_inside(convolution: Convolution, tile: RegisterTile, target: Target) -> bool:
    """True if one tap after the other, each with all channels, would wait for pixels that the tap before has read.

    Tiles of several rows have more pixels under way than LLVM keeps in registers (two rows of 13 by a vector of AVX-512: 75 moves
    to the stack).
    """
    pixel = convolution.rows[-1]
    taps, is_last = convolution.taps_of(pixel), pixel in convolution.data.moved[-1]
    # Each tap that is written out is a copy of the step on a whole tile.
    if convolution.is_transposed or not is_last or len(taps) != 1 or not 1 < convolution.size(*taps) <= _MOST_TAPS:
        return False
    if convolution.size(*convolution.channels) <= FEW_SUMMED or prod(tile.sizes[:-1]) > 1:
        return False
    # Without a register for the loads of the next tap these stand between multiply-adds, where there has to be time for them: 4 x 3 has
    # 7 loads beside 12, and 256 channels of 56 x 56 to 48 take 4.3 ms with taps inside and 5.8 without; 14 x 1 has 15, 6.8 and 6.0 (Zen 3).
    has_time = tile.rows + tile.vectors <= _LOADS_BESIDE * tile.rows * tile.vectors
    return (has_free_register(tile, target) or has_time) and waits_for_pixels(convolution, tile, target)


def waits_for_pixels(convolution: Convolution, tile: RegisterTile, target: Target) -> bool:
    """True if pixels that come from the second level, again for each tap or panel, delay the multiply-adds.

    The pixels of a tile are a line of the cache or two in each channel, far from those of the next one. Where the first level doesn't
    keep them all until they are met again, they come again, which takes `lines * line / fill` cycles of each step of the sum. 14 pixels
    by two vectors of AVX-512 are 14 cycles of multiply-adds for 2 of them, 6 by two vectors of AVX2 are 6 for 3.
    """
    machine, rows = target.machine, tile.sizes[-1]
    refill = _lines(convolution, rows, target) * machine.line_bytes / machine.caches[0].fill_bytes
    return refill > _REFILL * machine.step_cycles(rows * tile.vectors, rows + tile.vectors)


def _refill(convolution: Convolution, tile: RegisterTile, target: Target) -> float:
    """Cycles of a step that its pixels take to come back from the second level, where the tap before has met those of all channels."""
    lines, first = _lines(convolution, tile.sizes[-1], target), target.machine.caches[0]
    # Channels last, a line has channels, which the sum takes one after the other; tiles of several rows are for planes of a few lines.
    is_plane = convolution.rows[-1] in convolution.data.moved[-1] and convolution.size(*convolution.taps) > 1 and prod(tile.sizes[:-1]) == 1
    stay = convolution.size(*convolution.channels) * lines * first.line <= first.size
    waits = is_plane and not stay and waits_for_pixels(convolution, tile, target)
    return _BACK * lines * first.line / first.fill_bytes if waits else 0.0


def _lines(convolution: Convolution, pixels: int, target: Target) -> float:
    """About how many lines of the cache so many pixels side by side lie in, of one channel."""
    # Where the first pixel lies in its line is open, so on average one more line than the pixels would fill is touched.
    span = ((pixels - 1) * convolution.stride_of(convolution.rows[-1]) + 1) * convolution.bytes
    return 1 + (span - 1) / target.machine.line_bytes


def is_near(convolution: Convolution, block: int, target: Target) -> bool:
    """True if a panel of so many channels stays in the second level cache beside the pixels that it meets."""
    return convolution.bytes * convolution.depth * block <= 0.75 * target.l2_cache_size_bytes


def tile_cycles(convolution: Convolution, tile: RegisterTile, pixels: list[int], live: list[list[range]], target: Target) -> float:
    """Cycles of all tiles on one core; `live` are the pixels of each axis that each tap has terms for."""
    # along each axis a tap has its live pixels of a tile; in the tile it has their product
    # Tap and tile pairs of all axes are independent, so that their counts multiply: a product of histograms, not a loop over all tiles.
    sizes = Counter({1: 1})
    for extent, size, taps in zip(pixels, tile.sizes, live, strict=True):
        sizes = _products(sizes, _live_sizes(extent, size, taps))
    tiles = prod(-(-extent // size) for extent, size in zip(pixels, tile.sizes, strict=True))
    together = convolution.size(*convolution.taps_of(convolution.rows[-1])) if has_taps_inside(convolution, tile, target) else 1
    back = _refill(convolution, tile, target) / together
    return all_cycles(convolution, sizes, tiles, tile.vectors, target, together, back=back)


def all_cycles(
    convolution: Convolution,
    sizes: Counter[int],
    tiles: int,
    vectors: int,
    target: Target,
    together: int = 1,
    stored: bool = False,
    back: float = 0.0,
) -> float:
    """Cycles of all panels and batches on one core.

    Args:
        sizes: how many pixels are live, of how many pairs of a tile and a tap.
        tiles: in a plane.
        vectors: of a tile.
        target: that it is for.
        together: taps that one loop over the channels has inside.
        stored: each loop over the channels loads and stores its accumulators.
        back: cycles of a step that its pixels take to come back.
    """
    lanes, batches = channel_lanes(convolution, target), convolution.size(*convolution.batch)
    block = vectors * lanes
    phases, channels = prod(convolution.phases), convolution.size(*convolution.channels)
    # A line of a panel is shared by the vectors in it; where weights are used too seldom for a copy, each vector is a line of its own.
    far = _FAR_PANEL * block / vectors * convolution.bytes / target.machine.line_bytes if tiles * batches >= USES else _FAR_WEIGHTS
    load = _WEIGHTS if is_near(convolution, block, target) else far
    cycles = channels * (steps_cycles(sizes, vectors, load, target.machine) + back * sum(count for size, count in sizes.items() if size))
    if convolution.size(*convolution.taps) == 1 and 2 * convolution.data.step(convolution.summed[-1]) > target.machine.page_bytes:
        pixels = convolution.size(*convolution.rows) // tiles
        # Windows of one pixel over planes of half a page or more: each channel is on another page, at whose end prefetchers stop.
        cycles += target.machine.far_line * channels * tiles * _lines(convolution, pixels, target)
    if channels > FEW_SUMMED:
        # The first loop of each tile is in what it takes to start a tile.
        cycles += LOOP * max(0, sum(count for size, count in sizes.items() if size) / together - tiles)
    if stored:
        cycles += 2 * vectors * sum(count * size for size, count in sizes.items())
    plane = convolution.size(*convolution.rows) // phases
    cycles += PLANES * end_cycles(tiles, vectors * plane)
    if not convolution.is_column_last:
        # Tiles of windows are stored by columns in parts as long as a vector, whether it is full or not; half as many pixels leave no
        # registers for it, either (Ice Lake server, stride 2, 14 x 2 for 6 x 4: 3x3 of 128 channels 1.41, 7x7 1.49 times as fast).
        # Of four lanes at most three are empty: there the loads of a step decide (apple-m1, 28 pixels of 8 channels).
        is_full = convolution.size(*convolution.taps) == 1 or lanes <= 4
        pixels = plane if is_full else tiles * lanes * -(-plane // (tiles * lanes))
        cycles += _TRANSPOSED * vectors * pixels
    return cycles * -(-convolution.size(convolution.column) // block) * batches * phases


def _live_sizes(extent: int, most: int, live: Sequence[range]) -> Counter[int]:
    """How many pixels of a balanced tile run under a tap: how often each number occurs."""
    sizes, begin = Counter[int](), 0
    for size, count in balanced_sizes(extent, most):
        for pixels in live:
            # Most tiles are whole; those that the border cuts are counted one by one.
            first = min(count, max(0, -(-(pixels.start - begin) // size)))
            last = max(first, min(count, (pixels.stop - begin) // size))
            sizes[size] += last - first
            for tile in (*range(first), *range(last, count)):
                at = begin + tile * size
                sizes[max(0, min(at + size, pixels.stop) - max(at, pixels.start))] += 1
        begin += size * count
    return sizes


def _products(one: Counter[int], other: Counter[int]) -> Counter[int]:
    sizes = Counter[int]()
    for a, many in one.items():
        for b, count in other.items():
            sizes[a * b] += many * count
    return sizes
