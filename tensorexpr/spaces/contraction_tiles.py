"""Schedules of contractions: register tiles over panels of columns, packed by the thread that uses them.

    parallel over batch, chunks of rows, panels of columns or several of them:
        pack the panels: summed axes x vectors x lanes, the last vector padded with zeros
        for tiles of rows, and for the panels of a task:
            accumulators in registers = sum over the summed axes of broadcasts times vectors
            result = what follows the contraction, element by element, on the tile

Where the axis in the lanes isn't the last one, stores read the tile by columns, which lowering makes a transpose in registers.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..schedule.steps import PreTransformed
from ..schedule.te_schedule import Schedule, Stage
from ..schedule.tree import Inline, StageNode
from ..target import Target
from ..te.operation import ComputeOp
from ..te.tensor import Tensor
from ..te.tensor_intrin import TensorIntrin
from ..tir.dtype import parse_dtype
from ..tir.expr import IterVar, PrimExpr, Var
from .contraction_plan import Pack, Plan, contraction_plans
from .contractions import Contraction, Operand, contraction_of, contractions_of, inline_moves
from .dot_products import has_whole_groups
from .sizes import Factor, balanced_rows, decided, parts, several
from .stages import is_untouched, result_of


def schedule_contractions(s: Schedule, target: Target, alternative: int = 0, by_dots: bool = False) -> None:
    """Schedule all contractions, each with the stage that makes the result of it element by element.

    Args:
        by_dots: only those of small numbers that the target has an instruction for, convolutions too: nothing else comes near it.
    """
    for stage in list(s.tree.in_order()):
        if is_untouched(s.tree[stage.id]) and planned(s, stage, target, by_dots):
            inline_moves(s, stage)
            if plans := planned(s, stage, target, by_dots):
                own, result = stage.origin.output(0), result_of(s, stage)
                result = result if is_untouched(s.tree[s[result].id]) else own
                Tiles(s, result, own, plans[min(alternative, len(plans) - 1)], target).build()


def planned(s: Schedule, stage: StageNode, target: Target, by_dots: bool) -> list[Plan]:
    """The plans for a stage with its last axis in the lanes or, for dot products, the one with which an instruction sums most."""
    found = contractions_of(s.tree, stage) if by_dots else [contraction_of(s.tree, stage)]
    plans = [contraction_plans(one, stage.origin.output(0).dtype, target) for one in found if isinstance(one, Contraction)]
    groups = [(plan.dot.group if plan.dot is not None else 0, some) for some in plans for plan in some[:1]]
    group, chosen = max(groups, key=lambda one: one[0], default=(0, []))
    return chosen if group or not by_dots else []


class Tiles:
    """The steps of a plan: a contraction, and the stage that holds its result, which may be itself."""

    def __init__(self, s: Schedule, result: Tensor, tensor: Tensor, plan: Plan, target: Target) -> None:
        self.s, self.result, self.tensor, self.plan, self.target = s, result, tensor, plan, target
        self.contraction = plan.contraction

    def build(self) -> None:
        """Schedule everything."""
        s, plan, contraction = self.s, self.plan, self.contraction
        scope = "local" if plan.is_whole else "global"
        tile = s.cache_write(self.tensor, scope) if self.tensor.op is self.result.op else self.tensor
        if tile is self.tensor:
            s[tile].set_scope(scope)
        panel = None if plan.pack is Pack.NONE else self._copied(contraction.right, tile)
        if plan.dot is not None and not has_whole_groups(contraction, plan.dot.group):
            self._group_left(tile)
        # With another axis in the lanes than the last one its vectors lie together all the same.
        spatial = [*(axis for axis in range(len(contraction.op.axis)) if axis != contraction.column), contraction.column]
        if spatial != sorted(spatial):
            s[tile].transform_layout(lambda *i: [i[axis] for axis in spatial])
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
        plan, contraction, stage, op = self.plan, self.contraction, self.s[self.result], self.result.op
        assert isinstance(op, ComputeOp)
        outer, repeated = [op.axis[axis] for axis in contraction.batch], [op.axis[axis] for axis in contraction.rows[:-1]]
        row, column = op.axis[contraction.row], op.axis[contraction.column]
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
        if contraction.column == len(op.axis) - 1 or plan.blocks is not None:
            stage.reorder(*around, each, vector, lane)
            stage.vectorize(lane)
        else:
            stage.reorder(*around, vector, lane, each)
            stage.unroll(vector)
            stage.unroll(lane)
            stage.vectorize(each)
        if plan.rows_outside:
            self._in_parallel(stage, [*outer, *repeated], tiles, panel)
            return panel, panel, rows
        place = stage.fuse(*outer, packed)
        if plan.parallel:
            stage.parallel(place)
        return place, innermost, rows

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
        """Panel by panel: summed axes outside, then its vectors, then the lanes of one, whatever the order in memory was."""
        s, plan, right, lanes = self.s, self.plan, self.contraction.right, self.plan.lanes
        width, group = plan.tile.vectors * lanes, 1 if plan.dot is None else plan.dot.group
        column = right.index_of(self.contraction.column)
        assert column is not None
        depths = [self._depth(right, index) for index in range(len(right.forms))]
        summed = sorted((index for index in range(len(depths)) if depths[index] >= 0), key=lambda index: depths[index])
        others = [index for index in range(len(depths)) if index != column and index not in summed]

        def layout(*i: Var) -> list[PrimExpr]:
            *outer, last = (i[n] for n in summed)
            vectors = [i[column] // lanes % plan.tile.vectors, i[column] % lanes]
            inner = [*outer, last, *vectors] if group == 1 else [*outer, last // group, *vectors, last % group]
            return [*(i[n] for n in others), i[column] // width, *inner]

        axes = s[panel].transform_layout(layout, pad_value=zero_of(panel))
        first, steps = axes[: len(others) + 1], axes[len(others) + 1 :]
        if plan.dot is not None:  # neighbours along the summed axis: the loads of 16 groups are rows that are zipped together
            *_, lane, within = steps
            s[panel].unroll(lane)
            s[panel].vectorize(within)
        else:
            *outer, step, vector, lane = steps
            if plan.is_transposed:  # as many steps as lanes make a block that is transposed in registers
                if summed == sorted(summed):
                    outer, step = [], s[panel].fuse(*outer, step)
                blocks, step = s[panel].split(step, factor=lanes)
                s[panel].reorder(*first, *outer, vector, blocks, step, lane)
                s[panel].unroll(step)
            s[panel].vectorize(lane)
        if plan.pack is Pack.GIVEN:
            s.apply_step(PreTransformed(s[panel].id))
        elif plan.pack is Pack.ROOT and plan.parallel:
            s[panel].parallel(s[panel].fuse(*first))

    def _depth(self, operand: Operand, index: int) -> int:
        """The innermost summed axis that moves an index of an operand; -1 if none does."""
        form = operand.forms[index] or {}
        return max((place for place, axis in enumerate(self.contraction.summed) if axis in form), default=-1)

    def _accumulate(self, tile: Tensor, spatial: list[int], rows: Factor) -> IterVar | None:
        """Each step of the sum updates a whole tile of so many rows; returns the loop over blocks of the sum if it is cut in some."""
        stage, op, plan = self.s[tile], self.s[tile].op, self.plan
        assert isinstance(op, ComputeOp)
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


def zero_of(tensor: Tensor) -> int | float:
    """What a tensor is padded with: zero, as a number of its kind."""
    return 0.0 if parse_dtype(tensor.dtype).is_float else 0
