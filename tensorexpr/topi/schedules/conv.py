"""Schedules of convolutions: tiles of pixels by vectors of channels in registers, over weights in panels of channels.

    parallel over batches, panels of channels, chunks of pixels:
        for tiles of pixels:
            accumulators in registers = sum over the window, then over the channels of the data, of
                one pixel, broadcast, times the vectors of the panel
            result = what follows the convolution, element by element, on the tile

Where the result has its pixels side by side, its stores read the tile by columns, which lowering makes a transpose in
registers. Borders are peeled: tiles there have bodies of their own, without the terms that padding makes zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...schedule.te_schedule import Schedule, Stage
from ...schedule.tree import Inline, StageNode
from ...target import Target
from ...te.operation import ComputeOp
from ...te.tensor import Tensor
from ...tir.dtype import parse_dtype
from ...tir.expr import IterVar, PrimExpr, Var
from .access import stage_reads
from .conv_plan import Packing, Plan, plan_convolution
from .injective import schedule_injective
from .windows import Convolution, convolution_of


def schedule_convolution(s: Schedule, stages: Sequence[StageNode], output: Tensor, target: Target) -> bool:
    """Schedule a program that is a convolution, what is done to its data before and to each result after it.

    Args:
        stages: those that aren't inlined, in order; the last makes `output`.

    Returns:
        False, with the schedule as it was, if the program is anything else or another schedule suits it better.
    """
    found = [(stage, convolution) for stage in stages if (convolution := convolution_of(stage.op)) is not None]
    if len(found) != 1 or stages[-1].origin is not output.op or found[0][0] not in stages[-2:]:
        return False
    node, convolution = found[0]
    before = stages[: stages.index(node)]
    if any(not isinstance(stage.op, ComputeOp) or stage.op.reduce_axis or stage.op.num_outputs != 1 for stage in before):
        return False
    tensor = node.origin.output(0)
    if node is not stages[-1] and not _is_read_in_place(s, output, tensor):
        return False
    plan = plan_convolution(convolution, target)
    if plan is None:
        return False
    _Builder(s, output, tensor, convolution, plan, target).build(before)
    return True


def _is_read_in_place(s: Schedule, output: Tensor, tensor: Tensor) -> bool:
    """True if each element of the output reads the same element of the tensor, and nothing else of it."""
    op = output.op
    if not isinstance(op, ComputeOp) or op.reduce_axis or op.num_outputs != 1 or len(op.axis) != tensor.ndim:
        return False
    reads = [access.load for access in stage_reads(s, output).accesses if access.load.producer is tensor]
    return bool(reads) and all(
        all(index is axis.var for index, axis in zip(load.indices, op.axis, strict=True)) for load in reads
    )


class _Builder:
    """The steps, one stage after the other."""

    def __init__(self, s: Schedule, output: Tensor, tensor: Tensor, convolution: Convolution, plan: Plan, target: Target) -> None:
        self.s, self.output, self.tensor = s, output, tensor
        self.convolution, self.plan, self.target = convolution, plan, target
        merged = convolution.merged_pixels() if plan.merged else ()
        self.merged = merged
        self.pixels = tuple(pixel for pixel in convolution.pixels if pixel not in merged[1:])

    def build(self, before: Sequence[StageNode]) -> None:
        """Schedule everything."""
        s, plan = self.s, self.plan
        tile = s.cache_write(self.tensor, "local") if self.tensor.op is self.output.op else self.tensor
        if tile is self.tensor:
            s[tile].set_scope("local")
        for stage in before:
            self._data(stage, tile)
        self._blocked(tile)
        weights = self._packed(tile)
        place, tiles = self._loops_of_result()
        if weights is not None and plan.packing is Packing.PANEL:
            s[weights].compute_at(s[self.output], place)
        s[tile].compute_at(s[self.output], tiles)
        self._accumulate(tile)

    def _data(self, node: StageNode, tile: Tensor) -> None:
        """What is done to the data before: a border that is peeled is none, anything else is a pass of its own."""
        tensor = node.origin.output(0)
        if self.plan.peeled and self.convolution.data.producer is tensor:
            self.s[tensor].compute_inline()
            self.s[tile].skip_padding(assume_finite=True)
        elif not isinstance(self.s.tree[node.id].attach, Inline):
            schedule_injective(self.s, tensor, self.target)

    def _blocked(self, tile: Tensor) -> None:
        """Accumulators as [panel][others][pixels][vector][lane]."""
        channel, merged, pixels = self.convolution.channel, self.merged, self.pixels
        block, lanes, extents = self.plan.block, self.plan.lanes, self.convolution.extents

        def layout(*i: Var) -> list[PrimExpr]:
            flat = {pixel: i[pixel] for pixel in pixels}
            if merged:
                whole: PrimExpr = i[merged[0]]
                for pixel in merged[1:]:
                    whole = whole * extents[pixel] + i[pixel]
                flat[merged[0]] = whole
            others = [i[number] for number in self.convolution.outer]
            return [i[channel] // block, *others, *(flat[p] for p in pixels), i[channel] % block // lanes, i[channel] % lanes]

        self.s[tile].transform_layout(layout, pad_value=None if extents[channel] % block == 0 else 0.0)

    def _packed(self, tile: Tensor) -> Tensor | None:
        """The weights as [panel][others][taps][channels of the data][channel in the panel]."""
        if self.plan.packing is Packing.NONE:
            return None
        s, load, convolution, block = self.s, self.convolution.weights, self.convolution, self.plan.block
        assert isinstance(load.producer, Tensor)
        weights = s.cache_read(load.producer, "global", [tile])
        axis = convolution.op.axis[convolution.channel].var
        channel = next(place for place, index in enumerate(load.indices) if index is axis)
        order = [axis.var for axis in (*convolution.taps, *convolution.summed)]
        depth = [next(place for place, index in enumerate(load.indices) if index is var) for var in order]
        others = [place for place in range(len(load.indices)) if place != channel and place not in depth]
        made = s[weights].transform_layout(
            lambda *i: [i[channel] // block, *(i[place] for place in (*others, *depth)), i[channel] % block], pad_value=_zero(weights)
        )
        panel, lane, innermost = made[0], made[-1], made[-2]
        outer, lane = s[weights].split(lane, factor=self.plan.lanes)
        if channel != len(load.indices) - 1:  # blocks of as many steps as lanes are transposed in registers
            natural = {place: axis for place, axis in zip((*others, *depth), made[1:-1], strict=True)}
            *slower, fastest = [natural[place] for place in sorted(natural)]
            steps, each = s[weights].split(fastest, factor=self.plan.lanes)
            s[weights].reorder(panel, *slower, outer, steps, each, lane)
            s[weights].unroll(each)
        else:
            s[weights].reorder(*made[:-2], innermost, outer, lane)
        s[weights].vectorize(lane)
        if self.plan.packing is Packing.ROOT and self.plan.parallel:
            s[weights].parallel(panel)
        return weights

    def _loops_of_result(self) -> tuple[IterVar, IterVar]:
        """The loops of the result; returns those at which a panel and a tile are computed."""
        plan, convolution, stage, op = self.plan, self.convolution, self.s[self.output], self.output.op
        assert isinstance(op, ComputeOp)
        axes = {pixel: op.axis[pixel] for pixel in self.pixels}
        if self.merged:
            axes[self.merged[0]] = stage.fuse(*(op.axis[pixel] for pixel in self.merged))
        panel, within = stage.split(op.axis[convolution.channel], factor=plan.block)
        outer = [op.axis[number] for number in convolution.outer]
        tasks = [*outer, panel]
        first = self.pixels[0]
        if plan.chunks > 1:
            chunk, axes[first] = stage.split(axes[first], nparts=plan.chunks, balanced=True)
            tasks.append(chunk)
        tiles, each = [], []
        for pixel, size in zip(self.pixels, plan.tile, strict=True):
            if size == 1:
                tiles.append(axes[pixel])
                continue
            many, one = stage.split(axes[pixel], factor=size, balanced=True)
            tiles.append(many)
            each.append(one)
        self._inner_loops(stage, [*tasks, *tiles], within, each)
        if plan.peeled and plan.hinted:
            stage.pragma(tiles[-1], "loop_partition_hint")
        place = stage.fuse(*tasks)
        if plan.parallel:
            stage.parallel(place)
        return place, tiles[-1]

    def _inner_loops(self, stage: Stage, outside: Sequence[IterVar], within: IterVar, each: Sequence[IterVar]) -> None:
        """The loops over a tile of the result: vectors along what is contiguous, the channel or the last pixels."""
        convolution, lanes = self.convolution, self.plan.lanes
        if convolution.channel == len(convolution.op.axis) - 1 or not each:
            vector, lane = stage.split(within, factor=lanes)
            stage.reorder(*outside, *each, vector, lane)
            unrolled = [*each, vector]
        else:
            vector, channel = stage.split(within, factor=lanes)
            *rows, lane = each
            stage.reorder(*outside, vector, *rows, channel, lane)
            unrolled = [vector, *rows, channel]
        stage.vectorize(lane)
        for axis in unrolled:
            stage.unroll(axis)

    def _accumulate(self, tile: Tensor) -> None:
        stage, op = self.s[tile], self.s[tile].op
        assert isinstance(op, ComputeOp)
        *others, vector, lane = op.axis
        first = len(others) - len(self.pixels)
        count = len(self.convolution.op.reduce_axis)
        assert len(op.reduce_axis) == count
        own = dict(zip(self.convolution.op.reduce_axis, op.reduce_axis, strict=True))
        steps = [own[axis] for axis in (*self.convolution.taps, *self.convolution.summed)]
        stage.reorder(*others[:first], *steps, *others[first:], vector, lane)
        for axis in (*others[first:], vector):
            stage.unroll(axis)
        stage.vectorize(lane)


def _zero(tensor: Tensor) -> int | float:
    return 0.0 if parse_dtype(tensor.dtype).is_float else 0
