"""Schedules of contractions: register tiles over panels of columns, packed by the thread that uses them.

    parallel over batch, chunks of rows, panels of columns or several of them:
        pack the panels: summed axes x vectors x lanes, the last vector padded with zeros
        for tiles of rows, and for the panels of a task:
            accumulators in registers = sum over the summed axes of broadcasts times vectors
            result = what follows the contraction, element by element, on the tile

Where the axis in the lanes isn't the last one, stores read the tile by columns, which lowering makes a transpose in registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..schedule.steps import PreTransformed
from ..schedule.te_schedule import Schedule, Stage
from ..schedule.tree import Inline, StageNode
from ..target import Target
from ..te.tensor import Tensor
from ..te.tensor_intrin import TensorIntrin
from ..tir.dtype import parse_dtype
from ..tir.expr import IterVar, PrimExpr, Var
from .contraction_plan import Pack, Plan, contraction_plans
from .contractions import Contraction, Operand, contraction_of, contractions_of, inline_moves
from .dot_products import has_whole_groups
from .sizes import Factor, balanced_rows, decided, parts, several
from .stages import compute_of, is_untouched, tiled_result


def schedule_contractions(s: Schedule, target: Target, alternative: int = 0, by_dots: bool = False) -> None:
    """Schedule all contractions, each with the stage that makes the result of it element by element.

    Args:
        by_dots: only those of small numbers that the target has an instruction for, convolutions too: nothing else comes near it.
    """
    for stage in list(s.tree.in_order()):
        if is_untouched(s.tree[stage.id]) and planned(s, stage, target, by_dots):
            inline_moves(s, stage)
            if plans := planned(s, stage, target, by_dots):
                Tiles(s, tiled_result(s, stage), stage.origin.output(0), plans[min(alternative, len(plans) - 1)], target).build()


def planned(s: Schedule, stage: StageNode, target: Target, by_dots: bool) -> list[Plan]:
    """The plans for a stage with its last axis in the lanes or, for dot products, the one with which an instruction sums most."""
    found = contractions_of(s.tree, stage) if by_dots else [contraction_of(s.tree, stage)]
    plans = [contraction_plans(one, stage.origin.output(0).dtype, target) for one in found if isinstance(one, Contraction)]
    groups = [(plan.dot.group if plan.dot is not None else 0, some) for some in plans for plan in some[:1]]
    group, chosen = max(groups, key=lambda one: one[0], default=(0, []))
    return chosen if group or not by_dots else []


class Tiles:
    """The steps of a plan: a contraction, and the stage that holds its result, which may be itself."""

    def __init__(self, s: Schedule, result: Tensor, tensor: Tensor, plan: Plan, target: Target, copy: Tensor | None = None) -> None:
        self.s, self.result, self.tensor, self.plan, self.target, self.copy = s, result, tensor, plan, target, copy
        self.contraction = plan.contraction

    def build(self) -> None:
        """Schedule everything."""
        s, plan, contraction = self.s, self.plan, self.contraction
        scope = "local" if plan.is_whole else "global"
        tile = accumulators_of(s, self.tensor, self.result, scope)
        panel = None if plan.pack is Pack.NONE else self._copied(contraction.right, tile)
        if plan.dot is not None and not has_whole_groups(contraction, plan.dot.group):
            self._group_left(tile)
        # With another axis in the lanes than the last one its vectors lie together all the same.
        columns = contraction.columns
        spatial = [*(axis for axis in range(len(contraction.op.axis)) if axis not in columns), contraction.column]
        if spatial != [*range(len(contraction.op.axis))]:
            s[tile].transform_layout(lambda *i: [*(i[axis] for axis in spatial[:-1]), joined(i, columns, contraction.sizes)])
        place, innermost, rows = self._loops_of_result()
        if panel is not None:
            self._pack(panel)
        s[tile].compute_at(s[self.result], innermost if plan.is_whole else place)
        blocks = self._accumulate(tile, spatial, rows)
        if panel is not None and plan.pack is Pack.PANEL:
            s[panel].compute_at(*((s[self.result], place) if blocks is None else (s[tile], blocks)))

    def _copied(self, operand: Operand, tile: Tensor) -> Tensor:
        """The stage that copies an operand: what was to be inlined does it itself, of anything else a copy is made."""
        node = self.s.tree[self.s[operand.tensor].id]
        if isinstance(node.attach, Inline) and len(self.s.tree.consumers(node)) == 1:
            self.s[operand.tensor].compute_root()
            return operand.tensor
        return self.s.cache_read(operand.tensor, "global", [tile])

    def _group_left(self, tile: Tensor) -> None:
        """Copy the left operand with the last group of each row padded with zeros, so that every group is a whole one."""
        s, plan, (left,) = self.s, self.plan, self.contraction.left
        assert plan.dot is not None
        group, last = plan.dot.group, left.index_of(self.contraction.summed[-1])
        copy = self._copied(left, tile)
        assert last is not None
        *others, _, _ = axes = s[copy].transform_layout(
            lambda *i: [*i[:last], *i[last + 1 :], i[last] // group, i[last] % group], pad_value=zero_of(copy)
        )
        _, lane = s[copy].split(s[copy].fuse(*axes[-2:]), factor=plan.lanes * group)
        s[copy].vectorize(lane)
        if plan.parallel:
            s[copy].parallel(s[copy].fuse(*others))

    def _loops_of_result(self) -> tuple[IterVar, IterVar, Factor]:
        """The loops of the result; returns those at which a panel and a tile are computed, and the rows of a tile."""
        plan, contraction, stage, op = self.plan, self.contraction, self.s[self.result], compute_of(self.s, self.result)
        outer, repeated = [op.axis[axis] for axis in contraction.batch], [op.axis[axis] for axis in contraction.rows[:-1]]
        row, column = op.axis[contraction.row], stage.fuse(*(op.axis[axis] for axis in contraction.columns))
        if plan.tile.chunks > 1:
            chunk, row = stage.split(row, nparts=plan.tile.chunks, balanced=True)
            outer.append(chunk)
        vectors, lane = stage.split(column, factor=plan.lanes) if plan.blocks is None else (op.axis[plan.blocks], column)
        # The panel's layout is made of the tile's vectors; without one any number will do.
        width = decided(stage, vectors, plan.tile.vectors, several) if plan.pack is Pack.NONE else plan.tile.vectors
        panel, vector = stage.split(vectors, factor=width, balanced=plan.blocks is not None)
        rows = decided(stage, row, plan.tile.rows, balanced_rows(self.target))
        tiles, each = stage.split(row, factor=rows, balanced=True)
        around = [*outer, *repeated, tiles, panel] if plan.rows_outside else [*outer, panel, *repeated, tiles]
        packed, innermost = panel, tiles
        if plan.pack is Pack.PANEL and plan.is_whole:
            packed, innermost = stage.split(panel, factor=decided(stage, panel, 1, self._panels_together))
            around = [*outer, packed, *repeated, tiles, innermost]
        tile_loops(stage, around, [each], vector, lane, contraction.column == len(op.axis) - 1 or plan.blocks is not None)
        if plan.rows_outside:
            self._in_parallel(stage, [*outer, *repeated], tiles, panel)
            return panel, panel, rows
        return in_tasks(self.s, self.result, [*outer, packed], plan.parallel, self.copy), innermost, rows

    def _panels_together(self, _: int) -> Iterable[int]:
        """Numbers of panels that the second cache holds: a tile of rows is brought from further away once for all of them."""
        plan, right = self.plan, self.contraction.right
        panel = plan.block * plan.tile.vectors * plan.lanes * right.bytes
        return [count for count in several(0) if count * panel <= self.target.l2_cache_size_bytes]

    def _in_parallel(self, stage: Stage, others: list[IterVar], tiles: IterVar, panel: IterVar) -> None:
        """Tasks of whole rows: each of the other loops if there are enough to keep threads equally busy, else tiles of rows."""
        contraction, cores = self.contraction, self.target.num_cores
        tasks = contraction.size(*contraction.batch, *contraction.rows[:-1]) * self.plan.tile.chunks
        if not self.plan.parallel:
            return
        if tasks > 1 and (tasks % cores == 0 or tasks >= 4 * cores):
            stage.parallel(stage.fuse(*others))
        else:
            inside = [axis for axis in stage.leaf_iter_vars if all(axis is not one for one in (*others, tiles))]
            stage.reorder(tiles, *others, *inside)
            stage.parallel(tiles)

    def _pack(self, panel: Tensor) -> None:
        """Bring the right operand into panels: by this program in its place, or by the caller."""
        s, plan, right = self.s, self.plan, self.contraction.right
        column = right.index_of(self.contraction.column)
        assert column is not None
        depths = [self._depth(right, index) for index in range(len(right.forms))]
        summed = sorted((index for index in range(len(depths)) if depths[index] >= 0), key=lambda index: depths[index])
        tile, group = (plan.tile.vectors, plan.lanes), 1 if plan.dot is None else plan.dot.group
        pack(s, panel, column, summed, tile, plan.is_transposed, plan.pack is Pack.ROOT and plan.parallel, group)
        if plan.pack is Pack.GIVEN:
            s.apply_step(PreTransformed(s[panel].id))

    def _depth(self, operand: Operand, index: int) -> int:
        """The innermost summed axis that moves an index of an operand; -1 if none does."""
        form = operand.forms[index] or {}
        return max((place for place, axis in enumerate(self.contraction.summed) if axis in form), default=-1)

    def _accumulate(self, tile: Tensor, spatial: list[int], rows: Factor) -> IterVar | None:
        """Each step of the sum updates a whole tile of so many rows; returns the loop over blocks of the sum if it is cut in some."""
        stage, op, plan = self.s[tile], compute_of(self.s, tile), self.plan
        own = dict(zip(spatial, op.axis, strict=True))
        column = own.pop(self.contraction.column)
        first = len(self.contraction.op.axis)
        *steps, step = (op.reduce_axis[axis - first] for axis in self.contraction.summed)
        blocks: IterVar | None = None
        if plan.blocks is None:
            stage.storage_align(next(reversed(own.values())), plan.lanes)  # each row starts a vector, so that vectors are registers
            vector, lane = stage.split(column, factor=plan.lanes)
        else:
            vector, lane = own.pop(plan.blocks), column
        if not plan.is_whole:
            blocks, step = stage.split(step, factor=plan.block if plan.dot is not None else decided(stage, step, plan.block, parts))
            tiles, row = stage.split(own.pop(self.contraction.row), factor=rows, balanced=True)
            steps, others = [blocks, *own.values(), tiles], [row]
        else:
            others = list(own.values())
        if plan.dot is None:
            stage.reorder(*steps, step, *others, vector, lane)
            stage.vectorize(lane)
        elif plan.blocks is not None:
            stage.reorder(*steps, *others, vector, lane, step)
            stage.tensorize(lane, TensorIntrin.get(plan.dot.intrinsic))
        else:
            groups, within = stage.split(step, factor=plan.dot.group)
            stage.reorder(*steps, groups, *others, vector, lane, within)
            stage.tensorize(lane, TensorIntrin.get(plan.dot.intrinsic))
        for axis in (*others, vector):
            stage.unroll(axis)
        return blocks


def pack(
    s: Schedule, copy: Tensor, column: int, summed: Sequence[int], tile: tuple[int, int], transposed: bool, parallel: bool, group: int = 1
) -> None:
    """Bring a copy into panels: summed axes outside, then the vectors of a panel, then the lanes of one, whatever the order in memory was.

    Args:
        s: the schedule.
        copy: of an operand.
        column: which of its indices is that of columns.
        summed: those that are summed over, outermost first.
        tile: vectors of a panel, and lanes of a vector.
        transposed: columns are no neighbours in memory.
        parallel: on all cores; a panel that is packed inside the loop of panels runs in its thread already.
        group: neighbours of the last summed axis that an instruction sums, innermost in the panel.
    """
    vectors, lanes = tile
    others = [index for index in range(len(copy.shape)) if index != column and index not in summed]

    def layout(*i: Var) -> list[PrimExpr]:
        steps, within = [i[n] for n in summed], [i[column] // lanes % vectors, i[column] % lanes]
        inner = [*steps, *within] if group == 1 else [*steps[:-1], steps[-1] // group, *within, steps[-1] % group]
        return [*(i[n] for n in others), i[column] // (vectors * lanes), *inner]

    stage, axes = s[copy], s[copy].transform_layout(layout, pad_value=zero_of(copy))
    panels, steps = axes[: len(others) + 1], axes[len(others) + 1 :]
    *outer, vector, lane = steps if group == 1 else steps[:-1]
    if group > 1:  # neighbours along the summed axis: the loads of 16 groups are rows that are zipped together
        stage.unroll(lane)
        lane = steps[-1]
    elif outer and list(summed) == sorted(summed):  # a copy runs through them without caring which is which
        outer = [stage.fuse(*outer)]
    if transposed and group == 1 and outer:  # as many steps as lanes make a block that is transposed in registers
        blocks, step = stage.split(outer.pop(), factor=lanes)
        stage.reorder(*panels, *outer, vector, blocks, step, lane)
        stage.unroll(step)
    stage.vectorize(lane)
    if parallel:
        stage.parallel(stage.fuse(*panels))


def accumulators_of(s: Schedule, tensor: Tensor, result: Tensor, scope: str) -> Tensor:
    """The stage that sums up a tile: that of the sum itself, where another stage makes the result of it, else a copy of it."""
    if tensor.op is result.op:
        copy: Tensor = s.cache_write(tensor, scope)
        return copy
    s[tensor].set_scope(scope)
    return tensor


def tile_loops(stage: Stage, around: Sequence[IterVar], rows: Sequence[IterVar], vector: IterVar, lane: IterVar, last: bool) -> None:
    """The loops over a tile of the result: vectors along what is contiguous, columns if they are its last axis, else the last rows."""
    *outer, inner = [*rows, vector, lane] if last else [vector, *rows[:-1], lane, rows[-1]]
    stage.reorder(*around, *outer, inner)
    for axis in () if last else outer:
        stage.unroll(axis)
    stage.vectorize(inner)


def joined(i: Sequence[Var], axes: Sequence[int], sizes: Sequence[int]) -> PrimExpr:
    """The index of an element along several axes that are one."""
    whole: PrimExpr = i[axes[0]]
    for axis in axes[1:]:
        whole = whole * sizes[axis] + i[axis]
    return whole


def in_tasks(s: Schedule, output: Tensor, tasks: Sequence[IterVar], parallel: bool, copy: Tensor | None) -> IterVar:
    """The loop over all tasks of a result; an operand that was copied is copied before them, row by row."""
    stage = s[output]
    place = stage.fuse(*tasks)
    if copy is not None:
        # The one iteration of this loop reads all that is read, and nothing between: what a copy at the root would have.
        once, place = stage.split(place, nparts=1)
        *rows, column = s[copy].op.axis
        s[copy].compute_at(stage, once)
        if parallel:
            s[copy].parallel(s[copy].fuse(*(rows[:-1] or rows)))
        s[copy].vectorize(column)
    if parallel:
        stage.parallel(place)
    return place


def zero_of(tensor: Tensor) -> int | float:
    """What a tensor is padded with: zero, as a number of its kind."""
    return 0.0 if parse_dtype(tensor.dtype).is_float else 0
