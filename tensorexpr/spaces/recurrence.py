"""Schedules of what the steps of a scan compute: register tiles for products, vectors for the rest.

    for t:
        H[j] = sum over k of W[j, k] * state[t - 1, k]      panels of W are packed before the first step, not in each
        state[t, j] = tanh(X[t, j] + H[j])                  one loop in vectors; what is read once is part of it

Time stays the loop around everything: an axis that is time takes the rows of a step alone, whatever extent it is declared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from ..schedule.scans import is_update, time_axes
from ..schedule.steps import ComputeInline
from ..schedule.te_schedule import Schedule
from ..schedule.tree import At, StageNode
from ..target import Target
from ..te.operation import ComputeOp
from .contraction_plan import Order, Pack, Plan, contraction_plans
from .contractions import Contraction, contraction_of
from .machine import is_parallel, lanes_of, operations, vector_factor
from .stages import constant_extents
from .tiles import Tiles


def schedule_steps(s: Schedule, target: Target) -> None:
    """Schedule all stages of all scans' steps of which nothing was said yet."""
    for node in stages_of_steps(s):
        if node.compute.reduce_axis:
            plan = _plan(s, node, target)
            if plan is not None:
                Tiles(s, node.origin.output(0), node.origin.output(0), plan, target).build()
        else:
            _in_vectors(s, node, target)


def stages_of_steps(s: Schedule) -> Iterator[StageNode]:
    """The stages of all scans' steps of which nothing was said yet, after those that are read once are inlined."""
    for stage in list(s.tree.in_order()):
        if _is_open(s.tree[stage.id], s) and _is_read_once(s, s.tree[stage.id]):
            s.apply_step(ComputeInline(stage.id))
    for stage in list(s.tree.in_order()):
        if _is_open(s.tree[stage.id], s):
            yield s.tree[stage.id]


def _is_open(stage: StageNode, s: Schedule) -> bool:
    """True for a computation of a step that stands where the scan has put it, with loops as they are declared."""
    scan = s.tree.carried.get(stage.id)
    placed = isinstance(stage.op, ComputeOp) and isinstance(stage.attach, At) and stage.attach.stage == scan
    return placed and stage.op.num_outputs == 1 and not stage.marks and not stage.relations


def _is_read_once(s: Schedule, stage: StageNode) -> bool:
    """True if each element is read by one of another stage of the step, so that it needn't be stored."""
    readers = s.tree.consumers(stage)
    if stage.compute.reduce_axis or is_update(s.tree, stage) or len(readers) != 1 or not _is_open(readers[0], s):
        return False
    own, other = (constant_extents(one.compute.axis) for one in (stage, readers[0]))
    return not readers[0].compute.reduce_axis and own is not None and other is not None and prod(other) <= prod(own)


def _plan(s: Schedule, stage: StageNode, target: Target) -> Plan | None:
    """Register tiles for the product of a step, if time is neither cut nor in the lanes and its panels can be packed before time."""
    # Rows of a step alone are known when the step is computed; those of other steps depend on them.
    found, times = contraction_of(s.tree, stage), time_axes(s.tree, stage)
    if not isinstance(found, Contraction) or times & {*found.columns, *found.batch} or found.row in times:
        return None
    found = replace(found, sizes=tuple(1 if axis in times else size for axis, size in enumerate(found.sizes)))
    plan = next(iter(contraction_plans(found, target)), None)
    if plan is None or plan.dot is not None:
        return None
    plan = replace(plan, block=0, parts=0)
    if plan.pack is Pack.NONE:
        return plan
    # What depends on a state is another operand at each step: packed in it, if at all, it is read but once.
    if s.tree.producer(found.right.load).id in s.tree.carried:
        return None if plan.is_transposed else replace(plan, pack=Pack.NONE)
    return replace(plan, pack=Pack.ROOT, order=Order.CHUNKS)


def _in_vectors(s: Schedule, stage: StageNode, target: Target) -> None:
    """Vectors along the last axis, and rows on all cores where a step has enough of them."""
    times, tensor = time_axes(s.tree, stage), stage.origin.output(0)
    axes = [axis for number, axis in enumerate(stage.compute.axis) if number not in times]
    sizes = constant_extents(axes)
    if not axes or sizes is None or len(stage.compute.axis) - 1 in times:
        return
    outer, lane = s[tensor].split(axes[-1], factor=vector_factor(sizes[-1], lanes_of(target, tensor.dtype)))
    s[tensor].vectorize(lane)
    if is_parallel(target, operations(stage.compute.body, prod(sizes))):
        s[tensor].parallel(axes[0] if len(axes) > 1 else outer)
