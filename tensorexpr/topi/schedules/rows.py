"""Schedules of programs that work row by row: softmax, norms, attention scores without their product.

All stages of a row are computed at the row's loop, one after the other, so that the row stays in the nearest cache; the
rows run in parallel and every stage in vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...schedule.te_schedule import Schedule
from ...schedule.tree import Inline, StageNode
from ...target import Target
from ...te.operation import ComputeOp
from ...te.tensor import Tensor
from .machine import is_parallel, lanes_of, vector_factor
from .reduction import constant_extents, schedule_reduction

_REGISTERS = 4


def common_rows(s: Schedule, output: Tensor, inner: Sequence[StageNode]) -> int:
    """How many leading axes of `output` are the leading axes of all stages before it, read at the same indices.

    0 if there are none, so that the stages can't share a loop.
    """
    rows = len(output.op.axis) if isinstance(output.op, ComputeOp) else 0
    for stage in inner:
        for reader in s.tree.consumers(stage):
            axes = [axis.var for axis in reader.compute.axis]
            for load in s.tree.reads(reader):
                if s.tree.producer(load).id == stage.id:
                    rows = min(rows, _same_prefix([*load.indices], axes))
    return rows


def _same_prefix(indices: Sequence[object], axes: Sequence[object]) -> int:
    count = 0
    for index, axis in zip(indices, axes, strict=False):
        if index is not axis:
            break
        count += 1
    return count


def schedule_rows(s: Schedule, output: Tensor, inner: Sequence[StageNode], rows: int, target: Target) -> None:
    """Schedule `output` and the stages before it, which share its first `rows` axes."""
    op = output.op
    assert isinstance(op, ComputeOp)
    extents = constant_extents(op.axis)
    work = 1
    for extent in extents or (1 << 30,):
        work *= extent
    loops = list(op.axis[:rows])
    if extents is not None and len(op.axis) > rows:
        factor = vector_factor(extents[-1], lanes_of(target, output.dtype), _REGISTERS)
        _, lane = s[output].split(op.axis[-1], factor=factor)
        s[output].vectorize(lane)
    place = s[output].fuse(*loops)
    if is_parallel(target, 4 * work):
        s[output].parallel(place)
    for stage in reversed(inner):
        if isinstance(s.tree[stage.id].attach, Inline):
            continue
        tensor = stage.origin.output(0)
        added = _schedule_one(s, tensor, target)
        for each in (tensor, *added):
            s[each].compute_at(s[output], place)


def _schedule_one(s: Schedule, tensor: Tensor, target: Target) -> list[Tensor]:
    op = s.tree[s[tensor].id].compute
    if op.reduce_axis:
        return schedule_reduction(s, tensor, target)
    extents = constant_extents(op.axis[-1:]) if op.axis else None
    if extents is not None and extents[0] > 1:
        _, lane = s[tensor].split(op.axis[-1], factor=vector_factor(extents[0], lanes_of(target, tensor.dtype), _REGISTERS))
        s[tensor].vectorize(lane)
    return []
