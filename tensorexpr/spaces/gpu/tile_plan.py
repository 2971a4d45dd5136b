"""What is decided of a product on a GPU: the tile of a block, of a thread in it, and how much of the sum is in shared memory at a time.

    C[i, j] = sum over k of A[i, k] * B[k, j]
        block   128 rows by 128 columns, 16 x 16 threads
        thread  rows t, t + 16, t + 32, ...: neighbouring threads read neighbouring rows of A, in different banks of shared memory
                columns 4 t to 4 t + 3, and those 64 further on: a vector of B is one access
        sum     16 terms of each are fetched by all threads together

Along each axis of results there are `virtual` groups, `threads` that lie side by side in a group, and `inner` neighbours of a thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from ...schedule.tree import Inline, ScheduleTree, StageNode
from ...target import Target
from ...te.contraction import recognise
from ...te.operation import ComputeOp
from ...tir.arithmetic import as_int
from ...tir.expr import Reduce
from ..contractions import Operand, operands_of
from ..stages import constant_extents
from .block import Limits, limits_of

# Threads along rows and along columns, and results of a thread along each: 64 sums and what they are made of take 128 registers at most,
# so that two blocks of 256 threads fit a multiprocessor, and a term takes 16 loads of four for 256 multiply-adds.
_SIDE = 16
_EACH = 8
MOST_OF_SIDE = 2 * _SIDE
"""Threads along the last axis of results at most: a warp."""
# Numbers of results of a thread along rows and columns, the preferred one first; the others are for fewer results than fill a chip.
_SHAPES = ((8, 8), (8, 4), (4, 4), (4, 2), (2, 2), (2, 1), (1, 1))
# Blocks from which on no multiprocessor is idle: the largest chips have 108 to 148 of them.
_BLOCKS = 128
# Terms of the sum that are in shared memory at a time: 128 x 16 floats of each operand are 16 KiB, of which several blocks have room.
_TERMS = 16
# Parts of the sum in shared memory where one may be on its way while the other is multiplied.
_COPIES = 2
# Elements of one access to shared memory, and terms of a sum that a thread reads at once where they are neighbours.
GROUP = 4


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
    """

    op: ComputeOp
    operands: tuple[Operand, ...]
    tiles: tuple[AxisTile, ...]
    chunk: tuple[int, ...]
    order: tuple[int, ...]
    room: int
    copies: int = 1
    turned: Operand | None = None

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(tile.threads for tile in self.tiles)

    @property
    def results(self) -> int:
        """Results of a thread."""
        return prod(tile.virtual * tile.inner for tile in self.tiles)

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

    def is_grouped(self, operand: Operand) -> bool:
        """True if a thread reads vectors of the operand along the last axis of the sum."""
        last = len(self.tiles) + len(self.chunk) - 1
        return operand is not self.turned and self.chunk[-1] % GROUP == 0 and is_plain_along(operand, last)

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
    """The tiles of a stage, if it is a sum of products of two tensors, each of which is read again for results along some axis."""
    op = stage.op
    if not isinstance(op, ComputeOp) or len(op.body) != 1 or not isinstance(op.body[0], Reduce) or op.body[0].init or not op.axis:
        return None
    sizes = constant_extents((*op.axis, *op.reduce_axis))
    operands = operands_of(tree, stage)
    if sizes is None or recognise(op.body[0]) is None or len(operands) != 2 or operands[0].tensor is operands[1].tensor:
        return None
    if any(form is None for operand in operands for form in operand.forms):
        return None
    sides = [
        [axis for axis in range(len(op.axis)) if one.moves_with(axis) and not other.moves_with(axis)] for one, other in _both(operands)
    ]
    if any(prod(sizes[axis] for axis in side) < GROUP for side in sides):
        return None
    # the threads of the last axis are neighbours, as its results are in memory
    rows, columns = sorted(sides, key=max)
    limits = limits_of(target)
    # What is computed on the way into shared memory passes registers, of which a part that waits there would take some.
    are_copies = all(not isinstance(tree.producer(operand.load).attach, Inline) for operand in operands)
    copies = _COPIES if limits.is_async and are_copies else 1
    plans = (_with_shape(op, sizes, operands, (rows, columns), shape, limits, copies) for shape in _SHAPES)
    fitting = [plan for plan in plans if plan is not None]
    return next((plan for plan in fitting if _blocks(plan, sizes) >= _BLOCKS), fitting[-1] if fitting else None)


def _both(operands: Sequence[Operand]) -> tuple[tuple[Operand, Operand], tuple[Operand, Operand]]:
    one, other = operands
    return (one, other), (other, one)


def _blocks(plan: TilePlan, sizes: Sequence[int]) -> int:
    return prod(-(-size // tile.size) for size, tile in zip(sizes, plan.tiles, strict=False))


def _with_shape(
    op: ComputeOp,
    sizes: Sequence[int],
    operands: Sequence[Operand],
    sides: Sequence[Sequence[int]],
    shape: Sequence[int],
    limits: Limits,
    copies: int,
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
    terms = _TERMS
    while terms and plan.shared_bytes(_chunk(sizes[len(op.axis) :], terms)) > limits.shared:
        terms //= 2
    if not terms:
        return None
    return replace(plan, chunk=_chunk(sizes[len(op.axis) :], terms))


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


def _chunk(sizes: Sequence[int], terms: int) -> tuple[int, ...]:
    """So many terms of a sum at most, innermost axes first: whole axes, and a part of one."""
    found: list[int] = []
    for size in reversed(sizes):
        part = min(size, terms)
        if size > terms:
            fitting = [count for count in range(GROUP, terms + 1, GROUP) if size % count == 0]
            part = fitting[-1] if fitting and 2 * fitting[-1] >= terms else -(-size // -(-size // terms))
        found.append(part)
        terms = max(1, terms // part)
    return tuple(reversed(found))
