"""The steps of a plan: register tiles over panels of columns, of contractions and of convolutions.

    parallel over batches, chunks of rows, panels of columns or several of them:
        pack the panels: summed axes x vectors x lanes, the last vector padded with zeros
        for tiles of rows, and for the panels of a task:
            accumulators in registers = sum over the summed axes of broadcasts times vectors
            result = what follows the contraction, element by element, on the tile

Where the axis in the lanes isn't the last one, stores read the tile by columns, which lowering makes a transpose in registers. Rows of a
convolution are pixels, of one axis or several; tiles at its border have bodies of their own, without the terms that padding makes zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import gcd, prod

from ..schedule.steps import PreTransformed
from ..schedule.te_schedule import Schedule, Stage
from ..schedule.tree import Inline, loads_of
from ..target import Target
from ..te.tensor import Tensor
from ..te.tensor_intrin import TensorIntrin
from ..tir.dtype import parse_dtype
from ..tir.expr import IterVar, PrimExpr, Var
from .contraction_plan import Order, Pack, Plan
from .contractions import Operand, inline_borders
from .conv_tile import FEW_SUMMED, has_free_register
from .convolutions import Convolution
from .dot_products import DotProduct, has_whole_groups
from .nests import accumulators_of, as_tasks, in_vectors
from .sizes import Factor, balanced_rows, decided, parts, several
from .stages import compute_of, extents_of


class Tiles:
    """The steps of a plan: a contraction, and the stage that holds its result, which may be itself.

    Args:
        s: the schedule.
        result: what is computed in tiles.
        tensor: the contraction.
        plan: what was decided.
        target: that it is for.
        copy: of the data of a convolution, in place of it.
    """

    def __init__(self, s: Schedule, result: Tensor, tensor: Tensor, plan: Plan, target: Target, copy: Tensor | None = None) -> None:
        self.s, self.result, self.tensor, self.plan, self.target, self.copy = s, result, tensor, plan, target, copy
        self.contraction = plan.contraction
        self.windows = self.contraction if isinstance(self.contraction, Convolution) else None
        phases = () if self.windows is None else zip(self.windows.rows, self.windows.phases, strict=True)
        self.phases = {pixel: phase for pixel, phase in phases if phase > 1}

    def build(self) -> None:
        """Schedule everything."""
        s, plan = self.s, self.plan
        # The order matters: each step below sees the definitions and layouts that the ones before have made.
        tile = accumulators_of(s, self.tensor, self.result, "global" if plan.block else "local")
        data = None if self.windows is None else self._without_border(tile, self.windows)
        # Before the accumulators: what pads their last vector then has columns of the panel to be computed from.
        panel = None if plan.pack is Pack.NONE else self._packed(tile)
        if plan.dot is not None and (plan.widened or not has_whole_groups(self.contraction, plan.dot.group)):
            self._copy_left(tile, plan.dot)
        spatial = self._columns_last(tile)
        place, innermost, rows, width = self._loops_of_result()
        # With the sum cut in blocks each result is added to once for each, so the sums of all rows are kept meanwhile.
        s[tile].compute_at(s[self.result], place if plan.block else innermost)
        blocks = self._accumulate(tile, spatial, rows, width)
        if panel is not None and plan.pack is Pack.PANEL:
            s[panel].compute_at(*((s[self.result], place) if blocks is None else (s[tile], blocks)))
        if plan.prefetched and data is not None and not isinstance(s.tree[s[data].id].attach, Inline):
            s[self.result].prefetch(data, place, 1)

    def _without_border(self, tile: Tensor, windows: Convolution) -> Tensor:
        """Leave out the terms that a border or a phase makes zero; returns what is read instead of the data with its border."""
        s, data = self.s, windows.data.tensor if self.copy is None else self.copy
        # To leave terms out is the same as to add their zeros unless a weight is infinite or NaN, which `assume_finite` rules out.
        if self.plan.peeled:
            s[data].compute_inline()
            data = s[data].op.input_tensors[0]
            s[tile].skip_padding(assume_finite=True)
        elif windows.is_transposed:
            s[tile].skip_padding()
        return data

    def _columns_last(self, tile: Tensor) -> list[int]:
        """Bring accumulators into an order in which vectors lie together; returns the axis that each of theirs begins with.

        Rows that are one loop are one axis; results of a phase, which have the same taps, lie side by side. Panels of
        windows, whose vectors are no decision, are whole ones, padded, so that no step of the sum masks lanes.
        """
        plan, contraction, groups = self.plan, self.contraction, {group[0]: group for group in self.plan.row_groups}
        axes, columns = range(len(contraction.op.axis)), contraction.columns
        joint = {*columns, *(axis for group in groups.values() for axis in group[1:])}
        spatial = [axis for axis in axes if axis not in joint]

        def layout(*i: Var) -> list[PrimExpr]:
            rows = (joined(i, groups.get(axis, (axis,)), contraction.sizes) for axis in spatial)
            parts = [row // self.phases.get(axis, 1) for axis, row in zip(spatial, rows, strict=True)]
            column = joined(i, columns, contraction.sizes)
            whole = [column // plan.width, *(i[pixel] % phase for pixel, phase in self.phases.items()), *parts]
            return [*whole, column % plan.width // plan.lanes, column % plan.lanes] if self.windows is not None else [*parts, column]

        if self.windows is not None or [*spatial, contraction.column] != [*axes]:
            self.s[tile].transform_layout(layout)
        return [*([-1] if self.windows is not None else []), *self.phases, *spatial]

    def _copied(self, operand: Operand, tile: Tensor) -> Tensor:
        """The stage that copies an operand: what was to be inlined does it itself, of anything else a copy is made."""
        node = self.s.tree[self.s[operand.tensor].id]
        reads = [load for load in loads_of(compute_of(self.s, tile)) if load.producer == operand.tensor]
        if len(reads) > 1:  # C[i, j] += A[i, k] * A[j, k]: of both reads the operand's own; the other one comes later, or not at all
            own = [load for load in loads_of(self.contraction.op) if load.producer == operand.tensor].index(operand.load)
            return self.s.cache_read(operand.tensor, "global", [tile], read=own)
        # An inlined transpose becomes the packing itself: elements are moved once, from where they lie to the panel.
        if isinstance(node.attach, Inline) and len(self.s.tree.consumers(node)) == 1:
            self.s[operand.tensor].compute_root()
            return operand.tensor
        return self.s.cache_read(operand.tensor, "global", [tile])

    def _copied_as_words(self, operand: Operand, tile: Tensor) -> Tensor:
        """A copy of an operand in words; what only puts a border around it is part of it."""
        copy = self.s.cache_read(operand.tensor, "global", [tile], "int16")
        inline_borders(self.s, self.s.tree[self.s[copy].id])
        return copy

    def _copy_left(self, tile: Tensor, dot: DotProduct) -> None:
        """Copy the left operand as words, or with the last group of each row padded with zeros, so that every group is a whole one."""
        s, plan, (left,), group = self.s, self.plan, self.contraction.left, dot.group
        copy = self._copied_as_words(left, tile) if plan.widened else self._copied(left, tile)
        stage, axes = s[copy], list(s[copy].op.axis)
        if not has_whole_groups(self.contraction, group):
            last = left.index_of(self.contraction.summed[-1])
            assert last is not None
            axes = stage.transform_layout(
                lambda *i: [*i[:last], *i[last + 1 :], i[last] // group, i[last] % group], pad_value=zero_of(copy)
            )
            axes = [*axes[:-2], stage.fuse(*axes[-2:])]
        *others, last_axis = axes
        _, lane = stage.split(last_axis, factor=plan.lanes * group)
        stage.vectorize(lane)
        if plan.parallel and others:
            stage.parallel(stage.fuse(*others))

    def _loops_of_result(self) -> tuple[IterVar, IterVar, Factor, Factor]:
        """The loops of the result; returns those at which a panel and a tile are computed, and the rows and vectors of a tile."""
        plan, contraction, stage, op = self.plan, self.contraction, self.s[self.result], compute_of(self.s, self.result)
        batches, groups = [op.axis[axis] for axis in contraction.batch], plan.row_groups
        rows = [stage.fuse(*(op.axis[axis] for axis in group)) for group in groups]
        column, phases, chunks = stage.fuse(*(op.axis[axis] for axis in contraction.columns)), list[IterVar](), list[IterVar]()
        for place, (pixel, *_) in enumerate(groups):
            if pixel in self.phases:
                rows[place], phase = stage.split(rows[place], factor=self.phases[pixel])
                phases.append(phase)
        if plan.tile.chunks > 1:
            # `sizes` are those of the last axes of rows, and the first of these has the chunks
            cut = len(groups) - len(plan.tile.sizes)
            chunk, rows[cut] = stage.split(rows[cut], nparts=plan.tile.chunks, balanced=True)
            chunks.append(chunk)
        vectors, lane = stage.split(column, factor=plan.lanes) if plan.blocks is None else (op.axis[plan.blocks], column)
        # A panel's layout is made of the tile's vectors; without one any number will do.
        is_open = plan.pack is Pack.NONE and self.windows is None
        width: Factor = decided(stage, vectors, plan.tile.vectors, several) if is_open else plan.tile.vectors
        # Panels in memory can't be padded: tiles of two sizes instead of a guard in the hot loop.
        panel, vector = stage.split(vectors, factor=width, balanced=plan.blocks is not None)
        tiles, each, size = self._tiles_of_rows(stage, rows)
        packed, innermost = panel, tiles[-1]
        # a task packs several panels, so that a tile of rows is fetched once for all of them
        if plan.pack is Pack.PANEL and plan.order is Order.CHUNKS and not plan.block:
            packed, innermost = stage.split(panel, factor=decided(stage, panel, 1, self._panels_together))
            tiles.append(innermost)
        elif plan.parts:
            packed, innermost = stage.split(panel, nparts=plan.parts)
            tiles.append(innermost)
        tasks, inside = {
            Order.CHUNKS: ([*batches, *chunks, packed], phases),
            Order.BATCHES: ([*batches, packed, *chunks], phases),
            # All batches meet the taps of a phase before the next one's: fewer weights at a time.
            Order.PANELS: ([packed, *chunks], [*phases, *batches]),
            Order.ROWS: ([*batches, *chunks], phases),
        }[plan.order]
        if plan.order is Order.ROWS:  # the panels go innermost: a tile of pixels stays in cache while all columns are computed from it
            innermost = panel
            tiles.append(panel)
            if not chunks:  # pixels of an iteration are fetched by the one before, so it has all tiles of a row; else each is a task
                cut = len(groups) if self.windows is None else 1
                tasks, tiles = [*tasks, *tiles[:cut]], tiles[cut:]
        if contraction.column in contraction.opened and batches:
            # Taken apart, one loop over batches and an open number of panels is a quotient by it, in each lane at the end of a row.
            tasks, tiles = batches, [packed, *tiles]
        # else stores read the tile by columns; a tile of one row has nothing to transpose
        last = contraction.is_column_last or plan.blocks is not None or plan.tile.rows == 1
        tile_loops(stage, [*tasks, *inside, *tiles], each, vector, lane, last)
        for axis in (*each, vector) if last and self.windows is not None else ():
            stage.unroll(axis)
        return in_tasks(self.s, self.result, tasks, plan.parallel, self.copy), innermost, size, width

    def _tiles_of_rows(self, stage: Stage, rows: Sequence[IterVar]) -> tuple[list[IterVar], list[IterVar], Factor]:
        """Cut rows into tiles: the loops over tiles, those over the rows of one, and how many of the last axis a tile has."""
        plan, tiles, each = self.plan, list[IterVar](), list[IterVar]()
        size: Factor
        wanted = (*[1] * (len(rows) - len(plan.tile.sizes)), *plan.tile.sizes)
        for axis, count in zip(rows[:-1], wanted, strict=False):
            if count > 1:
                size = decided(stage, axis, count, balanced_rows(self.target))
                axis, one = stage.split(axis, factor=size, balanced=not self.contraction.opened)
                each.append(one)
            tiles.append(axis)
        last, size = rows[-1], wanted[-1]
        if not plan.written:
            size = decided(stage, last, wanted[-1], balanced_rows(self.target))
        around, one = self._cut_into_tiles(stage, last, size)
        return [*tiles, *around], [*each, one], size

    def _cut_into_tiles(self, stage: Stage, last: IterVar, size: Factor) -> tuple[list[IterVar], IterVar]:
        """Cut the last axis of rows, or those that are one with it, into tiles of so many: the loops over tiles, and that over rows."""
        plan, contraction, around = self.plan, self.contraction, list[IterVar]()
        if plan.written and plan.written < contraction.size(contraction.rows[-2]):
            some, last = stage.split(last, factor=plan.written * contraction.size(contraction.rows[-1]))
            around.append(some)
        # of an open extent the rows past whole tiles are one that is guarded, in a loop of its own
        many, one = stage.split(last, factor=size, balanced=not contraction.opened)
        # of tiles that are written out those of the first and the last rows meet the border, which may stand beside phases in a condition
        if (plan.peeled or self.phases) and (around or not plan.written):
            stage.pragma((around or [many])[0], "loop_partition_hint")
        if plan.written:
            stage.unroll(many)
        return [*around, many], one

    def _panels_together(self, _: int) -> Iterable[int]:
        """Numbers of panels that the second cache holds: a tile of rows is brought from further away once for all of them."""
        plan, right = self.plan, self.contraction.right
        panel = self.contraction.size(*self.contraction.summed) * plan.width * right.bytes
        return [count for count in several(0) if count * panel <= self.target.l2_cache_size_bytes]

    def _packed(self, tile: Tensor) -> Tensor:
        """Bring a copy of the right operand into panels: by this program in its place, or by the caller."""
        s, plan, right = self.s, self.plan, self.contraction.right
        panel, columns = self._copied(right, tile), self.contraction.places
        depths = [self._depth(right, index) for index in range(len(right.forms))]
        summed = [index for index in range(len(depths)) if depths[index] >= 0 and index not in columns]
        # In the order of the loops, so that the sum runs through a panel: in W[o, k, r, s] a step of one tap would go on nine vectors
        # further (3x3 of 576 channels on 15 x 15, 5.3 -> 4.1 ms, two cores of Zen 3). Otherwise windows are runs as they lie.
        windows = self.windows
        if windows is None or (plan.is_transposed and windows.size(*windows.channels) > FEW_SUMMED):
            summed.sort(key=lambda index: depths[index])
        group, on_all_cores = 1 if plan.dot is None else plan.dot.group, plan.pack is Pack.ROOT and plan.parallel
        # Columns with gaps between them, of every other element, are read as they lie: 300 x 412 x 517 of complex numbers that lie in
        # pairs 9.6 -> 5.4 ms (two cores of Zen 3).
        nearest = min((right.step(axis) for axis in self.contraction.summed if right.step(axis)), default=0)
        transposed = plan.is_transposed and nearest < right.step(self.contraction.column)
        pack(s, panel, columns, summed, (plan.tile.vectors, plan.lanes), transposed, on_all_cores, group)
        if plan.pack is Pack.GIVEN:
            s.apply_step(PreTransformed(s[panel].id))
        return panel

    def _depth(self, operand: Operand, index: int) -> int:
        """The innermost loop of the sum that moves an index of an operand; -1 if none does."""
        return max((place for place, axis in enumerate(self._steps()) if axis in operand.moved[index]), default=-1)

    def _steps(self) -> list[int]:
        """The summed axes in the order of their loops."""
        inside, _ = self._written_steps()
        return [*(axis for axis in self.contraction.summed if axis not in inside), *inside]

    def _accumulate(self, tile: Tensor, spatial: list[int], rows: Factor, width: Factor) -> IterVar | None:
        """Each step of the sum updates a whole tile of so many rows and vectors; returns the loop over blocks of the sum, if any."""
        stage, op, plan, contraction = self.s[tile], compute_of(self.s, tile), self.plan, self.contraction
        *others, column = op.axis
        if self.windows is not None:
            *others, vector, lane = op.axis
        steps = {axis: op.reduce_axis[axis - len(contraction.op.axis)] for axis in contraction.summed}
        inside, unrolled = self._written_steps()
        *outer, step = (steps[axis] for axis in self._steps())
        blocks: IterVar | None = None
        if plan.blocks is not None:
            vector, lane = others.pop(spatial.index(plan.blocks)), column
        elif self.windows is None:
            stage.storage_align(others[-1], plan.lanes)  # each row starts a vector, so that vectors are registers
            vector, lane = stage.split(column, factor=plan.lanes)
        if plan.block:
            blocks, step = stage.split(step, factor=plan.block if plan.dot is not None else decided(stage, step, plan.block, parts))
            tiles, row = self._cut_into_tiles(stage, others.pop(spatial.index(plan.row_groups[-1][0])), rows)
            outer, others = [blocks, *others, *tiles, *outer], [row]
        if plan.parts:  # tiles of rows meet the rows of a panel's block while these are near
            panel, vector = stage.split(vector, factor=width)
            outer.insert(1, panel)
        if plan.dot is None:
            stage.reorder(*outer, step, *others, vector, lane)
            stage.vectorize(lane)
        elif plan.blocks is not None:
            stage.reorder(*outer, *others, vector, lane, step)
            stage.tensorize(lane, TensorIntrin.get(plan.dot.words if plan.widened else plan.dot.intrinsic))
        else:
            groups, within = stage.split(step, factor=plan.dot.group)
            stage.reorder(*outer, groups, *others, vector, lane, within)
            if run := self._taps_in_a_run(plan.dot):
                stage.fuse(*outer[-run:], groups)
            elif contraction.size(contraction.summed[-1]) <= FEW_SUMMED:
                stage.unroll(groups)
            stage.tensorize(lane, TensorIntrin.get(plan.dot.words if plan.widened else plan.dot.intrinsic))
        # Constant indices after unrolling are what lets lowering keep the tile in registers.
        for axis in (*(steps[one] for one in unrolled), *others, vector):
            stage.unroll(axis)
        for one in inside:  # or pixels that several taps read would stay in registers, of which there are too few
            stage.pragma(steps[one], "no_load_merge")
        return blocks

    def _taps_in_a_run(self, dot: DotProduct) -> int:
        """How many of the summed axes before the last one go on in memory where that ends, in the left operand and so in panels.

        Example:
            A row of a window with all channels of its pixels, D[y + r, 2 * x + s, c]: (s, c) is one loop of 3 * 8 pairs of 16 channels.
        """
        *before, last = self.contraction.summed
        left, extent, found = self.contraction.left[0], self.contraction.size(last), 0
        packed = self.plan.pack is not Pack.NONE and not self.plan.block
        # Steps past the end of a row, which is padded, are told by the axis that is split alone.
        for axis in reversed(before if packed and extent % dot.group == 0 else []):
            if left.step(axis) != extent * left.step(last):
                break
            extent, found = extent * self.contraction.size(axis), found + 1
        return found

    def _written_steps(self) -> tuple[Sequence[int], Sequence[int]]:
        """The summed axes that are innermost, and those that are written out: taps, and channels where a loop over them costs more."""
        plan, windows = self.plan, self.windows
        if windows is None:
            return (), ()
        inside = windows.taps_of(windows.rows[-1]) if plan.taps_inside else ()
        taps = [tap for row in plan.row_groups[-1] for tap in windows.taps_of(row)] if plan.written else inside
        few = windows.size(*windows.channels) <= FEW_SUMMED and has_free_register(plan.tile, self.target)
        return inside, [*taps, *(windows.channels if few else ())]


def pack(
    s: Schedule,
    copy: Tensor,
    columns: Sequence[int],
    summed: Sequence[int],
    tile: tuple[int, int],
    transposed: bool,
    parallel: bool,
    group: int = 1,
) -> None:
    """Bring a copy into panels: summed axes outside, then the vectors of a panel, then the lanes of one, whatever the order in memory was.

    Args:
        s: the schedule.
        copy: of an operand.
        columns: which of its indices are that of columns: several where these are one in memory.
        summed: those that are summed over, outermost first.
        tile: vectors of a panel, and lanes of a vector.
        transposed: columns are no neighbours in memory.
        parallel: on all cores; a panel that is packed inside the loop of panels runs in its thread already.
        group: neighbours of the last summed axis that an instruction sums, innermost in the panel.
    """
    vectors, lanes = tile
    others = [index for index in range(len(copy.shape)) if index not in columns and index not in summed]
    # Those of columns are constants, and what is beside them needn't be: batches of any number.
    extents = [extents_of([axis])[0] if index in columns else 0 for index, axis in enumerate(copy.op.axis)]

    def layout(*i: Var) -> list[PrimExpr]:
        column = joined(i, columns, extents)
        steps, within = [i[n] for n in summed], [column // lanes % vectors, column % lanes]
        inner = [*steps, *within] if group == 1 else [*steps[:-1], steps[-1] // group, *within, steps[-1] % group]
        return [*(i[n] for n in others), column // (vectors * lanes), *inner]

    stage, axes = s[copy], s[copy].transform_layout(layout, pad_value=zero_of(copy))
    panels, steps = axes[: len(others) + 1], axes[len(others) + 1 :]
    *outer, vector, lane = steps if group == 1 else steps[:-1]
    if group > 1:  # neighbours along the summed axis: the loads of 16 groups are rows that are zipped together
        stage.unroll(lane)
        lane = steps[-1]
    elif outer and list(summed) == sorted(summed):  # a copy runs through them without caring which is which
        outer = [stage.fuse(*outer)]
    # Read along memory, written along lanes: without the block each lane is a load of a line of its own.
    if transposed and group == 1 and len(outer) > 1 and columns[-1] < min(summed):
        _runs_through(stage, panels, [outer[summed.index(n)] for n in sorted(summed)], vector, lane, lanes)
    elif transposed and group == 1 and outer:  # as many steps as lanes make a block that is transposed in registers
        blocks, step = stage.split(outer.pop(), factor=lanes)
        stage.reorder(*panels, *outer, vector, blocks, step, lane)
        stage.unroll(step)
    stage.vectorize(lane)
    if parallel:
        stage.parallel(stage.fuse(*panels))


def _runs_through(stage: Stage, panels: Sequence[IterVar], steps: Sequence[IterVar], vector: IterVar, lane: IterVar, lanes: int) -> None:
    """A copy that reads weights as they lie and writes them in the order of the sum.

    Example:
        W[o, k, r, s] to [o // 16, r, k, s, o % 16] by 8 lanes: 8 channels k and their 3 x 3 taps are a run of 9 blocks.
    """
    channels, *taps = steps
    few = lanes // gcd(lanes, prod(extents_of(taps)))
    some, channel = stage.split(channels, factor=few)
    stage.reorder(*panels, some, vector, channel, *taps, lane)
    blocks, step = stage.split(stage.fuse(channel, *taps), factor=lanes)
    stage.unroll(blocks)
    stage.unroll(step)


def tile_loops(stage: Stage, around: Sequence[IterVar], rows: Sequence[IterVar], vector: IterVar, lane: IterVar, last: bool) -> None:
    """The loops over a tile of the result: vectors along what is contiguous, columns if they are its last axis, else the last rows."""
    *outer, inner = [*rows, vector, lane] if last else [vector, *rows[:-1], lane, rows[-1]]
    # Written out by columns, so that the tile stays in registers and is transposed there.
    in_vectors(stage, [*around, *(outer if last else ())], () if last else outer, inner)


def joined(i: Sequence[Var], axes: Sequence[int], sizes: Sequence[int]) -> PrimExpr:
    """The index of an element along several axes that are one."""
    whole: PrimExpr = i[axes[0]]
    for axis in axes[1:]:
        whole = whole * sizes[axis] + i[axis]
    return whole


def in_tasks(s: Schedule, output: Tensor, tasks: Sequence[IterVar], parallel: bool, copy: Tensor | None) -> IterVar:
    """The loop over all tasks of a result; an operand that was copied is copied before them, row by row."""
    stage = s[output]
    if copy is None:
        return as_tasks(stage, tasks, parallel)
    # The one iteration of this loop reads all that is read, and nothing between: what a copy at the root would have.
    once, place = stage.split(stage.fuse(*tasks), nparts=1)
    *rows, column = s[copy].op.axis
    s[copy].compute_at(stage, once)
    if parallel:
        s[copy].parallel(s[copy].fuse(*(rows[:-1] or rows)))
    s[copy].vectorize(column)
    return as_tasks(stage, [place], parallel)


def zero_of(tensor: Tensor) -> int | float:
    """What a tensor is padded with: zero, as a number of its kind."""
    return 0.0 if parse_dtype(tensor.dtype).is_float else 0
