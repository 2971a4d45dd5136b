"""Schedules of convolutions whose windows are single pixels and whose planes lie side by side: vectors of pixels.

    parallel over batches, panels of pixels:
        for tiles of channels:
            accumulators in registers = sum over the channels of the data of one weight, broadcast, times the panel's vectors
            result = what follows the convolution, element by element, on the tile

Nothing is packed or transposed: weights are read where they lie. The last panel of a plane is masked.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ..schedule.te_schedule import Schedule
from ..target import Target
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..tir.expr import PrimExpr, Var
from .conv_packed import after_copy
from .conv_plan import balanced_sizes, step_cycles
from .convolutions import Convolution
from .machine import is_parallel, lanes_of
from .sizes import balanced_rows, decided, registers

_TILE = 40.0  # cycles to start a tile, and to end it apart from its stores
_STORE = 2.0  # cycles for each vector that is stored


@dataclass(frozen=True, slots=True)
class FlatPlan:
    """Tiles of `rows` channels by `vectors` of pixels, and how long all of them take one core."""

    lanes: int
    vectors: int
    rows: int
    parallel: bool
    cycles: float


def plan_flat(convolution: Convolution, target: Target) -> FlatPlan | None:
    """The plan with the fewest cycles; None if the pixels aren't neighbours, of the data and of the result."""
    merged = convolution.merged_pixels()
    extents, lanes = convolution.extents, lanes_of(target, convolution.op.output(0).dtype)
    # Vectors run on over the ends of rows, which is right only if the next row of data and of result follows without a gap.
    if merged != convolution.pixels or merged[-1] != len(extents) - 1 or not convolution.ends_with(merged[-1]):
        return None
    pixels = prod([extents[pixel] for pixel in merged])
    outer = prod([extents[number] for number in convolution.outer])
    channels = min(extents[convolution.channel], convolution.per_group)
    groups = extents[convolution.channel] // channels
    if pixels < lanes or (groups > 1 and extents[convolution.channel] % channels):
        return None
    parallel = is_parallel(target, 2.0 * prod(extents) * convolution.depth)
    row_bytes = convolution.bytes * convolution.depth
    load = 0.2 if pixels % lanes == 0 else 0.5
    plans = []
    for vectors in range(1, target.vector_registers // 8 + 1):
        most = min(target.machine.tile_rows(vectors), channels, target.machine.caches[0].rows(row_bytes))
        panels = -(-pixels // (vectors * lanes)) * outer
        for rows in range(max(1, most // 2), most + 1):
            if groups > 1 and channels % rows:
                continue
            cycles = sum(
                count * (step_cycles(size, vectors, load, target.machine) * convolution.depth + _TILE + _STORE * size * vectors)
                for size, count in balanced_sizes(channels, rows)
            )
            # The slowest core counts: with panels left over, the others wait for those that have one more.
            shares = -(-panels // target.num_cores) * target.num_cores if parallel else panels
            plans.append(FlatPlan(lanes, vectors, rows, parallel, cycles * shares * groups))
    return min(plans, key=lambda plan: plan.cycles, default=None)


def schedule_flat(
    s: Schedule, output: Tensor, tensor: Tensor, convolution: Convolution, plan: FlatPlan, target: Target, copy: Tensor | None
) -> None:
    """Schedule the convolution, a copy of its data if it reads one, and the stage that makes the result of it element by element."""
    tile = s.cache_write(tensor, "local") if tensor.op is output.op else tensor
    if tile is tensor:
        s[tile].set_scope("local")
    merged, extents = convolution.pixels, convolution.extents

    def layout(*i: Var) -> list[PrimExpr]:
        whole: PrimExpr = i[merged[0]]
        for pixel in merged[1:]:
            whole = whole * extents[pixel] + i[pixel]
        return [*(i[number] for number in convolution.outer), i[convolution.channel], whole]

    s[tile].transform_layout(layout)
    stage, op = s[output], output.op
    assert isinstance(op, ComputeOp)
    plane = stage.fuse(*(op.axis[pixel] for pixel in merged))
    panel, within = stage.split(plane, factor=decided(stage, plane, plan.lanes * plan.vectors, registers(plan.lanes, target)))
    vector, lane = stage.split(within, factor=plan.lanes)
    channel = op.axis[convolution.channel]
    rows, row = stage.split(channel, factor=decided(stage, channel, plan.rows, balanced_rows(target)), balanced=True)
    outer = [op.axis[number] for number in convolution.outer]
    stage.reorder(*outer, panel, rows, row, vector, lane)
    stage.unroll(row)
    stage.unroll(vector)
    stage.vectorize(lane)
    place = after_copy(s, copy, output, stage.fuse(*outer, panel), plan.parallel)
    if plan.parallel:
        stage.parallel(place)
    s[tile].compute_at(stage, rows)
    _accumulate(s, tile, plan)


def _accumulate(s: Schedule, tile: Tensor, plan: FlatPlan) -> None:
    stage, op = s[tile], s[tile].op
    assert isinstance(op, ComputeOp)
    *outer, row, pixel = op.axis
    vector, lane = stage.split(pixel, factor=plan.lanes)
    stage.reorder(*outer, *op.reduce_axis, row, vector, lane)
    stage.unroll(row)
    stage.unroll(vector)
    stage.vectorize(lane)
