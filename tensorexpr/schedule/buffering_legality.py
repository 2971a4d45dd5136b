"""When a stage's storage may be doubled: the next iteration's elements must be computable while this one's are read.

The stage is computed at a serial loop of its consumer, and all that its nest reads is there before the loop starts,
or is double buffered at the same loop.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ScheduleError
from .attachment import is_inside
from .tree import At, LoopKind, ScheduleTree, StageNode


def check_double_buffer(tree: ScheduleTree, stage: StageNode, readers: Mapping[int, tuple[StageNode, ...]]) -> None:
    """Check a stage that is double buffered.

    Args:
        readers: for each stage the stages whose loops read it.

    Raises:
        ScheduleError: saying what stands against it and what to do.
    """
    where = f"In schedule for {stage.name}: double_buffer"
    if not isinstance(stage.attach, At):
        raise ScheduleError(
            f"{where} overlaps the iterations of a loop, but the stage is computed at the root; compute_at a serial loop first"
        )
    target, axis = tree[stage.attach.stage], stage.attach.axis
    name, mark = target.axes[axis].name, target.mark(axis)
    if mark.kind is not LoopKind.SERIAL:
        kind = mark.thread.tag if mark.thread else mark.kind.value
        raise ScheduleError(
            f"{where} overlaps the iterations of a serial loop, but it is computed at {name!r} of {target.name}, which is {kind}; "
            "compute_at a serial loop inside that one"
        )
    nest = _nest(tree, stage)
    for other in tree.stages:
        if other.id in nest or other.is_placeholder or not any(reader.id in nest for reader in readers[other.id]):
            continue
        together = other.double_buffer and other.attach == stage.attach
        if not together and is_inside(tree, other, target.id, axis):
            raise ScheduleError(
                f"{where} computes the elements for the next iteration of {name!r} early, but they are made of {other.name}, which is "
                f"computed in that same iteration; double_buffer {other.name} at that loop too, or compute it inside {stage.name}"
            )


def _nest(tree: ScheduleTree, stage: StageNode) -> set[int]:
    """The stage and all that is computed inside its loops."""
    found, waiting = {stage.id}, [stage.id]
    while waiting:
        inner = [other.id for other in tree.attached_to(waiting.pop())]
        found.update(inner)
        waiting += inner
    return found
