"""What is decided of a product on a GPU: the tile of a block, of a thread in it, and how much of the sum is in shared memory at a time.

    C[i, j] = sum over k of A[i, k] * B[k, j]
        block   128 rows by 128 columns, 16 x 16 threads
        thread  rows t, t + 16, t + 32, ...: neighbouring threads read neighbouring rows of A, in different banks of shared memory
                columns 4 t to 4 t + 3, and those 64 further on: a vector of B is one access
        sum     16 terms of each are fetched by all threads together

Where larger tiles leave multiprocessors without blocks, smaller ones are taken, or blocks share the sums of larger ones (`split_sum`).
Along each axis of results there are `virtual` groups, `threads` that lie side by side in a group, and `inner` neighbours of a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from ...dataclass import dataclass, replace
from ...schedule.tree import Inline, ScheduleTree, StageNode
from ...target import Target
from ...te.contraction import recognise
from ...te.operation import ComputeOp
from ...tir.arithmetic import as_int
from ...tir.expr import Reduce
from ..access import element_bytes
from ..contractions import Operand, operands_of
from ..stages import constant_extents
from .block import LOADED_BYTES, Limits, limits_of
from .split_sum import adding_cycles, is_worth_it, pipeline_cycles, possible_parts

# Threads along rows and along columns, and results of a thread along each: 64 sums and what they are made of take 128 registers at most,
# so that two blocks of 256 threads fit a multiprocessor, and a term takes 16 loads of four for 256 multiply-adds.
_SIDE = 16
_EACH = 8
MOST_OF_SIDE = 2 * _SIDE
"""Threads along the last axis of results at most: a warp."""
# Numbers of results of a thread along rows and columns, the preferred one first; the others are for fewer results than fill a chip.
_SHAPES = ((8, 8), (8, 4), (4, 4), (4, 2), (2, 2), (2, 1), (1, 1))
_CUTS = 2  # plans whose sum is cut that are worth trying
# Terms of the sum that are in shared memory at a time: 128 x 16 floats of each operand are 16 KiB, of which several blocks have room.
_TERMS = 16
# Parts of the sum in shared memory where one may be on its way while the other is multiplied.
_COPIES = 2
# Elements of one access to shared memory, and terms of a sum that a thread reads at once where they are neighbours.
GROUP = 4
# Instructions that a multiprocessor issues in a cycle, and the part of a loop that multiplies and adds.
_ISSUED, _MULTIPLIES = 4, 0.9
# Registers of a thread beside its sums and the operands of a group of terms.
_OTHER_REGISTERS = 24


@dataclass(frozen=True)
class AxisTile:
    """The part of an axis of results that a block computes."""

    virtual: int = 1
    threads: int = 1
    inner: int = 1

    @property
    def size(self) -> int:
        """Results of a block along the axis."""
        return self.virtual * self.threads * self.inner


@dataclass(frozen=True)
class TilePlan:
    """A product's tiles. Axes are numbers, the reduction's after the others.

    Args:
        op: the definition.
        operands: what is multiplied.
        tiles: of each axis of results, in order.
        chunk: of each axis of the reduction, in order, the terms that are in shared memory at a time.
        order: the axes of results whose threads are slowest first, the last one's threads being neighbours.
        room: bytes of shared memory that a block may have.
        copies: of the parts in shared memory, of which all but one are on their way.
        turned: an operand whose part stands in shared memory by terms, and not by columns as in global memory.
        shape: results of a thread along rows and columns, at most.
        parts: of the sum's axis `cut_axis`, which blocks of their own compute.
        sums: the places of the axes of the reduction, in the order of their loops.
    """

    op: ComputeOp
    operands: tuple[Operand, ...]
    tiles: tuple[AxisTile, ...]
    chunk: tuple[int, ...]
    order: tuple[int, ...]
    room: int
    copies: int = 1
    turned: Operand | None = None
    shape: tuple[int, int] = _SHAPES[0]
    parts: int = 1
    sums: tuple[int, ...] = ()

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(tile.threads for tile in self.tiles)

    @property
    def results(self) -> int:
        """Results of a thread."""
        return prod(tile.virtual * tile.inner for tile in self.tiles)

    @property
    def sizes(self) -> list[int]:
        """The extents of all axes."""
        return constant_extents((*self.op.axis, *self.op.reduce_axis)) or []

    @property
    def blocks(self) -> int:
        """Blocks of all results, and of all parts of their sums."""
        return self.parts * prod(-(-size // tile.size) for size, tile in zip(self.sizes, self.tiles, strict=False))

    @property
    def _sides(self) -> tuple[list[int], list[int]]:
        """The axes of rows, and of columns."""
        columns = [axis for axis in self.order if next(one for one in self.operands if one.moves_with(self.order[-1])).moves_with(axis)]
        return [axis for axis in self.order if axis not in columns], columns

    @property
    def cut_axis(self) -> int:
        """The longest axis of the sum, the first of several."""
        return max(range(len(self.tiles), len(self.sizes)), key=lambda axis: (self.sizes[axis], -axis))

    def possible_parts(self, limits: Limits) -> list[int]:
        """Into how many parts the sum may be cut, vectors of its terms staying whole."""
        terms, chunk = self.sizes[self.cut_axis], self.part(self.cut_axis)
        granule = chunk if terms % chunk == 0 else GROUP
        return possible_parts(terms, granule, self.blocks // self.parts, limits)

    def cycles(self, limits: Limits) -> float:
        """Cycles of all blocks, and of adding up the parts of their sums."""
        sums = self.sizes[len(self.tiles) :]
        turns = prod(-(-size // part) for size, part in zip(sums, self.chunk, strict=True)) // self.parts
        tile, terms = prod(tile.size for tile in self.tiles), prod(self.chunk)
        bytes_ = self.shared_bytes(self.chunk) // self.copies
        warps = -(-self.threads // limits.warp)
        rows, columns = (prod(self.tiles[axis].virtual * self.tiles[axis].inner for axis in side) for side in self._sides)
        # of the columns of a warp four vectors are served together, of the rows, by groups of terms, all
        wide = self.tiles[self.order[-1]].inner
        loads, served = rows / GROUP + columns / wide, rows / GROUP + columns / min(wide, 2)
        busy = max(
            tile * terms / limits.rates.fma / _MULTIPLIES,
            warps * terms * (self.results + loads) / _ISSUED / _MULTIPLIES,
            warps * terms * served,
            bytes_ / LOADED_BYTES,
        )
        registers = self.results + 2 * GROUP * max(1, self.results // _EACH) + _OTHER_REGISTERS
        resident = limits.resident(self.threads, registers, self.shared_bytes(self.chunk))
        adding = adding_cycles(self.parts, prod(self.sizes[: len(self.tiles)]), element_bytes(self.op.output_dtype(0)), limits)
        return pipeline_cycles(busy, max(1, turns), self.copies, self.blocks, resident, limits) + adding

    def part(self, axis: int) -> int:
        """How much of an axis is computed, or in shared memory, at a time."""
        return self.tiles[axis].size if axis < len(self.tiles) else self.chunk[axis - len(self.tiles)]

    def most_groups(self, axis: int) -> int:
        """Groups along an axis at most: so many results along rows and along columns leave registers for what they are made of."""
        return max(1, _EACH // self.tiles[axis].inner)

    def other_chunks(self, extent: int) -> list[int]:
        """Other parts of the sum's last axis, whose vectors stay whole and whose operands have room."""
        sizes = [size for size in (4, 8, 16, 32) if extent % size == 0] if self.chunk[-1] % GROUP == 0 else []
        return [size for size in sizes if self.shared_bytes((*self.chunk[:-1], size)) <= self.room]

    @property
    def has_groups(self) -> bool:
        """True if terms along the last axis of the sum are innermost, and there are groups of them."""
        return self.chunk[-1] % GROUP == 0 and self.sums[-1] == len(self.chunk) - 1

    def is_grouped(self, operand: Operand) -> bool:
        """True if a thread reads vectors of the operand along the last axis of the sum."""
        last = len(self.tiles) + len(self.chunk) - 1
        return operand is not self.turned and self.has_groups and is_plain_along(operand, last)

    def shared_axis(self, operand: Operand) -> int | None:
        """The axis along which the operand's part lies in shared memory."""
        return self.order[-1] if operand is self.turned else next(iter(operand.moved[-1]), None) if operand.moved else None

    def fetched_width(self, operand: Operand, tree: ScheduleTree) -> int:
        """Elements of one access of the fetch into shared memory."""
        axis = next(iter(operand.moved[-1]), None) if operand.moved and operand is not self.turned else None
        width = max(1, min(GROUP, 16 // operand.bytes))
        stored = not isinstance(tree.producer(operand.load).attach, Inline)
        length = as_int(operand.load.producer.shape[-1])
        fits = axis is not None and is_plain_along(operand, axis) and self.part(axis) % width == 0 and (length or 1) % width == 0
        return width if fits and stored else 1

    def shared_bytes(self, chunk: Sequence[int]) -> int:
        """Bytes of shared memory with so many terms at a time, the padding of rows included, and all copies."""
        parts = {**dict(enumerate(tile.size for tile in self.tiles)), **{len(self.tiles) + n: size for n, size in enumerate(chunk)}}
        return self.copies * sum(_region(operand, parts) * operand.bytes for operand in self.operands)


def _region(operand: Operand, parts: Mapping[int, int]) -> int:
    """Elements of an operand that a block reads at a time."""
    sides = [1 + sum(abs(factor) * (parts[axis] - 1) for axis, factor in (form or {}).items()) for form in operand.forms]
    sides[-1] += GROUP
    return prod(sides)


def is_plain_along(operand: Operand, axis: int) -> bool:
    """True if neighbours along the axis are neighbours in memory, and nothing else moves the last index: no window, no border."""
    return operand.lies_along(axis) and operand.moved[-1] == frozenset({axis}) and (operand.forms[-1] or {}).get(axis) == 1


def tile_plan(tree: ScheduleTree, stage: StageNode, target: Target) -> TilePlan | None:
    """The tiles of a stage by the rule, if it is a sum of products of two tensors, each read again for results along some axis."""
    return next(iter(tile_plans(tree, stage, target)), None)


def tile_plans(tree: ScheduleTree, stage: StageNode, target: Target, shape: tuple[int, int] | None = None) -> list[TilePlan]:
    """The plans of such a stage that are worth trying, the rule's first; none of any other stage.

    Args:
        tree: the program.
        stage: the sum.
        target: what it is for.
        shape: numbers of results of a thread along rows and columns, for a stage of parts of sums, whose axes stand in another order than
            the definition's; by default those that the rule tries.
    """
    op = stage.op
    if not isinstance(op, ComputeOp) or len(op.body) != 1 or not isinstance(op.body[0], Reduce) or op.body[0].init or not op.axis:
        return []
    sizes = constant_extents((*op.axis, *op.reduce_axis))
    operands = operands_of(tree, stage)
    if sizes is None or recognise(op.body[0]) is None or len(operands) != 2 or operands[0].tensor is operands[1].tensor:
        return []
    if any(form is None for operand in operands for form in operand.forms):
        return []
    sides = [
        [axis for axis in range(len(op.axis)) if one.moves_with(axis) and not other.moves_with(axis)] for one, other in _both(operands)
    ]
    if any(prod(sizes[axis] for axis in side) < GROUP for side in sides):
        return []
    # the threads of the last axis are neighbours, as its results are in memory
    rows, columns = sorted(sides, key=max)
    limits = limits_of(target)
    # What is computed on the way into shared memory passes registers, of which a part that waits there would take some.
    are_copies = all(not isinstance(tree.producer(operand.load).attach, Inline) for operand in operands)
    copies = _COPIES if limits.is_async and are_copies else 1
    apart = [of_one_block(operand, operands, len(op.axis)) for operand in operands]
    summed = range(len(op.axis), len(sizes))
    # What lies closest together is fetched together, as it is by a definition whose innermost sums are the innermost in memory.
    by_memory = sorted(summed, key=lambda axis: (sizes[axis] > 1, -max(operand.step(axis) for operand in operands)))
    sums = tuple(axis - len(op.axis) for axis in (summed if shape is None else by_memory))
    shapes = _SHAPES if shape is None else (shape,)
    plans = (_with_shape(op, sizes, apart, (rows, columns), one, limits, copies, sums) for one in shapes)
    fitting = [plan for plan in plans if plan is not None]
    return _ranked(fitting, limits) if fitting else []


def _ranked(fitting: Sequence[TilePlan], limits: Limits) -> list[TilePlan]:
    """The largest tiles of which there are blocks for all multiprocessors, and larger ones whose sums several blocks share."""
    whole = next((plan for plan in fitting if plan.blocks >= limits.rates.multiprocessors), fitting[-1])
    cut = [replace(plan, parts=parts) for plan in fitting for parts in plan.possible_parts(limits)]
    ranked = sorted(cut, key=lambda plan: plan.cycles(limits))[:_CUTS]
    if ranked and whole is not fitting[0] and is_worth_it(ranked[0].cycles(limits), whole.cycles(limits)):
        return [ranked[0], whole, *ranked[1:]]
    return [whole, *ranked]


def of_one_block(operand: Operand, operands: Sequence[Operand], results: int) -> Operand:
    """An operand as a block sees it, for which axes that move both operands, batches and parts of a sum, stand still.

    They count where they are an index of their own; in A[i, p * 64 + k] the part p begins at a multiple of a vector.
    """
    still = {axis for axis in range(results) if all(one.moves_with(axis) for one in operands)}
    forms, moved = list(operand.forms), list(operand.moved)
    for place, form in enumerate(operand.forms):
        others = still & (form or {}).keys() if form is not None and form.keys() - still else set()
        if form is not None and all(form[axis] % GROUP == 0 for axis in others):
            forms[place] = {axis: factor for axis, factor in form.items() if axis not in others}
            moved[place] = operand.moved[place] - others
    return replace(operand, forms=tuple(forms), moved=tuple(moved))


def _both(operands: Sequence[Operand]) -> tuple[tuple[Operand, Operand], tuple[Operand, Operand]]:
    one, other = operands
    return (one, other), (other, one)


def _with_shape(
    op: ComputeOp,
    sizes: Sequence[int],
    operands: Sequence[Operand],
    sides: Sequence[Sequence[int]],
    shape: tuple[int, int],
    limits: Limits,
    copies: int,
    sums: tuple[int, ...],
) -> TilePlan | None:
    tiles: dict[int, AxisTile] = {}
    side_threads = _SIDE
    while side_threads * side_threads > limits.threads:
        side_threads //= 2
    turned = _turned(operands, sizes, sides[1])
    for side, each in zip(sides, shape, strict=True):
        threads = side_threads
        for axis in reversed(side):
            along = any(is_plain_along(one, axis) for one in operands) or (turned is not None and axis == sides[1][-1])
            inner = GROUP if each >= GROUP and sizes[axis] % GROUP == 0 and along else 1
            tile = _best(sizes[axis], threads, each // inner, inner)
            tiles[axis] = tile
            threads, each = max(1, threads // tile.threads), max(1, each // (tile.virtual * tile.inner))
    order = tuple(axis for side in sides for axis in side)
    plan = TilePlan(
        op, tuple(operands), tuple(tiles.get(axis, AxisTile()) for axis in range(len(op.axis))), (), order, limits.shared, copies, turned
    )
    terms, own = _TERMS, sizes[len(op.axis) :]
    while terms and plan.shared_bytes(_chunk(own, sums, terms)) > limits.shared:
        terms //= 2
    return replace(plan, chunk=_chunk(own, sums, terms), shape=shape, sums=sums) if terms else None


def _turned(operands: Sequence[Operand], sizes: Sequence[int], columns: Sequence[int]) -> Operand | None:
    """The operand of the columns, if both lie along the sum: vectors of the sum of both would fill a thread's registers."""
    last = len(sizes) - 1
    own = next(operand for operand in operands if operand.moves_with(columns[-1]))
    parts = sizes[last] % (2 * GROUP) == 0 and sizes[columns[-1]] % GROUP == 0 and own.index_of(columns[-1]) is not None
    return own if parts and all(is_plain_along(one, last) for one in operands) else None


def _best(size: int, threads: int, virtual: int, inner: int) -> AxisTile:
    """The tile that wastes few results of an axis and yet reads each operand for many: the largest of those that divide it, as a rule."""

    def worth(tile: AxisTile) -> tuple[float, int]:
        used = size / (-(-size // tile.size) * tile.size)
        return used * tile.size / (tile.size + _SIDE), tile.threads

    counts = [1 << n for n in range(threads.bit_length()) if 1 << n <= threads]
    return max((AxisTile(v, t, inner) for t in counts for v in range(1, virtual + 1)), key=worth)


def _chunk(sizes: Sequence[int], order: Sequence[int], terms: int) -> tuple[int, ...]:
    """So many terms of a sum at most, innermost axes of an order first: whole axes, and a part of one."""
    found: dict[int, int] = {}
    for place in reversed(order):
        size = sizes[place]
        part = min(size, terms)
        if size > terms:
            fitting = [count for count in range(GROUP, terms + 1, GROUP) if size % count == 0]
            part = fitting[-1] if fitting and 2 * fitting[-1] >= terms else -(-size // -(-size // terms))
        found[place] = part
        terms = max(1, terms // part)
    return tuple(found[place] for place in range(len(sizes)))
