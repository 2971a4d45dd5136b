"""Stages whose results could be lanes but for an operand that lies across them: it is copied with the axes of results innermost.

    Y[i, j] = sum over k of A[i, k] * B[i + j, k]        a band of A @ B.T: nothing uses a vector of B twice, so it is no product in tiles
    T[k, n] = B[n, k];  Y[i, j] = sum over k of A[i, k] * T[k, i + j]

    Y[i, j] = |A[i, 0] - B[j, 0]| + |A[i, 1] - B[j, 1]|          distances of pairs: the lanes j are two elements apart
    T[c, j] = B[j, c];  Y[i, j] = |A[i, 0] - T[0, j]| + |A[i, 1] - T[1, j]|

Each element of B is read for many results, so that the copy costs less than a sum over lanes, or gathering them, for each of them.
"""

from __future__ import annotations

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
from .contractions import Operand, Refused, contraction_of, operands_of
from .injective import schedule_injective
from .machine import lanes_of
from .stages import constant_extents, untouched

# Results that read each element, from which on a copy is worth its time: 947 rows of 24 terms, 30 results each, 0.47 -> 0.06 ms (Zen 3).
_READS = 4


def turn_operands(s: Schedule, target: Target) -> None:
    """Give such sums a copy of the operand that lies along them; they are scheduled as what they are then, sums with results in lanes."""
    for stage in untouched(s):
        found = _turned(s, stage, target) if isinstance(stage.op, ComputeOp) and stage.op.reduce_axis else None
        if found is not None:
            right, along, across = found
            _copy(s, stage, right.tensor, along, across, target)


def turn_tables(s: Schedule, target: Target) -> None:
    """Give stages without sums copies of what they read again and again across the lanes, and nothing else: points of pairs, say."""
    for stage in untouched(s):
        if isinstance(stage.op, ComputeOp) and not stage.op.reduce_axis and stage.op.axis:
            for tensor, across in _tables(s, stage, target).items():
                _copy(s, stage, tensor, len(tensor.shape) - 1, across, target)


def _tables(s: Schedule, stage: StageNode, target: Target) -> dict[Tensor, int]:
    """What is worth a copy for a stage, and which of its indices has the lanes."""
    op, extents = stage.compute, constant_extents(stage.compute.axis)
    lane, lanes = op.axis[-1].var, lanes_of(target, stage.origin.output_dtype(0))
    if extents is None or extents[-1] < lanes:
        return {}
    reads: dict[Tensor, list[Access[Var]]] = {}
    for load in loads(op):
        producer = s.tree.producer(load) if isinstance(load.producer, Tensor) else None
        # What a recurrence carries is another one at each step, and several results of one stage have no copy.
        if producer is None or producer.id in s.tree.carried or producer.origin.num_outputs != 1:
            continue
        if isinstance(load.producer, Tensor) and isinstance(producer.attach, Root):
            reads.setdefault(load.producer, []).append(flat_access(load))
    found = {}
    for tensor, accesses in reads.items():
        size = prod(as_int(extent) or 0 for extent in tensor.shape)
        places = {access.index_of(lane) for access in accesses}
        across = places.pop() if len(places) == 1 else None
        is_apart = across is not None and across < len(tensor.shape) - 1 and all(access.is_affine for access in accesses)
        if is_apart and across is not None and size and prod(extents) >= _READS * size:
            found[tensor] = across
    return found


def _turned(s: Schedule, stage: StageNode, target: Target) -> tuple[Operand, int, int] | None:
    """The operand, and which of its indices have the sum and the results; None if the stage isn't such a sum."""
    op, lanes = stage.compute, lanes_of(target, stage.origin.output_dtype(0))
    extents = constant_extents((*op.axis, *op.reduce_axis))
    is_sum = len(op.body) == 1 and isinstance(op.body[0], Reduce) and len(op.reduce_axis) == 1
    if (
        not is_sum
        or extents is None
        or not op.axis
        or extents[len(op.axis) - 1] < lanes
        or not isinstance(contraction_of(s.tree, stage), Refused)
    ):
        return None
    column, summed = len(op.axis) - 1, len(op.axis)
    operands = operands_of(s.tree, stage)
    apart = [operand for operand in operands if operand.moves_with(column) and not operand.lies_along(column)]
    if len(operands) < 2 or len(apart) != 1 or not apart[0].is_affine or not apart[0].lies_along(summed) or apart[0].is_computed:
        return None
    (right,) = apart
    along, across = right.index_of(summed), [place for place, axes in enumerate(right.moved) if column in axes]
    size = prod(as_int(extent) or 0 for extent in right.tensor.shape)
    reads = prod(extents)
    if along is None or across != [along - 1] or right.forms[across[0]] is None or not size or reads < _READS * size:
        return None
    return right, along, across[0]


def _copy(s: Schedule, stage: StageNode, tensor: Tensor, along: int, across: int, target: Target) -> None:
    """The copy, in blocks that are transposed in registers."""
    copy = s.cache_read(tensor, "global", [stage.origin.output(0)])

    def layout(*i: Var) -> list[Var]:
        order = [*range(len(i))]
        order[along], order[across] = across, along
        return [i[place] for place in order]

    s[copy].transform_layout(layout)
    schedule_injective(s, copy, target)
