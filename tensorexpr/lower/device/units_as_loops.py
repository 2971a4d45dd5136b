"""Intrinsics that all threads of a warp run together, as the loops that they take the place of, for a CPU that has no such units.

    s[C].tensorize(lane, mma)  ->  s[C].bind(lane, threadIdx.x): each thread computes what it holds of the tile

What the intrinsic computes is what lowering proves these loops to compute, so the program stays what it is.
"""

from __future__ import annotations

from dataclasses import replace

from ...schedule.te_schedule import Schedule
from ...schedule.tree import LoopKind, LoopMark, StageNode, ThreadAxis
from ...te.tensor_intrin import TensorIntrin
from ...tir.arithmetic import as_int
from ...tir.stmt import For, ForKind
from ...tir.thread import bound_tag
from ..rebuild import walk_statements


def units_as_loops(schedule: Schedule) -> Schedule:
    """The schedule with loops over threads where an intrinsic has some; itself if none has."""
    changed = schedule
    for stage in schedule.tree.stages:
        made = _bound(stage)
        if made is not stage:
            changed = schedule.copy() if changed is schedule else changed
            changed._tree = changed.tree.with_stage(made)
    return changed


def _bound(stage: StageNode) -> StageNode:
    for axis, mark in stage.marks.items():
        thread = None if mark.intrin is None else _thread_of(TensorIntrin.get(*mark.intrin))
        if thread is not None:
            bound = LoopMark(LoopKind.BIND, mark.pragmas, thread)
            return replace(stage, marks={**stage.marks, axis: bound})
    return stage


def _thread_of(intrin: TensorIntrin) -> ThreadAxis | None:
    """The loop over threads around what an intrinsic does."""
    for func in (intrin.body, intrin.reduce_update):
        for stmt in walk_statements(func.body) if func is not None else ():
            tag = bound_tag(stmt)
            if isinstance(stmt, For) and stmt.kind is ForKind.THREAD_BINDING and tag is not None:
                return ThreadAxis(tag, tag, as_int(stmt.extent))
    return None
