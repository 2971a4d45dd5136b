"""Where stages are computed: the loops around a stage, and what is computed at its own."""

from __future__ import annotations

from collections.abc import Iterator

from .tree import At, ScheduleTree, StageNode


def enclosing_loops(tree: ScheduleTree, stage: StageNode) -> Iterator[tuple[StageNode, int]]:
    """The loops (stage, axis) around the place where `stage` is computed, innermost first; its own are not included."""
    while isinstance(stage.attach, At):
        target, axis = tree[stage.attach.stage], stage.attach.axis
        place = target.leaf.index(axis)
        for loop in reversed(target.leaf[: place + 1]):
            yield target, loop
        stage = target


def is_inside(tree: ScheduleTree, stage: StageNode, target: int, axis: int) -> bool:
    """True if `stage` is computed, directly or not, inside the loop `axis` of the stage `target`."""
    return any(host.id == target and loop == axis for host, loop in enclosing_loops(tree, stage))


def check_nothing_inside(tree: ScheduleTree, stage: StageNode, harm: str) -> None:
    """Refuse a stage at whose loops others are computed; `harm` goes on after "... is computed at its loops".

    Raises:
        ScheduleError: naming them.
    """
    names = ", ".join(other.name for other in tree.attached_to(stage.id))
    if names:
        raise stage.refused(f"{names} is computed at its loops{harm}")
