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

from dataclasses import replace
from math import prod

from ..schedule.te_schedule import Schedule, create_schedule
from ..schedule.tree import Inline, ScheduleTree, StageNode
from ..target import Target
from ..te.tensor import Tensor
from ..tir.expr import IterVar, PrimExpr, Var
from .access import bordered
from .contraction_plan import Pack, contraction_plans
from .contraction_plan import Plan as ContractionPlan
from .contraction_tiles import Tiles, accumulators_of, in_tasks, joined, pack, tile_loops
from .contractions import Refused, contraction_of
from .conv_packed import copied, dense
from .conv_plan import Order, Plan, convolution_plans
from .conv_tile import FEW_SUMMED, has_free_register
from .conv_written import plan_written
from .convolutions import Convolution, convolution_of
from .reduction import extents_of
from .sizes import balanced_rows, decided
from .stages import compute_of, is_untouched, tiled_result

# What code for each tile has to be better by: it takes longer to compile.
_WORTH_CODE = 0.985


def schedule_convolutions(s: Schedule, target: Target, alternative: int = 0) -> None:
    """Schedule all convolutions, each with the padding that it reads and the stage that reads it element by element.

    The stages that were scheduled are inlined, computed at a loop of another stage, or have vector loops afterwards.
    """
    for stage in [stage.id for stage in s.tree.in_order()]:
        node = s.tree[stage]
        convolution = convolution_of(node.op) if is_untouched(node) else None
        if convolution is None:
            continue
        tensor, result = node.origin.output(0), tiled_result(s, node)
        plans, copy = plans_of(convolution, s.tree, node, target), None
        of_copy = dense(convolution, plans[0], target) if plans and isinstance(plans[0], Plan) else None
        if of_copy is not None:
            copy, tree = copied(s, convolution, tensor), create_schedule(of_copy.op).tree
            convolution, plans = of_copy, plans_of(of_copy, tree, tree[tree.index[of_copy.op]], target)
        plan = plans[min(alternative, len(plans) - 1)] if plans else None
        if isinstance(plan, Plan):
            peeled = plan.peeled and _is_plain_border(s, convolution)
            _Builder(s, result, tensor, convolution, replace(plan, peeled=peeled), target, copy).build()
        elif plan is not None:
            Tiles(s, result, tensor, plan, target, copy).build()


def plans_of(convolution: Convolution, tree: ScheduleTree, stage: StageNode, target: Target) -> list[Plan | ContractionPlan]:
    """The ways to compute a convolution, the preferred one first."""
    plans = convolution_plans(convolution, target)
    flat, written = plan_flat(convolution, tree, stage, target), plan_written(convolution, target)
    if written is not None and (not plans or _is_worth_code(written, plans[0], target)):
        plans.insert(0, written)
    if flat is None:
        return [*plans]
    cycles = flat.tile.cycles * (target.num_cores if flat.parallel else 1)
    first = 0 if not plans or cycles < plans[0].cycles else 1
    return [*plans[:first], flat, *plans[first:]]


def plan_flat(convolution: Convolution, tree: ScheduleTree, stage: StageNode, target: Target) -> ContractionPlan | None:
    """Rows of channels by vectors of pixels, if windows are single pixels that lie side by side; nothing is packed or transposed."""
    found = contraction_of(tree, stage)
    if isinstance(found, Refused) or not found.right.lies_along(found.column) or convolution.merged_pixels() != convolution.pixels:
        return None
    plane = found.over_rows()
    plans = contraction_plans(plane, convolution.dtype, target) if plane.columns == convolution.pixels else []
    return next((plan for plan in plans if plan.pack is Pack.NONE and plan.tile.chunks == 1), None)


def _is_worth_code(written: Plan, rows: Plan, target: Target) -> bool:
    """True if tiles that are written out save more than noise: a part of the whole, and more than starting threads takes."""
    return written.cycles < _WORTH_CODE * rows.cycles and rows.cycles - written.cycles > target.machine.fork_join_cycles


def _is_plain_border(s: Schedule, convolution: Convolution) -> bool:
    """True if the padded data is nothing but a stored tensor with a border, so that it costs nothing to read the tensor instead."""
    assert isinstance(convolution.data.producer, Tensor)
    stage = s.tree[s[convolution.data.producer].id]
    load = bordered(stage.op)
    stored = load is not None and not isinstance(s.tree.producer(load).attach, Inline)
    return stored and not stage.is_output and is_untouched(stage)


class _Builder:
    """The steps, one stage after the other."""

    def __init__(
        self, s: Schedule, output: Tensor, tensor: Tensor, convolution: Convolution, plan: Plan, target: Target, copy: Tensor | None
    ) -> None:
        self.s, self.output, self.tensor, self.copy = s, output, tensor, copy
        self.convolution, self.plan, self.target = convolution, plan, target
        # Pixel axes that are one: the plane is one in memory, or tiles run on over row ends.
        self.merged = convolution.pixels[-2:] if plan.rows else convolution.merged_pixels()
        self.pixels = tuple(pixel for pixel in convolution.pixels if pixel not in self.merged[1:])
        self.phases = {pixel: phase for pixel, phase in zip(convolution.pixels, convolution.phases, strict=True) if phase > 1}

    def build(self) -> None:
        """Schedule everything."""
        s, plan = self.s, self.plan
        tile = accumulators_of(s, self.tensor, self.output, "local")
        data = self.convolution.data.producer if self.copy is None else self.copy
        assert isinstance(data, Tensor)
        if plan.peeled:
            s[data].compute_inline()
            data = s[data].op.input_tensors[0]
            s[tile].skip_padding(assume_finite=True)
        elif self.convolution.is_transposed:
            s[tile].skip_padding()
        weights = self._packed(tile)  # before the accumulators, whose padding then has weights to be computed from
        self._blocked(tile)
        place, tiles = self._loops_of_result()
        if weights is not None and plan.packing is Pack.PANEL:
            s[weights].compute_at(s[self.output], place)
        s[tile].compute_at(s[self.output], tiles)
        self._accumulate(tile)
        if plan.prefetched and not isinstance(s.tree[s[data].id].attach, Inline):
            s[self.output].prefetch(data, place, 1)

    def _blocked(self, tile: Tensor) -> None:
        """Accumulators as [panel][others][phases][pixels][vector][lane]."""
        channel, merged, pixels = self.convolution.channel, self.merged, self.pixels
        block, lanes, extents = self.plan.block, self.plan.lanes, self.convolution.extents

        def layout(*i: Var) -> list[PrimExpr]:
            flat: dict[int, PrimExpr] = {pixel: i[pixel] for pixel in pixels}
            if merged:
                flat[merged[0]] = joined(i, merged, extents)
            others: list[PrimExpr] = [i[number] for number in self.convolution.outer]
            for pixel, phase in self.phases.items():
                others.append(i[pixel] % phase)
                flat[pixel] = i[pixel] // phase
            return [i[channel] // block, *others, *(flat[p] for p in pixels), i[channel] % block // lanes, i[channel] % lanes]

        self.s[tile].transform_layout(layout)

    def _packed(self, tile: Tensor) -> Tensor | None:
        """The weights as [panel][others][summed axes][channel in the panel]."""
        s, plan, fixed, results = self.s, self.plan, self.convolution.fixed, range(len(self.convolution.op.axis))
        if plan.packing is Pack.NONE:
            return None
        assert isinstance(fixed.load.producer, Tensor)
        weights, channel = s.cache_read(fixed.load.producer, "global", [tile]), fixed.index_of(self.convolution.channel)
        assert channel is not None
        # In the order in which they lie, so that a copy runs through them.
        summed = [place for place, moved in enumerate(fixed.moved) if moved.isdisjoint(results)]
        transposed = channel < len(fixed.moved) - 1
        pack(s, weights, channel, summed, (plan.vectors, plan.lanes), transposed, plan.packing is Pack.ROOT and plan.parallel)
        return weights

    def _loops_of_result(self) -> tuple[IterVar, IterVar]:
        """The loops of the result; returns those at which a panel and a tile are computed."""
        plan, convolution, stage, op = self.plan, self.convolution, self.s[self.output], compute_of(self.s, self.output)
        axes = {pixel: op.axis[pixel] for pixel in self.pixels}
        if self.merged:
            axes[self.merged[0]] = stage.fuse(*(op.axis[pixel] for pixel in self.merged))
        phases = []
        for pixel, size in self.phases.items():
            axes[pixel], phase = stage.split(axes[pixel], factor=size)
            phases.append(phase)
        panel, within = stage.split(op.axis[convolution.channel], factor=plan.block)
        batches = [op.axis[number] for number in convolution.outer]
        tasks = {Order.PANELS: [panel], Order.BATCHES: [*batches, panel], Order.PIXELS: [*batches]}[plan.order]
        # All batches meet the taps of a phase before the next one's: fewer weights at a time.
        inside = [*phases, *batches] if plan.order is Order.PANELS else phases
        first = self.pixels[0]
        if plan.chunks > 1:
            chunk, axes[first] = stage.split(axes[first], nparts=plan.chunks, balanced=True)
            tasks.append(chunk)
        tiles, each, group = list[IterVar](), list[IterVar](), None
        for pixel, size in zip(self.pixels, plan.tile, strict=True):
            if plan.rows and pixel == self.merged[0] and plan.rows < convolution.extents[pixel]:
                group, axes[pixel] = stage.split(axes[pixel], factor=plan.rows * convolution.extents[self.merged[-1]])
                tiles.append(group)
            if size == 1:
                tiles.append(axes[pixel])
                continue
            each_size = size if plan.rows else decided(stage, axes[pixel], size, balanced_rows(self.target))
            many, one = stage.split(axes[pixel], factor=each_size, balanced=True)
            tiles.append(many)
            each.append(one)
        if plan.rows:
            stage.unroll(tiles[-1])
        # Of tiles that are written out those of the first and the last rows meet the border.
        hinted = tiles[-1] if not plan.rows else group
        if plan.peeled and hinted is not None:
            stage.pragma(hinted, "loop_partition_hint")
        innermost = tiles[-1]
        # The panels go innermost: a tile of pixels stays in cache while all channels are computed from it.
        if plan.order is Order.PIXELS:
            innermost = panel
            tiles.append(panel)
            if plan.chunks == 1:
                tasks.append(tiles.pop(0))
        vector, lane = stage.split(within, factor=plan.lanes)
        last = convolution.channel == len(op.axis) - 1 or not each
        tile_loops(stage, [*tasks, *inside, *tiles], each, vector, lane, last)
        for axis in (*each, vector) if last else ():
            stage.unroll(axis)
        return in_tasks(self.s, self.output, tasks, plan.parallel, self.copy), innermost

    def _accumulate(self, tile: Tensor) -> None:
        stage, op, convolution = self.s[tile], compute_of(self.s, tile), self.convolution
        *others, vector, lane = op.axis
        first = len(others) - len(self.pixels)
        own = dict(zip(convolution.op.reduce_axis, op.reduce_axis, strict=True))
        taps, summed = [own[axis] for axis in convolution.taps], [own[axis] for axis in convolution.summed]
        inside = [own[axis] for axis in convolution.taps_of(convolution.pixels[-1])] if self.plan.taps_inside else []
        stage.reorder(*others[:first], *(tap for tap in taps if tap not in inside), *summed, *inside, *others[first:], vector, lane)
        few = prod(extents_of(convolution.summed)) <= FEW_SUMMED
        few = few and has_free_register(self.plan.tile, self.plan.vectors, self.target)
        written = [own[tap] for pixel in self.merged for tap in convolution.taps_of(pixel)] if self.plan.rows else inside
        for axis in (*written, *(summed if few else ()), *others[first:], vector):
            stage.unroll(axis)
        for axis in inside:  # or pixels that several taps read would stay in registers, of which there are too few
            stage.pragma(axis, "no_load_merge")
        stage.vectorize(lane)
