"""What is decided before a convolution is scheduled: the register tile, where weights are packed, which loops are parallel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ...target import Target
from ...te.operation import ComputeOp
from ...te.tensor import Tensor
from ...tir.expr import Call, FloatImm, FloorDiv, FloorMod, IntImm, Select
from ...tir.rewriting import variables
from .machine import is_parallel, lanes_of
from .windows import Convolution, product_of_extents

_LATENCY = 4.0  # cycles of a multiply-add
_BROADCAST = 0.1  # cycles that loading a scalar, from the nearest cache, delays the multiply-adds beside it
_WEIGHTS = 0.35  # ... a vector of weights, from the second level
_FAR_WEIGHTS = 3.0  # ... from further away, where a panel doesn't fit
_TILE = 40.0  # cycles to start a tile, and to end it apart from its stores
_STORE = 2.0  # cycles for each vector of a tile that is stored
_PACKED = 8.0  # cycles to load a vector of weights, transpose and store it
_TRANSPOSED = 6.0  # ... and read by columns


class Packing(Enum):
    """Where the weights are brought into panels of channels."""

    NONE = "they lie in panels, or in rows of channels"
    PANEL = "each panel by the thread that uses it"
    ROOT = "all panels before anything else"


class Order(Enum):
    """What a core goes through once while it goes through the other again and again."""

    PANELS = "panels of weights outside, all pixels for each"
    PIXELS = "tiles of pixels outside, all weights for each"


@dataclass(frozen=True, slots=True)
class Plan:
    """How a convolution is computed.

    Args:
        lanes, vectors: of a panel of channels.
        tile: how many pixels a register tile has along each pixel axis, after merging.
        merged: the plane is one axis.
        packing: where the weights are packed.
        peeled: border tiles have bodies of their own; else there is a copy of the data with its border.
        order: what is outside, panels or pixels.
        chunks: parts of the first pixel axis for different cores.
        parallel: whether there is enough work for several cores.
        cycles: how long all of it takes one core.
    """

    lanes: int
    vectors: int
    tile: tuple[int, ...]
    merged: bool
    packing: Packing
    peeled: bool
    order: Order
    chunks: int
    parallel: bool
    cycles: float

    @property
    def block(self) -> int:
        """The channels of a panel."""
        return self.lanes * self.vectors


def plan_convolution(convolution: Convolution, target: Target) -> Plan | None:
    """The plan with the fewest cycles; None if there are too few channels for vectors of them."""
    lanes = lanes_of(target, convolution.op.output(0).dtype)
    extents = convolution.extents
    channels = extents[convolution.channel]
    # Channels last, vectors of anything else would be gathered: even a few lanes of a vector of channels are better.
    if (channels < lanes // 2 and convolution.channel < len(extents) - 1) or convolution.depth < 2:
        return None
    merged = convolution.merged_pixels()
    if any(extents[pixel] % phase for pixel, phase in zip(convolution.pixels, convolution.phases, strict=True)):
        return None
    phases = dict(zip(convolution.pixels, convolution.phases, strict=True))
    pixels = [extents[pixel] // phases[pixel] for pixel in convolution.pixels if pixel not in merged]
    if merged:
        pixels.append(product_of_extents([extents[pixel] for pixel in merged]))
    tiles = _tiles(convolution, pixels, lanes, target)
    timed = [(_cycles(convolution, tile, vectors, pixels, lanes, target), tile, vectors) for vectors, tile in tiles]
    if not timed:
        return None
    cycles, tile, vectors = min(timed)
    work = 2.0 * product_of_extents(extents) * convolution.depth
    parallel = is_parallel(target, work)
    cores = target.num_cores if parallel else 1
    peeled = (
        not convolution.is_transposed
        and _is_padded(convolution)
        and len(convolution.summed) > 0
        and convolution.depth >= 16 * _taps(convolution)
    )
    packing = _packing(convolution, lanes * vectors)
    outer = product_of_extents([extents[number] for number in convolution.outer])
    panels = -(-channels // (lanes * vectors))
    order = _order(convolution, target) if panels > 1 else Order.PANELS
    if order is Order.PANELS:
        tasks = outer * panels
        chunks = 1 if tasks % cores == 0 or tasks >= 8 * cores or pixels[0] < cores else cores
        alone = outer == chunks == 1
    else:  # border tiles of a parallel loop would choose their body in every iteration
        chunks = cores if len(pixels) == 1 and peeled and pixels[0] >= cores else 1
        alone = False
    if packing is Packing.PANEL and not alone:
        packing = Packing.ROOT
    if packing is not Packing.NONE:
        cycles += _PACKED * convolution.depth * channels / lanes
    return Plan(lanes, vectors, tile, bool(merged), packing, peeled, order, chunks, parallel, cycles)


def _order(convolution: Convolution, target: Target) -> Order:
    """Pixels outside if all weights stay in the second level cache and the data, read again for each panel, wouldn't."""
    half = target.l2_cache_size_bytes // 2
    sizes = [product_of_extents([int(str(extent)) for extent in load.producer.shape]) for load in (convolution.weights, convolution.data)]
    return Order.PIXELS if 4 * sizes[0] <= half < 4 * sizes[1] else Order.PANELS


def _taps(convolution: Convolution) -> int:
    return product_of_extents([int(str(axis.dom.extent)) for axis in convolution.taps if axis.dom is not None])


def _is_padded(convolution: Convolution) -> bool:
    """True if the data is another tensor with a border of zeros."""
    producer = convolution.data.producer
    if not isinstance(producer, Tensor) or not isinstance(producer.op, ComputeOp) or len(producer.op.body) != 1:
        return False
    match producer.op.body[0]:
        case Select(_, _, border) | Call(op="tir.if_then_else", args=(_, _, border)):
            return isinstance(border, (IntImm, FloatImm)) and border.value == 0
    return False


def _tiles(convolution: Convolution, pixels: list[int], lanes: int, target: Target) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Register tiles: MR*NV accumulators, NV vectors of weights and one broadcast in the registers."""
    per_group, panel = convolution.per_group, panel_of(convolution)
    for vectors in range(1, target.vector_registers // 8 + 1):
        block = vectors * lanes
        if (per_group < convolution.extents[convolution.channel] and per_group % block) or (panel and panel % block):
            continue
        if vectors > 1 and (vectors - 1) * lanes >= per_group:
            continue
        most = (target.vector_registers - 1 - vectors) // vectors
        for columns in range(max(1, min(most, pixels[-1]) // 2), min(most, pixels[-1]) + 1):
            yield vectors, (*[1] * (len(pixels) - 1), columns)
        if len(pixels) > 1 and 2 * pixels[-1] <= most:
            rows = min(most // pixels[-1], pixels[-2])
            yield vectors, (*[1] * (len(pixels) - 2), rows, pixels[-1])


def panel_of(convolution: Convolution) -> int:
    """The channels of a panel if the weights lie in panels already, else 0."""
    axis = convolution.op.axis[convolution.channel].var
    last = convolution.weights.indices[-1]
    if not isinstance(last, FloorMod) or last.a is not axis or not isinstance(last.b, IntImm):
        return 0
    outer = [index for index in convolution.weights.indices[:-1] if axis in variables(index)]
    blocks = all(isinstance(index, FloorDiv) and index.a is axis and index.b is last.b for index in outer)
    return last.b.value if blocks and len(outer) == 1 else 0


def _packing(convolution: Convolution, block: int) -> Packing:
    axis = convolution.op.axis[convolution.channel].var
    if panel_of(convolution):
        return Packing.NONE
    if convolution.weights.indices[-1] is axis and convolution.extents[convolution.channel] % block == 0:
        return Packing.NONE
    return Packing.PANEL


def _cycles(convolution: Convolution, tile: tuple[int, ...], vectors: int, pixels: list[int], lanes: int, target: Target) -> float:
    """Cycles of all tiles on one core."""
    extents = convolution.extents
    panels = -(-extents[convolution.channel] // (lanes * vectors))
    store = _STORE if convolution.channel == len(extents) - 1 else _TRANSPOSED
    near = 4 * convolution.depth * lanes * vectors <= 0.75 * target.l2_cache_size_bytes
    load = _WEIGHTS if near else _FAR_WEIGHTS
    total = 0.0
    for rows, many in balanced_sizes(pixels[-2] if len(pixels) > 1 else 1, tile[-2] if len(tile) > 1 else 1):
        for columns, count in balanced_sizes(pixels[-1], tile[-1]):
            size = rows * columns
            total += many * count * (step_cycles(size, vectors, load) * convolution.depth + _TILE + store * size * vectors)
    repeats = product_of_extents([extents[number] for number in convolution.outer]) * product_of_extents(pixels[:-2])
    return total * panels * repeats * product_of_extents(list(convolution.phases))


def step_cycles(rows: int, vectors: int, load: float) -> float:
    """Cycles of one step of the reduction on a tile: two multiply-adds or two loads in each, and what loads delay them."""
    return max(rows * vectors / 2, (rows + vectors) / 2, _LATENCY) + _BROADCAST * rows + load * vectors


def balanced_sizes(extent: int, most: int) -> list[tuple[int, int]]:
    """Sizes of balanced tiles, with how many there are of each."""
    tiles = -(-extent // most)
    return [(size, count) for size, count in ((extent // tiles + 1, extent % tiles), (extent // tiles, tiles - extent % tiles)) if count]
