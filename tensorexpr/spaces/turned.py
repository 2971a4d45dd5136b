"""Stages whose results could be lanes but for an operand that lies across them: it is copied with the axes of results innermost.

    Y[i, j] = sum over k of A[i, k] * B[i + j, k]        a band of A @ B.T: nothing uses a vector of B twice, so it is no product in tiles
    T[k, n] = B[n, k];  Y[i, j] = sum over k of A[i, k] * T[k, i + j]

    Y[i, j] = |A[i, 0] - B[j, 0]| + |A[i, 1] - B[j, 1]|          distances of pairs: the lanes j are two elements apart
    T[c, j] = B[j, c];  Y[i, j] = |A[i, 0] - T[0, j]| + |A[i, 1] - T[1, j]|

Each element of B is read for many results, so that the copy costs less than a sum over lanes, or gathering them, for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ..schedule.te_schedule import Schedule
from ..schedule.tree import Root, StageNode
from ..target import Target
from ..te.affine_access import Access
from ..te.operation import ComputeOp, loads
from ..te.tensor import Tensor
from ..tir.arithmetic import as_int
from ..tir.expr import Reduce, Var
from .access import flat_access
from .contractions import Refused, contraction_of, operands_of
from .injective import schedule_injective
from .machine import lanes_of
from .stages import constant_extents, untouched

# Results that read each element, from which on a copy is worth its time: 947 rows of 24 terms, 30 results each, 0.47 -> 0.06 ms (Zen 3).
_READS = 4


def turn_operands(s: Schedule, target: Target) -> None:
    """Give stages that nothing was said of copies of what lies across their lanes; they are scheduled as what they are then."""
    for stage in untouched(s):
        if isinstance(stage.op, ComputeOp) and stage.op.axis:
            find = _operand if stage.op.reduce_axis else _tables
            for tensor, along, across in find(s, stage, target):
                _copy(s, stage, tensor, along, across, target)


def _tables(s: Schedule, stage: StageNode, target: Target) -> Iterator[tuple[Tensor, int, int]]:
    """What a stage without sums reads again and again across the lanes, with its last index and the one that has the lanes.

    Example:
        B of |A[i, 0] - B[j, 0]| + |A[i, 1] - B[j, 1]|, indices 1 and 0.
    """
    op, extents = stage.compute, constant_extents(stage.compute.axis)
    lane, lanes = op.axis[-1].var, lanes_of(target, stage.origin.output_dtype(0))
    if extents is None or extents[-1] < lanes:
        return
    reads: dict[Tensor, list[Access[Var]]] = {}
    for load in loads(op):
        producer = s.tree.producer(load) if isinstance(load.producer, Tensor) else None
        # What a recurrence carries is another one at each step, and several results of one stage have no copy.
        if producer is None or producer.id in s.tree.carried or producer.origin.num_outputs != 1:
            continue
        if isinstance(load.producer, Tensor) and isinstance(producer.attach, Root):
            reads.setdefault(load.producer, []).append(flat_access(load))
    for tensor, accesses in reads.items():
        size = prod(as_int(extent) or 0 for extent in tensor.shape)
        places = {access.index_of(lane) for access in accesses}
        across = places.pop() if len(places) == 1 else None
        is_apart = across is not None and across < len(tensor.shape) - 1 and all(access.is_affine for access in accesses)
        if is_apart and across is not None and size and prod(extents) >= _READS * size:
            yield tensor, len(tensor.shape) - 1, across


def _operand(s: Schedule, stage: StageNode, target: Target) -> Iterator[tuple[Tensor, int, int]]:
    """The operand of a sum that lies along the sum, with its indices that have the sum and the results; none if that is a product in tiles.

    Example:
        B of sum over k of A[i, k] * B[i + j, k], indices 1 and 0.
    """
    op, lanes = stage.compute, lanes_of(target, stage.origin.output_dtype(0))
    extents = constant_extents((*op.axis, *op.reduce_axis))
    is_sum = len(op.body) == 1 and isinstance(op.body[0], Reduce) and len(op.reduce_axis) == 1
    column, summed = len(op.axis) - 1, len(op.axis)
    if not is_sum or extents is None or extents[column] < lanes or not isinstance(contraction_of(s.tree, stage), Refused):
        return
    operands = operands_of(s.tree, stage)
    apart = [operand for operand in operands if operand.moves_with(column) and not operand.lies_along(column)]
    if len(operands) < 2 or len(apart) != 1 or not apart[0].is_affine or not apart[0].lies_along(summed) or apart[0].is_computed:
        return
    (right,) = apart
    along, across = right.index_of(summed), [place for place, axes in enumerate(right.moved) if column in axes]
    size = prod(as_int(extent) or 0 for extent in right.tensor.shape)
    # Neighbouring indices: of others the copy would be blocks of rows that lie anywhere.
    is_apart = along is not None and across == [along - 1] and right.forms[across[0]] is not None
    if along is not None and is_apart and size and prod(extents) >= _READS * size:
        yield right.tensor, along, across[0]


def _copy(s: Schedule, stage: StageNode, tensor: Tensor, along: int, across: int, target: Target) -> None:
    """The copy, in blocks that are transposed in registers."""
    copy = s.cache_read(tensor, "global", [stage.origin.output(0)])

    def layout(*i: Var) -> list[Var]:
        order = [*range(len(i))]
        order[along], order[across] = across, along
        return [i[place] for place in order]

    s[copy].transform_layout(layout)
    schedule_injective(s, copy, target)
