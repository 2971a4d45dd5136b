"""What is decided before a convolution is scheduled: the register tile, where weights are packed, which loops are parallel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from ..target import Target
from ..target.machine import is_fused
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import Call, FloatImm, FloorDiv, FloorMod, IntImm, ProducerLoad, Select
from ..tir.rewriting import variables
from .contraction_plan import Pack
from .convolutions import Convolution
from .machine import is_parallel, lanes_of
from .reduction import extents_of
from .register_tile import PLANES, balanced_sizes, end_cycles, step_cycles

_WEIGHTS = 0.35  # cycles that loading a vector of weights, from the second level, delays the multiply-adds beside it
_FAR_PANEL = 0.7  # ... a line of them from further away, where a panel doesn't fit
_FAR_WEIGHTS = 3.0  # ... a vector whose rows are far apart
_LOOP = 20.0  # cycles to start the loop over the channels for another tap, as the end of the one before is predicted wrongly
_PACKED = 8.0  # ... to load a vector of weights, transpose and store it
_TRANSPOSED = 4.0  # ... more to store a vector of a tile that is read by columns
_FAR_ROWS = 1024  # bytes between rows of weights of which a page has but four
# So few steps cost less than the loop over them. Their pixels are different ones, so no loads are merged and kept.
FEW_SUMMED = 4
_MOST_TAPS = 8  # of a row of the window that are written out: each is a step of the sum on a whole tile
_REFILL = 0.22  # of a step's cycles, that bringing its pixels back from the second level may take
_USES = 8  # tiles for which a panel is worth its copy
_FEW_USES = 3  # ... where each tile waits for its rows


class Order(Enum):
    """What a core goes through once while it goes through the other again and again."""

    PANELS = "panels of weights outside, all batches and pixels for each"
    BATCHES = "batches outside, then panels of weights"
    PIXELS = "tiles of pixels outside, all weights for each"


@dataclass(frozen=True, slots=True)
class Plan:
    """How a convolution is computed.

    Args:
        lanes, vectors: of a panel of channels.
        tile: how many pixels a register tile has along each pixel axis, after merging.
        rows: so many rows of the plane are written out, tile after tile and tap after tap; 0 if tiles are steps of loops.
        taps_inside: the taps of a row of the window are inside the sum over channels, so that pixels are met while they are near.
        packing: where the weights are packed.
        peeled: border tiles have bodies of their own; else there is a copy of the data with its border.
        order: what is outside, panels or pixels.
        chunks: parts of the first pixel axis for different cores.
        parallel: whether there is enough work for several cores.
        prefetched: each iteration of the parallel loop fetches the pixels of the next one.
        cycles: how long all of it takes one core.
    """

    lanes: int
    vectors: int
    tile: tuple[int, ...]
    rows: int
    taps_inside: bool
    packing: Pack
    peeled: bool
    order: Order
    chunks: int
    parallel: bool
    prefetched: bool
    cycles: float

    @property
    def block(self) -> int:
        """The channels of a panel."""
        return self.lanes * self.vectors


def convolution_plans(convolution: Convolution, target: Target) -> list[Plan]:
    """The ways to compute a convolution, the one of the fewest cycles first; none if there are too few channels for vectors of them.

    The others have other vectors or a tile of more axes, copied borders instead of peeled ones, or another order. How many pixels
    a tile has is left to the search.
    """
    lanes, extents = channel_lanes(convolution, target), convolution.extents
    channels = extents[convolution.channel]
    # Channels last, vectors of anything else would be gathered: even a few lanes of a vector of channels are better.
    if (channels < lanes // 2 and convolution.channel < len(extents) - 1) or convolution.depth < 2:
        return []
    phases = dict(zip(convolution.pixels, convolution.phases, strict=True))
    if any(extents[pixel] % phase for pixel, phase in phases.items()):
        return []
    merged = convolution.merged_pixels()
    left = [pixel for pixel in convolution.pixels if pixel not in merged]
    pixels = [extents[pixel] // phases[pixel] for pixel in left]
    live = [convolution.live_pixels(pixel, not is_peeled(convolution)) for pixel in left]
    if merged:
        pixels.append(convolution.size(*merged))
        live.append([range(pixels[-1])])
    tiles = register_tiles(convolution, pixels, target)
    timed = sorted((_cycles(convolution, tile, vectors, pixels, live, target), tile, vectors) for vectors, tile in tiles)
    best: dict[tuple[int, ...], tuple[float, Plan]] = {}
    for cycles, tile, vectors in timed:
        kind = (vectors, *(number for number, size in enumerate(tile) if size > 1))
        if kind not in best and (plan := plan_of(convolution, target, pixels, tile, vectors, cycles)) is not None:
            best[kind] = cycles + _starting_cycles(plan.packing, plan.parallel, target), plan
    found = [plan for _, plan in sorted(best.values(), key=lambda one: one[0])]
    return [*found[:1], *(variant for plan in found[:1] for variant in _variants(plan)), *found[1:]]


def _starting_cycles(packing: Pack, parallel: bool, target: Target) -> float:
    """Cycles of all cores to start threads for a copy of all weights, beside those for the convolution."""
    return target.num_cores * target.machine.fork_join_cycles if packing is Pack.ROOT and parallel else 0.0


def channel_lanes(convolution: Convolution, target: Target) -> int:
    """The lanes of a vector of channels: of few that are neighbours in the result, the power of two that holds them."""
    most, channels = lanes_of(target, convolution.dtype), convolution.extents[convolution.channel]
    return most if convolution.channel < len(convolution.extents) - 1 else min(most, 1 << (channels - 1).bit_length())


def _variants(plan: Plan) -> list[Plan]:
    """The same tile with borders in a copy of the data, and with panels and pixels in another order."""
    return [*([replace(plan, peeled=False)] if plan.peeled else []), reordered(plan)]


def reordered(plan: Plan) -> Plan:
    """The plan with pixels outside of panels, or panels outside of pixels if they aren't."""
    order = Order.BATCHES if plan.order is Order.PIXELS else Order.PIXELS
    packing = Pack.ROOT if plan.packing is Pack.PANEL else plan.packing
    return replace(plan, order=order, packing=packing, chunks=1, prefetched=False)


def plan_of(convolution: Convolution, target: Target, pixels: list[int], tile: tuple[int, ...], vectors: int, cycles: float) -> Plan | None:
    """The plan of a tile; None where weights can't be brought into panels of its vectors."""
    lanes, extents = channel_lanes(convolution, target), convolution.extents
    channels = extents[convolution.channel]
    parallel = is_parallel(target, 2.0 * prod(extents) * convolution.depth)
    peeled = is_peeled(convolution)
    panels = -(-channels // (lanes * vectors))
    order, chunks = _order(convolution, panels, pixels, peeled, target.num_cores if parallel else 1, target)
    uses = prod([-(-extent // size) for extent, size in zip(pixels, tile, strict=True)]) * convolution.size(*convolution.outer)
    near = _is_near(convolution, lanes * vectors, target)
    is_used = (order is Order.PANELS or not near) and uses >= _worth_copy(convolution, tile, vectors, target)
    packing = _packing(convolution, lanes * vectors, is_used)
    if packing is not Pack.NONE and (len(convolution.weights.indices) < 2 or convolution.fixed.index_of(convolution.channel) is None):
        return None
    if packing is Pack.PANEL and (order is not Order.PANELS or chunks > 1):
        packing = Pack.ROOT
    if packing is not Pack.NONE:
        cycles += _PACKED * convolution.depth * channels / lanes + _starting_cycles(packing, parallel, target)
    prefetched = order is Order.PIXELS and chunks == 1 and _comes_from_afar(convolution, pixels, tile, target)
    inside = _has_taps_inside(convolution, tile, vectors, target)
    return Plan(lanes, vectors, tile, 0, inside, packing, peeled, order, chunks, parallel, prefetched, cycles)


def has_free_register(tile: Sequence[int], vectors: int, target: Target) -> bool:
    """True if steps of the sum may be written out: the loads of one overlap with the multiply-adds of the one before.

    Without fused multiply-adds a product of each step is on its way too, and a copy of what its instruction overwrites.
    """
    machine, more = target.machine, 1 if is_fused(target.features) else 3
    return prod(list(tile)) * vectors + vectors + machine.scalar_registers + more <= machine.vector_registers


def _has_taps_inside(convolution: Convolution, tile: tuple[int, ...], vectors: int, target: Target) -> bool:
    """True if one tap after the other, each with all channels, would wait for pixels that the tap before has read.

    Tiles of several rows have more pixels under way than LLVM keeps in registers (two rows of 13 by a vector of AVX-512: 75 moves
    to the stack).
    """
    pixel, last = convolution.pixels[-1], convolution.data.indices[-1]
    taps = extents_of(convolution.taps_of(pixel))
    side_by_side = convolution.op.axis[pixel].var in variables(last)
    if convolution.is_transposed or not side_by_side or len(taps) != 1 or not 1 < taps[0] <= _MOST_TAPS:
        return False
    if convolution.step_count <= FEW_SUMMED:
        return False
    if not has_free_register(tile, vectors, target) or prod(list(tile[:-1])) > 1:
        return False
    return waits_for_pixels(convolution, tile, vectors, target)


def waits_for_pixels(convolution: Convolution, tile: tuple[int, ...], vectors: int, target: Target) -> bool:
    """True if pixels that come from the second level, again for each tap or panel, delay the multiply-adds.

    The pixels of a tile are a line of the cache or two in each channel, far from those of the next one. Where the first level doesn't
    keep them all until they are met again, they come again, which takes `lines * line / fill` cycles of each step of the sum. 14 pixels
    by two vectors of AVX-512 are 14 cycles of multiply-adds for 2 of them, 6 by two vectors of AVX2 are 6 for 3.
    """
    machine = target.machine
    span = ((tile[-1] - 1) * convolution.stride_of(convolution.pixels[-1]) + 1) * convolution.bytes
    lines = 1 + (span - 1) / machine.line_bytes
    refill = lines * machine.line_bytes / machine.caches[0].fill_bytes
    return refill > _REFILL * machine.step_cycles(tile[-1] * vectors, tile[-1] + vectors)


def _is_near(convolution: Convolution, block: int, target: Target) -> bool:
    """True if a panel of so many channels stays in the second level cache beside the pixels that it meets."""
    return convolution.bytes * convolution.depth * block <= 0.75 * target.l2_cache_size_bytes


def _comes_from_afar(convolution: Convolution, pixels: list[int], tile: tuple[int, ...], target: Target) -> bool:
    """True if the cores' second level caches don't hold the data, but what the next iteration reads.

    Each iteration reads a tile, or all tiles along the other axes. Where tiles of two sizes begin, or taps of phases, no constant
    stride leads.
    """
    if pixels[0] % tile[0] or convolution.is_transposed:
        return False
    iterations = convolution.size(*convolution.outer) * pixels[0] // tile[0]
    windows = prod(extents_of(convolution.taps))
    data = _bytes_of(convolution, convolution.data)
    return data > target.num_cores * target.l2_cache_size_bytes and 2 * windows * data <= iterations * target.l2_cache_size_bytes


def _bytes_of(convolution: Convolution, load: ProducerLoad) -> int:
    return convolution.bytes * prod([as_int(extent) or 1 for extent in load.producer.shape])


def _order(convolution: Convolution, panels: int, pixels: list[int], peeled: bool, cores: int, target: Target) -> tuple[Order, int]:
    """What is outside, and the chunks of the first pixel axis that make work for all cores."""
    weights, data = (_bytes_of(convolution, load) for load in (convolution.weights, convolution.data))
    half, batches = target.l2_cache_size_bytes // 2, convolution.size(*convolution.outer)
    if panels > 1 and weights <= half < data:  # all weights stay in the second level cache, and the data is read once
        # Border tiles of a parallel loop would choose their body in every iteration.
        return Order.PIXELS, cores if len(pixels) == 1 and peeled and pixels[0] >= cores else 1
    share = data * convolution.per_group // convolution.extents[convolution.channel]  # a panel reads the channels of its group
    if batches == 1 or (_is_even(panels, cores) and panels * share < batches * weights):
        return Order.PANELS, _chunks(panels, pixels, cores)
    return Order.BATCHES, _chunks(batches * panels, pixels, cores)


def _chunks(tasks: int, pixels: list[int], cores: int) -> int:
    return 1 if _is_even(tasks, cores) or pixels[0] < cores else cores


def _is_even(tasks: int, cores: int) -> bool:
    """True if all cores get nearly as many of the tasks."""
    return tasks % cores == 0 or tasks >= 8 * cores


def is_peeled(convolution: Convolution) -> bool:
    """True if tiles at a border have bodies of their own: the data is another tensor with a border of zeros."""
    producer = convolution.data.producer
    op = None if convolution.is_transposed or not isinstance(producer, Tensor) else producer.op
    match op.body if isinstance(op, ComputeOp) else ():
        case (Select(_, _, IntImm() | FloatImm() as border) | Call(op="tir.if_then_else", args=(_, _, IntImm() | FloatImm() as border)),):
            return border.value == 0
    return False


def register_tiles(convolution: Convolution, pixels: list[int], target: Target) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Register tiles: MR*NV accumulators, NV vectors of weights and one broadcast in the registers."""
    per_group, panel, lanes = convolution.per_group, panel_of(convolution), channel_lanes(convolution, target)
    for vectors in range(1, target.vector_registers // 8 + 1):
        block = vectors * lanes
        if (per_group < convolution.extents[convolution.channel] and per_group % block) or (panel and panel % block):
            continue
        if vectors > 1 and (vectors - 1) * lanes >= per_group:
            continue
        most = target.machine.tile_rows(vectors)
        for columns in range(max(1, min(most, pixels[-1]) // 2), min(most, pixels[-1]) + 1):
            yield vectors, (*[1] * (len(pixels) - 1), columns)
        if len(pixels) > 1 and 2 * pixels[-1] <= most:
            rows = min(most // pixels[-1], pixels[-2])
            yield vectors, (*[1] * (len(pixels) - 2), rows, pixels[-1])


def panel_of(convolution: Convolution) -> int:
    """The channels of a panel if the weights lie in panels already, else 0."""
    axis, indices = convolution.op.axis[convolution.channel].var, convolution.weights.indices
    match [index for index in indices if axis in variables(index)]:
        case [FloorDiv(panel, IntImm() as size), FloorMod(within, IntImm() as block) as last] if last is indices[-1]:
            return block.value if panel is within is axis and size is block else 0
    return 0


def has_far_rows(convolution: Convolution) -> bool:
    """True if the weights of a step, next to each other, are far from those of the next step: on a page that few others share."""
    axis, shape = convolution.op.axis[convolution.channel].var, convolution.weights.producer.shape
    return convolution.weights.indices[-1] is axis and convolution.bytes * (as_int(shape[-1]) or 1) >= _FAR_ROWS


def _worth_copy(convolution: Convolution, tile: Sequence[int], vectors: int, target: Target) -> int:
    """The tiles for which a copy of a panel is worth its time: few where each of them waits for rows that the second level has lost.

    Rows a power of two apart share few sets: 256 of 1,536 at 2 KB stay in 512 KB of 8 ways. A row then takes the time of a line from
    the third level and of a walk to its page, which hides behind the steps that the core's window reaches ahead, or doesn't:
    window / (rows * vectors + rows + vectors) * cycles of a step < 2 * wait.
    """
    machine, rows = target.machine, prod(list(tile))
    row_bytes = convolution.bytes * (as_int(convolution.weights.producer.shape[-1]) or 1)
    ahead = machine.window / (rows * vectors + rows + vectors) * machine.step_cycles(rows * vectors, rows + vectors)
    hidden = convolution.depth <= machine.caches[1].rows(row_bytes) or ahead >= 2 * machine.caches[1].wait
    return _USES if hidden else _FEW_USES


def _packing(convolution: Convolution, block: int, is_used: bool) -> Pack:
    """Where the weights are packed, if a core uses each panel often enough for a copy."""
    axis = convolution.op.axis[convolution.channel].var
    if panel_of(convolution):
        return Pack.NONE
    if convolution.weights.indices[-1] is axis and convolution.extents[convolution.channel] % block == 0:
        # Rows far apart are many pages: a copy pays if it is used often.
        return Pack.PANEL if has_far_rows(convolution) and is_used else Pack.NONE
    return Pack.PANEL


def _cycles(
    convolution: Convolution, tile: tuple[int, ...], vectors: int, pixels: list[int], live: list[list[range]], target: Target
) -> float:
    """Cycles of all tiles on one core; `live` are the pixels of each axis that each tap has terms for."""
    sizes = Counter({1: 1})
    for extent, size, taps in zip(pixels, tile, live, strict=True):
        sizes = _products(sizes, _live_sizes(extent, size, taps))
    tiles = prod([-(-extent // size) for extent, size in zip(pixels, tile, strict=True)])
    inside = _has_taps_inside(convolution, tile, vectors, target)
    together = prod(list(extents_of(convolution.taps_of(convolution.pixels[-1])))) if inside else 1
    return all_cycles(convolution, sizes, tiles, vectors, target, together)


def all_cycles(
    convolution: Convolution, sizes: Counter[int], tiles: int, vectors: int, target: Target, together: int = 1, stored: bool = False
) -> float:
    """Cycles of all panels and batches on one core.

    Args:
        sizes: how many pixels are live, of how many pairs of a tile and a tap.
        tiles: in a plane.
        together: taps that one loop over the channels has inside.
        stored: each loop over the channels loads and stores its accumulators.
    """
    block, outer = vectors * channel_lanes(convolution, target), convolution.size(*convolution.outer)
    columns = 0.0 if convolution.channel == len(convolution.extents) - 1 else _TRANSPOSED
    far = _FAR_PANEL * block / vectors * convolution.bytes / target.machine.line_bytes if tiles * outer >= _USES else _FAR_WEIGHTS
    load = _WEIGHTS if _is_near(convolution, block, target) else far
    steps = sum(count * step_cycles(size, vectors, load, target.machine) for size, count in sizes.items() if size)
    bodies = sum(count for size, count in sizes.items() if size)
    loops = _LOOP * max(0, bodies / together - tiles) if convolution.step_count > FEW_SUMMED else 0.0
    if stored:
        loops += sum(2 * count * size * vectors for size, count in sizes.items())
    plane = convolution.size(*convolution.pixels) // prod(convolution.phases)
    ends = PLANES * tiles * end_cycles(vectors * plane / tiles) + columns * vectors * plane
    return (
        (steps * convolution.step_count + loops + ends)
        * -(-convolution.size(convolution.channel) // block)
        * outer
        * prod(convolution.phases)
    )


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
