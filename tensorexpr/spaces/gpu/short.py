"""Schedules of products of a few rows, a matrix by a vector above all: memory bounds them, so that the matrix is read once, by 16 bytes.

Where both operands lie along the sum:          C[i, j] = sum over k of A[i, k] * B[j, k]
    some columns for each row of threads, whose threads take vectors of neighbours along k in turn;
    a thread sums the products of all pairs of its vectors, and sums of all threads become one by exchanges within warps
Where the matrix lies along the results:        C[i, j] = sum over k of A[i, k] * B[k, j]
    a vector of columns for each thread along x, every n-th term for the n threads along y; sums of these meet in shared memory

Where these are too few blocks for a chip, blocks share the sums (`split_sum`).
"""

from __future__ import annotations

from math import prod

from ...dataclass import dataclass, replace
from ...errors import InternalError
from ...schedule.te_schedule import Schedule
from ...schedule.tree import Inline, ScheduleTree, StageNode
from ...target import Target
from ...te.contraction import recognise
from ...te.operation import ComputeOp
from ...te.tensor import Tensor
from ...te.thread_axis import thread_axis
from ...tir.expr import IterVar, Reduce
from ..access import element_bytes
from ..contractions import Operand, operands_of, taken
from ..stages import compute_of, constant_extents, tiled_result
from .block import WIDEST, Limits, limits_of, preferred_threads
from .split_sum import add_up, cut_sum, possible_parts
from .tile_plan import of_one_block

MOST_ROWS = 15
"""Rows from which on less than all of a tile of matrix units, or of threads, is used."""
# Sums of a thread: with its vectors they leave registers for eight blocks of a multiprocessor; across memory vectors of columns are many.
_SUMS = 16
_SUMS_ACROSS = 64
_COLUMNS = 4  # of a row of threads at most: so many vectors of the matrix are under way at once
_LEAST_COLUMNS = 32  # fewer are sums like others
# Terms of a thread from which on it is worth that more threads share those of a result.
_TURNS = 4
# Turns of a thread that take as long as a second kernel, four loads of them being under way.
_LONG = 32


@dataclass(frozen=True)
class ShortPlan:
    """A product of a few rows. Axes are numbers, the reduction's after the others.

    Args:
        op: the definition.
        sizes: the extents of all axes.
        matrix: the operand that most axes of results move.
        few: axes that don't move it, of so few results that a thread computes all of them.
        columns: the others that don't move the other operand.
        batch: axes that move both.
        width: elements of an access to the matrix.
        along_sum: the matrix lies along the sum.
        threads: that share the terms of a result.
        beside: threads beside each other along the columns: rows of threads, or vectors.
        each: columns of a thread.
        parts: of the last axis of the sum, which blocks of their own compute.
    """

    op: ComputeOp
    sizes: tuple[int, ...]
    matrix: Operand
    few: tuple[int, ...]
    columns: tuple[int, ...]
    batch: tuple[int, ...]
    width: int
    along_sum: bool
    threads: int
    beside: int
    each: int
    parts: int = 1

    @property
    def tile(self) -> int:
        """Columns of a block."""
        return self.beside * self.each


def short_plan(tree: ScheduleTree, stage: StageNode, target: Target, cut: bool = True) -> ShortPlan | None:
    """The plan of a stage that is a product of a few rows with a matrix whose elements are used once for each; `cut`, if blocks may share
    its sums."""
    op = stage.op
    if not isinstance(op, ComputeOp) or len(op.body) != 1 or not isinstance(op.body[0], Reduce) or op.body[0].init or not op.axis:
        return None
    sizes = constant_extents((*op.axis, *op.reduce_axis))
    operands = operands_of(tree, stage)
    if sizes is None or recognise(op.body[0]) is None or len(operands) != 2 or operands[0].tensor is operands[1].tensor:
        return None
    if not all(operand.memory is not None and operand.casts is not None for operand in operands):
        return None
    results, summed = range(len(op.axis)), range(len(op.axis), len(sizes))
    matrix = max(operands, key=lambda one: prod(sizes[axis] for axis in results if one.moves_with(axis)))
    other = next(one for one in operands if one is not matrix)
    batch = tuple(axis for axis in results if all(one.moves_with(axis) for one in operands))
    few = tuple(axis for axis in results if not matrix.moves_with(axis))
    columns = tuple(axis for axis in results if axis not in (*batch, *few))
    rows = prod(sizes[axis] for axis in few)
    if rows > MOST_ROWS or not columns or prod(sizes[axis] for axis in columns) < _LEAST_COLUMNS:
        return None
    if any(isinstance(tree.producer(one.load).attach, Inline) for one in operands) or not all(map(matrix.moves_with, summed)):
        return None
    # of a convolution windows read elements again, which tiles in shared memory keep
    if any(one.has_windows(axis) for one in (of_one_block(each, operands, len(op.axis)) for each in operands) for axis in (*columns, *few)):
        return None
    return _with_threads(op, tuple(sizes), (matrix, other), few, columns, batch, limits_of(target), cut)


def _with_threads(
    op: ComputeOp,
    sizes: tuple[int, ...],
    operands: tuple[Operand, Operand],
    few: tuple[int, ...],
    columns: tuple[int, ...],
    batch: tuple[int, ...],
    limits: Limits,
    cut: bool,
) -> ShortPlan | None:
    matrix, other = operands
    last, column = len(sizes) - 1, columns[-1]
    along_sum = matrix.lies_along(last) and other.lies_along(last)
    if not along_sum and not matrix.lies_along(column):
        return None
    width = WIDEST // matrix.bytes
    while width > 1 and sizes[last if along_sum else column] % width:
        width //= 2
    rows, results, terms = (prod(sizes[axis] for axis in axes) for axes in (few, columns, range(len(op.axis), len(sizes))))
    blocks_of = prod(sizes[axis] for axis in batch)
    if along_sum:
        each, beside, threads = _along_sum(sizes[column], rows, results, blocks_of, terms // width, limits)
    else:
        while width > 1 and width * rows > _SUMS_ACROSS:
            width //= 2
        each = width
        beside, threads = _across(results, terms, each, rows * each * element_bytes(op.output_dtype(0)), limits)
    plan = ShortPlan(op, sizes, matrix, few, columns, batch, width, along_sum, threads, beside, each)
    blocks = blocks_of * -(-results // plan.tile)
    granule = width * threads if along_sum else threads
    parts = possible_parts(sizes[last], granule * _TURNS, blocks, limits) if cut and sizes[last] % granule == 0 else []
    enough = [count for count in parts if count * blocks >= limits.rates.multiprocessors] or parts[-1:]
    is_long = terms // granule > _LONG
    return replace(plan, parts=enough[0]) if enough and is_long else plan


def _along_sum(column: int, rows: int, results: int, batches: int, vectors: int, limits: Limits) -> tuple[int, int, int]:
    """Columns of a thread, rows of threads, and threads of each: those that share the terms of a result.

    Args:
        column: extent of the last axis of columns, which the columns of a thread divide.
        rows: results of a column.
        results: columns.
        batches: matrices, none of which shares a block with another.
        vectors: accesses to the terms of one.
        limits: of the chip.
    """
    each = max(1, min(_COLUMNS, _SUMS // rows))
    while column % each:
        each //= 2
    beside, threads = max(1, preferred_threads(limits, None) // limits.warp // 2), limits.warp
    # rather more threads for a column than multiprocessors without one
    while beside > 1 and batches * -(-results // (beside * each)) < 2 * limits.rates.multiprocessors:
        beside //= 2
        threads *= 2 if vectors >= _TURNS * threads else 1
    return each, beside, threads


def _across(results: int, terms: int, each: int, size: int, limits: Limits) -> tuple[int, int]:
    """Threads beside each other along the columns, of which each has some, and those that share terms; `size` bytes are its sums."""
    beside = limits.warp
    while beside > 1 and beside * each > results:
        beside //= 2
    threads = preferred_threads(limits, None) // beside
    # sums of all threads have room in half of the memory, so that two blocks share a multiprocessor
    while threads > 1 and (threads * _TURNS > terms or threads * 2 * size * beside > limits.shared):
        threads //= 2
    return beside, threads


def schedule_short_products(s: Schedule, target: Target) -> None:
    """Schedule all products of a few rows, each with the stage that makes the result of it element by element."""
    for stage, plan in taken(s, short_plan, target):
        tensor = stage.origin.output(0)
        if plan.parts == 1:
            _Threads(s, tensor, tiled_result(s, stage), plan).build()
            continue
        partial = cut_sum(s, stage, len(plan.sizes) - 1, plan.parts)
        of_parts = short_plan(s.tree, partial, target, cut=False)
        if of_parts is None:
            raise InternalError(f"the parts of the sum {stage.name} are no product of a few rows any more")
        _Threads(s, partial.origin.output(0), partial.origin.output(0), of_parts).build()
        add_up(s, tensor, target)


class _Threads:
    """The steps of a plan."""

    def __init__(self, s: Schedule, tensor: Tensor, result: Tensor, plan: ShortPlan) -> None:
        self.s, self.tensor, self.result, self.plan = s, tensor, result, plan
        along, across = ("threadIdx.x", "threadIdx.y") if plan.along_sum else ("threadIdx.y", "threadIdx.x")
        self.share = thread_axis((0, plan.threads), along)
        self.place = thread_axis((0, plan.beside), across)

    def build(self) -> None:
        """Make the schedule."""
        s, plan = self.s, self.plan
        sums = self.tensor
        if self.result is self.tensor:
            sums = s.cache_write(self.tensor, "local")
        else:
            s[sums].set_scope("local")
        partial = self._partial(sums)
        block, place = self._results_along_sum() if plan.along_sum else self._results_across()
        s[sums].compute_at(s[self.result], place)
        (shared,) = compute_of(s, sums).reduce_axis
        axes = list(compute_of(s, sums).axis)
        s[sums].reorder(shared, *axes)
        for axis in axes:
            s[sums].unroll(axis)
        if plan.along_sum:
            s[sums].bind(shared, self.share)
            s[partial].set_scope("local")
            s[partial].compute_at(s[sums], shared)
        else:
            s[sums].unroll(shared)
            s[partial].set_scope("shared")
            s[partial].compute_at(s[self.result], block)
        self._terms(partial)

    def _partial(self, sums: Tensor) -> Tensor:
        """Sums of each thread that shares a result."""
        stage, plan, op = self.s[sums], self.plan, compute_of(self.s, sums)
        whole = op.reduce_axis[-1]
        if plan.along_sum:
            whole, _ = stage.split(whole, factor=plan.width)
        _, mine = stage.split(whole, factor=plan.threads)
        made = self.s.rfactor(sums, mine)
        assert isinstance(made, Tensor)
        return made

    def _axes(self, tensor: Tensor) -> tuple[list[IterVar], list[IterVar], list[IterVar]]:
        """Axes of results: batches, columns, and the few that a thread computes all of."""
        axes = list(compute_of(self.s, tensor).axis)[-len(self.plan.op.axis) :]
        batch, columns, few = ([axes[axis] for axis in group] for group in (self.plan.batch, self.plan.columns, self.plan.few))
        return batch, columns, few

    def _results_along_sum(self) -> tuple[IterVar, IterVar]:
        """Blocks and threads of results, of which one stores for all that share a sum; the loops over blocks and over groups of threads."""
        stage, plan = self.s[self.result], self.plan
        batch, columns, few = self._axes(self.result)
        stage.reorder(*batch, *columns, *few)
        whole, own = stage.split(stage.fuse(*columns), factor=plan.each)
        outer, place = stage.split(whole, factor=plan.beside)
        single, one = stage.split(stage.fuse(), factor=plan.threads)
        block = stage.fuse(*batch, outer)
        stage.reorder(block, place, single, one, *few, own)
        stage.bind(block, thread_axis("blockIdx.x"))
        stage.bind(place, self.place)
        stage.bind(one, self.share)
        for axis in (*few, own):
            stage.unroll(axis)
        return block, place

    def _results_across(self) -> tuple[IterVar, IterVar]:
        """Blocks of results, which all of its threads store together; the loops over blocks, and over results of a thread."""
        stage, plan = self.s[self.result], self.plan
        batch, columns, few = self._axes(self.result)
        stage.reorder(*batch, *columns, *few)
        outer, inner = stage.split(stage.fuse(*columns), factor=plan.tile)
        block = stage.fuse(*batch, outer)
        stage.reorder(block, *few, inner)
        rest, place = stage.split(stage.fuse(*few, inner), factor=plan.beside)
        turn, row = stage.split(rest, factor=plan.threads)
        stage.reorder(block, row, place, turn)
        stage.bind(block, thread_axis("blockIdx.x"))
        stage.bind(row, self.share)
        stage.bind(place, self.place)
        stage.unroll(turn)
        return block, turn

    def _terms(self, partial: Tensor) -> None:
        """Vectors of both operands, and all products of them."""
        s, plan = self.s, self.plan
        held = [s.cache_read(operand.tensor, "local", [partial]) for operand in operands_of(s.tree, s.tree[s[partial].id])]
        stage, op = s[partial], compute_of(s, partial)
        mine = op.axis[0]
        batch, columns, few = self._axes(partial)
        around = list(op.reduce_axis)
        lane = around.pop() if plan.along_sum else None
        count = (constant_extents(around[-1:]) or [1])[0]
        ahead = _COLUMNS // plan.each if plan.along_sum else _COLUMNS
        turn, together = stage.split(around.pop(), factor=ahead if count % ahead == 0 else 1)
        if lane is not None:
            axes = [together, *batch, *columns, *few]
            stage.reorder(mine, *around, turn, together, *batch, *columns, *few, lane)
            stage.unroll(lane)
        else:
            axes = [together, *batch, *few]
            stage.reorder(*batch, *few, *columns)  # of Y[i, r, j] += A[k, r] * B[k, i, j] the columns i and j are apart
            whole, vector = stage.split(stage.fuse(*columns), factor=plan.width)
            _, place = stage.split(whole, factor=plan.beside)
            stage.reorder(mine, place, *around, turn, together, *batch, *few, vector)
            stage.bind(mine, self.share)
            stage.bind(place, self.place)
            stage.vectorize(vector)
        for axis in axes:
            stage.unroll(axis)
        for copy in held:
            s[copy].compute_at(stage, together)
            *outer, last = compute_of(s, copy).axis
            for axis in outer:
                s[copy].unroll(axis)
            s[copy].vectorize(last)
