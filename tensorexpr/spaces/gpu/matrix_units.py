"""Schedules of products on matrix units, by asynchronous copies through shared memory.

block, warp:
    sums of the warp's tiles, in its registers
    for each part of the sum:
        all threads begin the copies of the part that is needed three turns later
        for each 32 bytes of it:
            fragments of both operands into registers (ldmatrix)
            multiply and add all pairs (mma.sync)
    what is computed of the result, to memory, each thread of what it holds

A part lies in shared memory by chunks of 16 bytes: [chunk][row][elements of one], so that eight rows, which `ldmatrix` reads together, are
neighbours; chunks are so far apart that what eight threads store together meets no bank twice. Rows, columns and sums that aren't
multiples of the tiles are filled with zeros there, and results beyond the border are not stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import InternalError
from ...schedule.te_schedule import Schedule
from ...target import Target
from ...te.intrinsics.tensor_cores import SIDE, WARP, group_name, result
from ...te.tensor import Tensor
from ...te.tensor_intrin import TensorIntrin
from ...te.thread_axis import thread_axis
from ...tir.expr import IterVar
from ..contractions import taken
from ..stages import compute_of, tiled_result
from .matrix_plan import EIGHT, SWIZZLED, MatrixPlan, Side, Tiling, apart, matrix_plan
from .split_sum import add_up, cut_sum


def schedule_on_matrix_units(s: Schedule, target: Target, wanted: Mapping[int, Tiling] | None = None) -> None:
    """Schedule all products that matrix units compute, each with the stage that makes the result of it element by element.

    Args:
        s: the schedule.
        target: what it is for.
        wanted: tilings of stages by number; the others are those of the rule.
    """
    tilings = wanted or {}
    for stage, plan in taken(s, lambda tree, one, target: matrix_plan(tree, one, target, tilings.get(one.id)), target):
        if plan.tiling.parts == 1:
            _Tiles(s, stage.origin.output(0), tiled_result(s, stage), plan).build()
            continue
        partial = cut_sum(s, stage, plan.summed, plan.tiling.parts)
        of_parts = matrix_plan(s.tree, partial, target, replace(plan.tiling, parts=1))
        if of_parts is None:
            raise InternalError(f"the parts of the sum {stage.name} are no product of matrix units any more")
        _Tiles(s, partial.origin.output(0), partial.origin.output(0), of_parts).build()
        add_up(s, stage.origin.output(0), target)


class _Tiles:
    """The steps of a plan."""

    def __init__(self, s: Schedule, tensor: Tensor, result: Tensor, plan: MatrixPlan) -> None:
        self.s, self.sums, self.result, self.plan = s, tensor, result, plan
        self.lane = thread_axis((0, WARP), "threadIdx.x")
        self.warp = thread_axis((0, plan.warps), "threadIdx.y")

    def build(self) -> None:
        """Make the schedule."""
        s, plan = self.s, self.plan
        if self.result is self.sums:
            self.sums = s.cache_write(self.sums, "warp")
        else:
            s[self.sums].set_scope("warp")
        shared = [s.reindex_cache_read(side.operand.tensor, "shared.dyn", self.sums) for side in plan.sides]
        for copy, side in zip(shared, plan.sides, strict=True):
            self._lay_out(copy, side)
        held = [s.cache_read(copy, "warp", [self.sums]) for copy in shared] if not plan.is_group else []
        for fragments, side in zip(held, plan.sides, strict=False):
            self._spread(fragments, side)
        self._spread_sums()
        s[self.sums].compute_at(s[self.result], self._results())
        turn, step = self._terms()
        for copy, side in zip(shared, plan.sides, strict=True):
            s[copy].compute_at(s[self.sums], turn)
            self._fetch(copy, side)
        for fragments, side in zip(held, plan.sides, strict=False):
            s[fragments].compute_at(s[self.sums], step)
            self._load(fragments, side)

    # Layouts

    def _fused(self, values: dict[int, Any], axes: Sequence[int]) -> Any:
        """Several axes as one, the last the fastest."""
        whole: Any = values[axes[0]]
        for axis in axes[1:]:
            whole = whole * self.plan.sizes[axis] + values[axis]
        return whole

    def _lay_out(self, copy: Tensor, side: Side) -> None:
        """A part of an operand by chunks: batch, outer sums, part, tile of a block, chunk, the other axis, element."""
        plan, chunk = self.plan, SWIZZLED // self.plan.unit.bytes if self.plan.is_bulk else self.plan.unit.chunk
        axes = [axis for axis in range(len(plan.sizes)) if side.operand.moves_with(axis)]

        def places(*indices: Any) -> list[Any]:
            values = dict(zip(axes, indices, strict=True))
            before = [values[axis] for axis in (*plan.batch, *plan.outer)]
            k, i = values[plan.summed], self._fused(values, side.axes)
            before += [k // plan.part, i // side.tile]
            if side.along_sum:
                return [*before, k % plan.part // chunk, i % side.tile, k % chunk]
            return [*before, i % side.tile // chunk, k % plan.part, i % chunk]

        self.s[copy].transform_layout(places, pad_value=0)

    def _spread(self, fragments: Tensor, side: Side) -> None:
        """Tiles over the threads of a warp: ..., step of the sum, tile, thread, register."""
        unit = self.plan.unit
        chunk, depth = unit.chunk, unit.depth

        def places(*indices: Any) -> list[Any]:
            *before, piece, other, element = indices
            if side.along_sum:
                return [*before, piece // 2, other // SIDE, *unit.operand(side.role, other // EIGHT, other % EIGHT, piece, element)]
            spread = unit.operand(side.role, piece, element, other // chunk, other % chunk)
            return [*before, other // depth, piece // 2, *spread]

        self.s[fragments].transform_layout(places)

    def _spread_sums(self) -> None:
        """Results over the threads of a warp: batch, tile of a block along rows and columns, tiles in it, thread, register."""
        plan = self.plan

        def places(*indices: Any) -> list[Any]:
            values = dict(enumerate(indices))
            i, j = (self._fused(values, side.axes) for side in plan.sides)
            rows, columns = plan.rows.tile, plan.columns.tile
            before = [*(values[axis] for axis in plan.batch), i // rows, j // columns, i % rows // SIDE]
            if plan.is_group:  # one tile of all columns
                return [*before, *result(i, j, columns)]
            return [*before, j % columns // SIDE, *result(i, j)]

        self.s[self.sums].transform_layout(places)

    # Loops

    def _results(self) -> IterVar:
        """Blocks, warps and threads of the result; returns the loop over warps."""
        stage, plan = self.s[self.result], self.plan
        axes = list(compute_of(self.s, self.result).axis)
        batch = [axes[axis] for axis in plan.batch]
        sides = [[axes[axis] for axis in side.axes] for side in plan.sides]
        stage.reorder(*batch, *sides[0], *sides[1])
        parts = [self._cut(stage.fuse(*own), side) for own, side in zip(sides, plan.sides, strict=True)]
        (block_i, warp_i, tile_i, eight, row), (block_j, warp_j, tile_j, four, pair) = parts
        quad, pair = stage.split(pair, factor=2)
        stage.reorder(*batch, block_i, block_j, warp_i, warp_j, row, quad, tile_i, tile_j, four, eight, pair)
        outer, inner = stage.split(block_i, factor=plan.beside)
        stage.reorder(outer, block_j, inner)
        stage.bind(stage.fuse(*batch, outer, block_j, inner), thread_axis("blockIdx.x"))
        warp, lane = stage.fuse(warp_i, warp_j), stage.fuse(row, quad)
        stage.bind(warp, self.warp)
        stage.bind(lane, self.lane)
        for axis in (tile_i, tile_j, four, eight):
            stage.unroll(axis)
        # Two neighbours, unless one may be the first of another row of the result.
        neighbours = plan.columns.axes[-1] == len(plan.op.axis) - 1 and plan.sizes[plan.columns.axes[-1]] % 2 == 0
        (stage.vectorize if neighbours else stage.unroll)(pair)
        return warp

    def _cut(self, axis: IterVar, side: Side) -> tuple[IterVar, ...]:
        """An axis as blocks, warps, tiles, halves of a tile and eight rows or columns."""
        stage = self.s[self.result]
        block, rest = stage.split(axis, factor=side.tile)
        warp, rest = stage.split(rest, factor=side.warp)
        tile, rest = stage.split(rest, factor=SIDE)
        half, eight = stage.split(rest, factor=EIGHT)
        return block, warp, tile, half, eight

    def _terms(self) -> tuple[IterVar, IterVar]:
        """The loop over parts of the sum, and that over steps of the unit in one."""
        stage, plan, op = self.s[self.sums], self.plan, compute_of(self.s, self.sums)
        first = len(plan.op.axis)
        part, rest = stage.split(op.reduce_axis[plan.summed - first], factor=plan.part)
        step, product = stage.split(rest, factor=plan.part if plan.is_group else plan.unit.depth)
        outer = [op.reduce_axis[axis - first] for axis in plan.outer]
        *before, lane, register = op.axis
        stage.reorder(*outer, part, step, *before, lane, register, product)
        turn = stage.fuse(*outer, part)
        for axis in (step, *before):
            stage.unroll(axis)
        turned_a, turned_b = (not side.along_sum for side in plan.sides)
        group = group_name(plan.unit, plan.columns.tile, plan.part, turned_a, turned_b, plan.is_bulk)
        stage.tensorize(lane, TensorIntrin.get(group if plan.is_group else f"mma_{plan.unit.name}"))
        return turn, step

    def _fetch(self, copy: Tensor, side: Side) -> None:
        """All threads copy chunks, neighbours in memory by neighbouring threads; or the engine copies boxes."""
        s, stage, plan, chunk = self.s, self.s[copy], self.plan, self.plan.unit.chunk
        *before, piece, other, element = compute_of(s, copy).axis
        if plan.is_bulk:
            stage.pragma(piece, "bulk_copy", SWIZZLED)
            stage.multi_buffer(plan.copies)
            return
        pieces = (plan.part if side.along_sum else side.tile) // chunk
        # Eight threads copy some chunks of each of some rows: those are next to each other in the banks.
        stage.storage_align(piece, EIGHT * chunk, apart(pieces) * chunk)
        stage.reorder(*before, other, piece, element)
        rest, lane = stage.split(stage.fuse(*before, other, piece), factor=WARP)
        rest, warp = stage.split(rest, factor=plan.warps)
        stage.bind(lane, self.lane)
        stage.bind(warp, self.warp)
        stage.unroll(rest)
        stage.vectorize(element)
        if plan.copies > 1:
            stage.multi_buffer(plan.copies)

    def _load(self, fragments: Tensor, side: Side) -> None:
        """Tiles from shared memory into registers."""
        stage = self.s[fragments]
        *before, lane, _ = compute_of(self.s, fragments).axis
        for axis in before:
            stage.unroll(axis)
        turned = "" if side.along_sum else "_trans"
        stage.tensorize(lane, TensorIntrin.get(f"ldmatrix_{side.role}{turned}_{self.plan.unit.ptx}"))
