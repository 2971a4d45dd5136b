"""Operators that read across the direction in which they write: blocks of both directions, transposed in registers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..schedule.te_schedule import Schedule
from ..target import Target
from ..te.tensor import Tensor
from ..tir.expr import IterVar
from .access import Loop, element_bytes
from .machine import lanes_of
from .nests import in_vectors
from .sizes import decided, registers

# Rows of a transpose in registers, at least: of fewer, vectors are loaded for two elements each.
_FEWEST_ROWS = 4


def transposed_axis(loops: Sequence[Loop]) -> int | None:
    """The loop along which reads go from neighbour to neighbour that are far apart along the innermost one.

    None if the innermost loop is as good as any.

    Example:
        Y[c, i, j] = X[c, j, i]: neighbours along j are a row of X apart, and those along i are neighbours, so the loop over i.
    """
    if not loops:
        return None
    votes = [0] * len(loops)
    # A read whose elements are neighbours along the last loop, or the same one, is a vector load or a broadcast already.
    for read, apart in enumerate(loops[-1].strides):
        if abs(apart) < 2:
            continue
        for number, loop in enumerate(loops[:-1]):
            if loop.strides[read] == 1:
                votes[number] += 1
    most = max(votes)
    # Below four columns there is no transpose that saves anything.
    return votes.index(most) if most and loops[votes.index(most)].extent >= 4 and loops[-1].extent >= 4 else None


def _block(target: Target, dtype: str) -> int:
    """Elements of a side of the block that a thread reads and writes at once: the largest power of two such that what is read, column
    by column, stays in the first cache until its lines are used up.

    block rows * (block * bytes / line) lines of each <= lines of the cache: 64 floats, 128 bytes with 32 or 48 KB.
    """
    first, size = target.machine.caches[0], element_bytes(dtype)
    # At least a line's worth, or every line would be loaded for each part of it that a block takes.
    block = max(lanes_of(target, dtype), first.line // size)
    while 2 * block * -(-2 * block * size // first.line) <= first.size // first.line:
        block *= 2
    return block


def balanced(extent: int, block: int, side: int) -> int:
    """The size of as many equal blocks as are needed of at most `block` elements, in whole sides: 100 as 56 + 44, not as 64 + 36."""
    tiles = -(-extent // side)
    return -(-tiles // -(-extent // block)) * side


def schedule_transpose(
    s: Schedule, tensor: Tensor, loops: Sequence[Loop], across: int, target: Target, past_caches: bool = False
) -> list[IterVar]:
    """Blocks of the loop `across` and the last one; returns the loops to run in parallel, outermost first.

    A thread goes from block to block along rows of the result. Loads that miss a cache wait at the same time, but stores enter it in
    order, each after the miss of the one before: so it is the stores whose lines should be neighbours, and the lines that two blocks
    share written twice in a row (znver1: 512 x 1016 floats in 0.08 ms, 0.23 along rows of the operand; 1008 x 992 in 0.22 and 0.36).
    Stores past the caches wait for nothing, so the thread reads whole pages instead from end to end, and writes to the same few.
    Until a line of such stores is full it keeps one of a few buffers, which both threads of a core share: where a vector is half
    a line, half as many rows are open, and their other half follows at once (2048 x 2048 floats in 1.5 ms instead of 3.5 while the
    other thread works, 1.4 instead of 1.1 while it rests: two cores of Zen 3).
    """
    lanes = lanes_of(target, tensor.dtype)
    # As many rows in registers as each has elements, so that lines are written whole; with fewer registers as many as there are
    # (2048 x 2048 bytes took 0.19 ms with 32 rows, 0.52 ms with 16).
    side, block = min(lanes, target.vector_registers), _block(target, tensor.dtype)
    stage = s[tensor]
    columns, rows = loops[-1].axis, loops[across].axis
    height = balanced(loops[across].extent, block, side)
    column_block, column = stage.split(columns, factor=decided(stage, columns, block, registers(lanes, target)))
    row_block, row = stage.split(rows, factor=decided(stage, rows, height, registers(lanes, target)))
    in_line = target.machine.caches[0].line // (lanes * element_bytes(tensor.dtype)) if past_caches else 1
    apart = max(abs(stride) for stride in loops[-1].strides) * element_bytes(tensor.dtype)
    is_kept = target.machine.caches[0].rows(apart) >= block
    is_in_parts = in_line > 1 and side // in_line >= _FEWEST_ROWS
    row_part, line = stage.split(row, factor=side // in_line if is_in_parts else side)
    column_part, lane = stage.split(column, factor=side)
    inner = [row_part, column_part]
    if is_in_parts:
        column_line, column_part = stage.split(column_part, factor=in_line)
        # along rows of the result, unless the first level loses lines of the operand on the way
        inner = [row_part, column_line, column_part] if is_kept else [column_line, row_part, column_part]
    others = [loop for number, loop in enumerate(loops[:-1]) if number != across]
    blocks = [column_block, row_block] if past_caches else [row_block, column_block]
    outer = [*(loop.axis for loop in others), *blocks]
    in_vectors(stage, [*outer, *inner], [line], lane)
    # Enough blocks of rows for all threads: the loop along them stays serial, which can be cut where the last block begins.
    enough = prod([loop.extent for loop in others]) * -(-loops[across].extent // height) >= 8 * target.num_cores
    return outer[:-1] if enough and not past_caches else outer
