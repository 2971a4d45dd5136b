"""Random legal schedules of a computation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from ...errors import ScheduleError
from ...schedule.legality import check_tree
from ...schedule.steps import (
    Annotate,
    CacheRead,
    CacheWrite,
    ComputeAt,
    ComputeInline,
    Fuse,
    Pragma,
    Reorder,
    RFactor,
    SetScope,
    Split,
    Step,
)
from ...schedule.te_schedule import Schedule
from ...schedule.tree import ScheduleTree, StageNode
from ...te.operation import Operation

FACTORS = (1, 2, 3, 4, 5, 7, 8, 16)
_T = TypeVar("_T")
Draw = st.DrawFn


@st.composite
def schedules(draw: Draw, outputs: Sequence[Operation], max_steps: int = 10) -> Schedule:
    """A schedule of `outputs` made of up to `max_steps` random primitives, each legal where it stands.

    Proposals that the schedule refuses are dropped, so what comes out also says that refusing left it intact.
    """
    schedule = Schedule(tuple(outputs))
    for _ in range(draw(st.integers(0, max_steps))):
        step = _proposal(draw, schedule.tree)
        if step is None:
            continue
        trial = schedule.copy()
        try:
            trial.apply_step(step)
            check_tree(trial.tree)
        except ScheduleError:
            continue
        schedule = trial
    return schedule


def _proposal(draw: Draw, tree: ScheduleTree) -> Step | None:
    stage = _pick(draw, tree.stages)
    if stage.is_placeholder:
        readers = tuple(s.id for s in tree.consumers(stage))
        return CacheRead(stage.id, _pick(draw, ("global", "local")), readers) if readers else None
    return _pick(draw, _PROPOSALS)(draw, tree, stage)


def _pick(draw: Draw, options: Sequence[_T]) -> _T:
    return options[draw(st.integers(0, len(options) - 1))]


def _leaf(draw: Draw, stage: StageNode) -> int:
    return _pick(draw, stage.leaf) if stage.leaf else 0


def _split(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    factor = _pick(draw, FACTORS)
    return Split(stage.id, _leaf(draw, stage), _pick(draw, ((None, factor), (factor, None), (None, factor, 2))))


def _fuse(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    if len(stage.leaf) < 2:
        return None
    first = _pick(draw, range(len(stage.leaf) - 1))
    return Fuse(stage.id, stage.leaf[first : first + 2])


def _reorder(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    order = draw(st.permutations(stage.leaf))
    return Reorder(stage.id, tuple(order))


def _annotate(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return Annotate(stage.id, _leaf(draw, stage), _pick(draw, ("parallel", "vectorize", "unroll")))


def _pragma(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return Pragma(stage.id, _leaf(draw, stage), "auto_unroll_max_step", _pick(draw, (0, 4, 16, 64)))


def _inline(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return ComputeInline(stage.id)


def _compute_at(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    readers = tree.consumers(stage)
    if not readers:
        return None
    target = _pick(draw, readers)
    return ComputeAt(stage.id, target.id, _leaf(draw, target))


def _cache_write(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return CacheWrite(stage.id, _pick(draw, ("global", "local")))


def _cache_read(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    readers = tuple(s.id for s in tree.consumers(stage))
    return CacheRead(stage.id, "local", readers) if readers else None


def _rfactor(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    loops = [axis for axis in stage.leaf if stage.is_reduction(axis)]
    return RFactor(stage.id, _pick(draw, loops), _pick(draw, (0, -1, 1))) if loops else None


def _scope(draw: Draw, tree: ScheduleTree, stage: StageNode) -> Step | None:
    return SetScope(stage.id, _pick(draw, ("global", "local")))


_PROPOSALS = (
    _split,
    _split,
    _split,
    _fuse,
    _reorder,
    _annotate,
    _annotate,
    _pragma,
    _inline,
    _compute_at,
    _compute_at,
    _cache_write,
    _cache_read,
    _rfactor,
    _scope,
)
