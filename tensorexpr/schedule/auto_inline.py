"""Inline by kind of stage: elementwise, broadcast, injective. Names as TE has them."""

from __future__ import annotations

from collections.abc import Callable

from ..te.access import simple_access
from ..te.operation import ComputeOp, loads
from .scans import is_update
from .steps import ComputeInline
from .te_schedule import Schedule
from .tree import LoopKind, StageNode


def is_elementwise(op: ComputeOp) -> bool:
    """True if nothing is reduced and every read is at the stage's own axes, all of them, in order."""
    return not op.reduce_axis and all(_reads_at(op, every_axis=True))


def is_broadcast(op: ComputeOp) -> bool:
    """True if nothing is reduced and every read is at some of the stage's axes, in order."""
    return not op.reduce_axis and all(_reads_at(op, every_axis=False))


def is_injective(op: ComputeOp) -> bool:
    """True if nothing is reduced: each element is made of given ones."""
    return not op.reduce_axis


def _reads_at(op: ComputeOp, every_axis: bool) -> list[bool]:
    axes = [axis.var for axis in op.axis]
    found = []
    for load in loads(op):
        access = simple_access(op, load.indices)
        exact = all(any(index is var for var in axes) for index in load.indices)
        found.append(access is not None and exact and (access.is_elementwise if every_axis else access.same_order))
    return found


def _inline_where(schedule: Schedule, fits: Callable[[ComputeOp], bool]) -> None:
    for stage in list(schedule.tree.in_order()):
        if _is_free(schedule, stage) and isinstance(stage.op, ComputeOp) and fits(stage.op):
            schedule.apply_step(ComputeInline(stage.id))


def _is_free(schedule: Schedule, stage: StageNode) -> bool:
    """True for a stage that may be inlined and that nobody has scheduled."""
    if stage.is_placeholder or stage.is_output or stage.attach != schedule.tree.home(stage.id):
        return False
    if is_update(schedule.tree, stage):
        return False
    if not all(reader.has_loops for reader in schedule.tree.consumers(stage)):
        return False
    marked = any(mark.kind is not LoopKind.SERIAL or mark.pragmas for mark in stage.marks.values())
    return not stage.relations and not marked and not schedule.tree.attached_to(stage.id)


def AutoInlineElemWise(sch: Schedule) -> None:
    """Inline every elementwise stage that is no output and not scheduled yet."""
    _inline_where(sch, is_elementwise)


def AutoInlineBroadcast(sch: Schedule) -> None:
    """Inline every stage that is elementwise or a broadcast, no output and not scheduled yet."""
    _inline_where(sch, is_broadcast)


def AutoInlineInjective(sch: Schedule) -> None:
    """Inline every stage without a reduction that is no output and not scheduled yet."""
    _inline_where(sch, is_injective)
