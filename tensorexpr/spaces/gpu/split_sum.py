"""Sums of products that blocks cut among themselves (split-k), where the results are too few for all multiprocessors of a chip.

C[i, j] = sum over k of A[i, k] * B[k, j]           64 x 64 results of 8192 terms each are a tile or two
    C.rf[p, i, j]   each block sums one of p parts of the terms of its tile
    C[i, j]         a second kernel adds them up, and computes what is made of the result

That takes a second launch and a trip through memory, so that cycles of both ways are counted.
"""

from __future__ import annotations

from math import ceil

from ...schedule.te_schedule import Schedule
from ...schedule.tilings import divisors
from ...schedule.tree import StageNode
from ...target import Target
from ...te.tensor import Tensor
from ..stages import compute_of, constant_extents, tiled_result
from .block import LATENCY, LAUNCH, LOADED_BYTES, Limits, over_blocks

# What is expected of it must be so much faster: nothing of it was measured.
_GAIN = 0.8
# Parts whose additions are written out, so that their loads are under way together.
_WRITTEN_OUT = 32


def pipeline_cycles(busy: float, turns: int, copies: int, blocks: int, resident: int, limits: Limits) -> float:
    """Cycles of a kernel whose blocks multiply one part of their sums while others are on their way from memory.

    Args:
        busy: cycles of a multiprocessor for one part of a block's sums.
        turns: parts of the sum.
        copies: parts that have room, of which all but one are on their way; with one all threads wait for each.
        blocks: of the grid.
        resident: blocks that share a multiprocessor.
        limits: of the chip.
    """
    most = ceil(blocks / limits.rates.multiprocessors)
    turn = max(busy, LATENCY / (copies - 1)) if copies > 1 else busy + LATENCY
    return max(most * busy * turns, ceil(most / resident) * (LATENCY + turns * turn))


def adding_cycles(parts: int, results: int, size: int, limits: Limits) -> float:
    """Cycles until some parts of the results, of `size` bytes each, are stored, loaded and added up; none for one part."""
    moved = 2 * parts * results * size / (LOADED_BYTES * limits.rates.multiprocessors)
    return LAUNCH + LATENCY + moved if parts > 1 else 0.0


def is_worth_it(cut: float, whole: float) -> bool:
    """Whether cycles with and without the cut speak for it."""
    return cut < _GAIN * whole


def possible_parts(terms: int, granule: int, blocks: int, limits: Limits) -> list[int]:
    """Into how many equal parts, each of whole granules, a sum may be cut whose results are so many blocks: none where these are enough
    for all multiprocessors, else up to two for each of them."""
    most = 2 * ceil(limits.rates.multiprocessors / blocks) if blocks < limits.rates.multiprocessors else 1
    return [parts for parts in divisors(terms) if 1 < parts <= most and terms // parts % granule == 0]


def cut_sum(s: Schedule, stage: StageNode, axis: int, parts: int) -> StageNode:
    """Cut an axis of the reduction, by its number among all axes of the definition; the stage of the parts' sums, by part first."""
    tensor = stage.origin.output(0)
    op = compute_of(s, tensor)
    cut = op.reduce_axis[axis - len(op.axis)]
    outer, inner = s[tensor].split(cut, nparts=parts)
    # the order in which the parts' stage has them as axes
    s[tensor].reorder(outer, *(other for other in op.reduce_axis if other is not cut), inner)
    made = s.rfactor(tensor, outer)
    assert isinstance(made, Tensor)
    return s.tree[s[made].id]


def add_up(s: Schedule, tensor: Tensor, target: Target) -> None:
    """Schedule what adds the parts of a sum, with the stage that makes the result of it element by element."""
    result = tiled_result(s, s.tree[s[tensor].id])
    place = over_blocks(s, result, compute_of(s, result).axis, target)
    op, stage = compute_of(s, tensor), s[tensor]
    parts = (constant_extents(op.reduce_axis) or [_WRITTEN_OUT + 1])[0]
    if result is not tensor:
        stage.set_scope("local")
        stage.compute_at(s[result], place)
        stage.reorder(*op.axis[:-1], *op.reduce_axis, op.axis[-1])
        for axis in op.axis[:-1]:
            stage.unroll(axis)
        stage.vectorize(op.axis[-1])
    if parts <= _WRITTEN_OUT:
        stage.unroll(op.reduce_axis[0])
