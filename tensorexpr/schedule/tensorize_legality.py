"""What a tensorized loop allows around it: its own loops are gone, so nothing may be said about them or stand in them."""

from __future__ import annotations

from ..errors import ScheduleError
from .tree import At, LoopKind, ScheduleTree, StageNode


def check_tensorized(tree: ScheduleTree, stage: StageNode) -> None:
    """Check that no loop inside a tensorized one is marked or holds another stage.

    Raises:
        ScheduleError: naming the loop and what stands there.
    """
    axis = next((a for a in stage.leaf if stage.mark(a).intrin is not None), None)
    if axis is None:
        return
    intrin, name = (stage.mark(axis).intrin or ("", ""))[0], stage.axes[axis].name
    where = f"In schedule for {stage.name}: {name!r} is tensorized with {intrin}, which takes the place of"
    inside = stage.leaf[stage.leaf.index(axis) :]
    for loop in inside:
        mark = stage.mark(loop)
        said = [mark.kind.value] if mark.kind not in (LoopKind.SERIAL, LoopKind.TENSORIZE) else [key for key, _ in mark.pragmas]
        if said:
            inner = stage.axes[loop].name
            raise ScheduleError(f"{where} {inner!r}, marked {said[0]}; leave the mark out, or move that loop outside {name!r}")
    for other in tree.attached_to(stage.id):
        if isinstance(other.attach, At) and other.attach.axis in inside:
            loop_name = stage.axes[other.attach.axis].name
            raise ScheduleError(f"{where} {loop_name!r}, where {other.name} is computed; compute {other.name} at a loop outside {name!r}")
    said_of_accesses = {
        "prefetch": bool(stage.prefetches),
        "set_store_predicate": stage.store_predicate is not None,
        "rolling_buffer": stage.rolling_buffer,
        "store_nontemporal": stage.nontemporal,
    }
    for what, wanted in said_of_accesses.items():
        if wanted:
            raise ScheduleError(f"{where} the stage's loads and stores, which {what} is about; leave one of the two out")
