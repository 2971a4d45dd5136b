"""What is decided before a convolution is scheduled: the register tile, where weights are packed, which loops are parallel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from ..target import Target
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import Call, FloatImm, IntImm, ProducerLoad, Select
from .contraction_plan import Pack
from .conv_tile import USES, channel_lanes, has_taps_inside, is_near, panel_of, register_tiles, tile_cycles
from .convolutions import Convolution
from .machine import is_parallel
from .reduction import extents_of

_PACKED = 8.0  # cycles to load a vector of weights, transpose and store it
_FAR_ROWS = 1024  # bytes between rows of weights of which a page has but four
# Tiles for which a panel is worth its copy (of others USES) where each of them would wait for its rows: three tiles of 1,536 rows 2 KB
# apart take 0.25 ms with a copy and 0.30 without (Sapphire Rapids, C1D-3 of the Ansor suite).
_FEW_USES = 3


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
    timed = sorted((tile_cycles(convolution, tile, vectors, pixels, live, target), tile, vectors) for vectors, tile in tiles)
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
    near = is_near(convolution, lanes * vectors, target)
    is_used = (order is Order.PANELS or not near) and uses >= _worth_copy(convolution, tile, vectors, target)
    packing = _packing(convolution, lanes * vectors, is_used)
    if packing is not Pack.NONE and (len(convolution.weights.indices) < 2 or convolution.fixed.index_of(convolution.channel) is None):
        return None
    if packing is Pack.PANEL and (order is not Order.PANELS or chunks > 1):
        packing = Pack.ROOT
    if packing is not Pack.NONE:
        cycles += _PACKED * convolution.depth * channels / lanes + _starting_cycles(packing, parallel, target)
    prefetched = order is Order.PIXELS and chunks == 1 and _comes_from_afar(convolution, pixels, tile, target)
    inside = has_taps_inside(convolution, tile, vectors, target)
    return Plan(lanes, vectors, tile, 0, inside, packing, peeled, order, chunks, parallel, prefetched, cycles)


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
    return USES if hidden else _FEW_USES


def _packing(convolution: Convolution, block: int, is_used: bool) -> Pack:
    """Where the weights are packed, if a core uses each panel often enough for a copy."""
    axis = convolution.op.axis[convolution.channel].var
    if panel_of(convolution):
        return Pack.NONE
    if convolution.weights.indices[-1] is axis and convolution.extents[convolution.channel] % block == 0:
        # Rows far apart are many pages: a copy pays if it is used often.
        return Pack.PANEL if has_far_rows(convolution) and is_used else Pack.NONE
    return Pack.PANEL
