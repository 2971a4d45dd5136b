"""Tiles of dot products: a few rows by a matrix whose rows lie along the sum as well, with terms in the lanes, and nothing copied.

    C[i, j] += A[i, k] * W[j, k],  4 rows of A
        parallel over j in threes:
            for k in vectors: 4 x 3 accumulators, each a vector of terms, += 4 vectors of A times 3 of W
            C[i, j] = the sum of a vector's lanes, for each of the 12

Panels of W, with columns in the lanes, cost as much to copy as the products of some thirty rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..dataclass import dataclass
from ..schedule.te_schedule import Schedule
from ..schedule.tree import ScheduleTree, StageNode
from ..target import Target
from ..te.tensor import Tensor
from ..tir.expr import Reduce
from .contractions import Contraction, contraction_of
from .dot_products import dot_product_of
from .machine import STREAMS, is_parallel, lanes_of, operations
from .nests import as_tasks, in_vectors
from .reduction import is_regrouped
from .sizes import decided, written_rows
from .stages import compute_of, tiled_result

# Rows up to which panels don't pay: 2048 x 2048 takes 1.3, 1.7, 1.4, 2.0 and 3.1 ms with panels for 2, 4, 8, 16 and 32 rows, and 0.37, 0.7,
# 1.2, 1.8 and 3.1 without; of 64 rows 4.9 and 5.5 (two cores of Zen 3).
_MOST_ROWS = 32
# Vectors of terms that make up for the sum of the last one's lanes.
_LEAST_VECTORS = 8
_TREE = 4.0  # cycles that the sum of a vector's lanes takes, beside those of other accumulators
_CONVERTED = 2.0  # loads that a vector of small numbers takes the time of, which are converted


@dataclass(frozen=True, slots=True)
class DotTile:
    """So many of the few rows by so many of the many; `many` and `few` are axes, and the few are the contraction's rows or its columns."""

    contraction: Contraction
    few: int
    many: int
    rows: int
    streams: int


def dot_tiles(tree: ScheduleTree, stage: StageNode, target: Target) -> list[DotTile]:
    """The tile that such a product gets; none if the stage is no such product.

    Example:
        4 x 2048 of A by 2048 x 2048 of W as above: 4 rows by 3 streams. Not A @ W with W[k, j], whose vectors are columns.
    """
    found = contraction_of(tree, stage)
    if not isinstance(found, Contraction) or len(found.summed) != 1 or len(found.left) != 1 or not found.is_column_last:
        return []
    body, (summed,), lanes = found.op.body[0], found.summed, lanes_of(target, found.op.output_dtype(0))
    along = all(operand.lies_along(summed) and not operand.is_computed for operand in (*found.left, found.right))
    is_long = found.sizes[summed] >= _LEAST_VECTORS * lanes
    if not along or not is_long or not isinstance(body, Reduce) or not is_regrouped(body) or dot_product_of(found, target):
        return []
    few, many = sorted((found.row, found.column), key=lambda axis: found.sizes[axis])
    # the many rows are those that each tile reads anew
    is_converted = (found.right if many == found.column else found.left[0]).bytes * lanes * 8 < target.vector_bits
    # One row alone waits for memory, and a sum of its own hides that as well; small numbers wait for their conversion, too.
    if not (1 if is_converted else 2) <= found.sizes[few] <= _MOST_ROWS or found.size(*found.rows[:-1]) > 1:
        return []
    load = 1.0 + _CONVERTED * is_converted
    terms = found.sizes[summed] / lanes

    def cycles(tile: tuple[int, int]) -> float:
        rows, streams = tile
        loads = rows + streams * load
        step = target.machine.step_cycles(rows * streams, loads) + loads * target.machine.load_delay
        return -(-found.sizes[few] // rows) * -(-found.sizes[many] // streams) * (terms * step + rows * streams * _TREE)

    rows, streams = min(_fitting(found.sizes[few], found.sizes[many], target), key=lambda tile: (cycles(tile), -tile[0]))
    return [DotTile(found, few, many, rows, streams)]


def _fitting(few: int, many: int, target: Target) -> Iterator[tuple[int, int]]:
    """Tiles whose accumulators, and the vectors of the shorter side with one of the other, are in registers, as broadcasts would be."""
    most = target.vector_registers - target.machine.scalar_registers
    for rows in range(1, few + 1):
        for streams in range(1, min(many, STREAMS) + 1):
            if rows * streams + min(rows, streams) <= most:
                yield rows, streams


def build_dots(s: Schedule, node: StageNode, tile: DotTile, target: Target) -> None:
    """Schedule a product of few rows along the sum: partial sums for each lane, computed at the loop over tiles, and their sum there."""
    found, result, tensor = tile.contraction, tiled_result(s, node), node.origin.output(0)
    _, lane = s[tensor].split(s[tensor].op.reduce_axis[0], factor=lanes_of(target, found.op.output_dtype(0)))
    partial = s.rfactor(tensor, lane, -1)
    assert isinstance(partial, Tensor)
    stage = s[result]
    axes = list(stage.op.axis)
    (few, row), (many, stream) = (
        stage.split(axes[tile.few], factor=decided(stage, axes[tile.few], tile.rows, written_rows(target)), balanced=True),
        stage.split(axes[tile.many], factor=decided(stage, axes[tile.many], tile.streams, written_rows(target))),
    )
    batch = [axis for number, axis in enumerate(axes) if number not in (tile.few, tile.many)]
    inner = [row, stream] if tile.few < tile.many else [stream, row]
    stage.reorder(*batch, many, few, *inner)
    work = operations(found.op.body, found.size(*range(len(found.sizes))))
    as_tasks(stage, [*batch, many], is_parallel(target, work))
    for axis in inner:
        stage.unroll(axis)
    if tensor.op is not result.op:
        s[tensor].compute_at(stage, few)
        for axis in s[tensor].op.axis:
            s[tensor].unroll(axis)
    s[tensor].vectorize(s[tensor].op.reduce_axis[0])
    s[partial].set_scope("local")
    s[partial].compute_at(stage, few)
    *spatial, last = compute_of(s, partial).axis
    in_vectors(s[partial], compute_of(s, partial).reduce_axis, spatial, last)
