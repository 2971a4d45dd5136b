"""Packed copies of the operand in the lanes: panels as wide as a register tile, one after the other in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..schedule.steps import Annotate, CacheRead, PreTransformed, TransformLayout
from ..schedule.tree import AxisExpression
from ..target import Target
from .operands import Operand
from .register_plan import Pack, RegisterPlan, lanes_of
from .stages import extents
from .state import SketchState


def pack_operand(state: SketchState, stage: int, operand: Operand, plan: RegisterPlan, target: Target) -> tuple[SketchState, int]:
    """The stage reading a copy of an operand; returns also the copy's stage.

    A panel that is copied at its own loop is as compact as it is read, so only its axes change places. Panels that
    are copied before everything have their number as the first index; the last one is padded. So do those that the caller passes.
    """
    place = operand.index_of(plan.vector)
    assert place is not None
    copy = len(state.tree.stages)
    state = state.add(CacheRead(operand.producer.id, "global", (stage,)))
    rank = len(state.stage(copy).spatial)
    others = sorted((n for n in range(rank) if n != place), key=lambda n: depth_of(operand, n, plan))
    lane: AxisExpression = ("axis", place)
    rest = tuple(("axis", n) for n in others)
    if plan.pack is not Pack.PANEL:
        width = plan.vectors * lanes_of(target, state.stage(stage))
        state = state.add(TransformLayout(copy, (("//", lane, width), *rest, ("%", lane, width))))
        state = state.add(Annotate(copy, 0, "parallel"))
        first = 1
    else:
        if (*others, place) != tuple(range(rank)):
            state = state.add(TransformLayout(copy, (*rest, lane)))
        first = 0
    vector = state.stage(copy).spatial[-1]
    if place != rank - 1:
        streamed = [first + others.index(n) for n in range(place + 1, rank)]
        state, vector = _in_blocks(state, copy, streamed, vector, lanes_of(target, state.stage(stage)))
    state = state.add(Annotate(copy, vector, "vectorize"))
    if plan.pack is Pack.GIVEN:
        state = state.add(PreTransformed(copy))
    return replace(state, finished=state.finished | {copy}), copy


def depth_of(operand: Operand, index: int, plan: RegisterPlan) -> tuple[int, int]:
    """Where the stage's loops put an index: what does not move with the reduction first, then as the reduction runs."""
    form = operand.forms[index] or {}
    depths = [plan.reduction.index(axis) for axis in form if axis in plan.reduction]
    return (max(depths, default=-1), index)


def _in_blocks(state: SketchState, copy: int, streamed: Sequence[int], columns: int, lanes: int) -> tuple[SketchState, int]:
    """Copy as many neighbours of the original as a vector has lanes for one vector of columns at once: a transpose in registers.

    Args:
        streamed: the copy's axes as the original has them in memory, the one of neighbours last.
        columns: the copy's axis that is cut into vectors.

    Returns:
        The state, and the loop over the lanes of a vector.
    """
    state, (vectors, lane) = state.split(copy, columns, (None, lanes))
    inner: list[int] = []
    room = lanes
    for axis in reversed(streamed):
        (extent,) = extents(state.stage(copy), [axis])
        size = extent if extent <= room else max(size for size in range(1, room + 1) if extent % size == 0)
        if size == 1 < extent:
            break
        if size < extent:
            state, (_, axis) = state.split(copy, axis, (None, size))
        inner.insert(0, axis)
        room //= size
        if size < extent:
            break
    outer = [axis for axis in state.stage(copy).leaf if axis not in (*inner, vectors, lane)]
    state = state.reorder(copy, (*outer, vectors, *inner, lane))
    for axis in inner:
        state = state.add(Annotate(copy, axis, "unroll"))
    return state, lane
