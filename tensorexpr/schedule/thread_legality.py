"""What must hold of the loops of a tree that are bound to threads of a device.

1. No tag of a grid occurs twice on the path from a loop to the root, as the inner loop would need threads inside threads: but for
   stages in memory that these threads share. What all of them read they compute together, each thread a part (`shares`).
2. All loops of one kernel (a stage at the root or in a step of a scan, and what is computed inside) that share a tag have one extent,
   that of the launch, and the extent that a thread axis declares is its loop's. Extents are known when bounds are: `check_extents`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import ScheduleError
from ..te.scan_op import ScanOp
from ..tir.arithmetic import as_int
from ..tir.expr import PrimExpr
from ..tir.thread import HARDWARE_TAGS, VIRTUAL_TAGS, thread_tags
from .domain import StageDomain
from .tree import At, ScheduleTree, StageNode


def check_threads(stage: StageNode, path: tuple[tuple[StageNode, int], ...]) -> None:
    """Check the first law for a stage and the loops around it.

    Raises:
        ScheduleError: naming both loops.
    """
    scope = storage_scope(stage, path)
    own = {thread.tag: axis for axis in stage.leaf if (thread := stage.mark(axis).thread) is not None}
    for target, axis in path:
        thread = target.mark(axis).thread
        if thread is not None and thread.tag in HARDWARE_TAGS and thread.tag in own and not shares(scope, thread.tag):
            raise stage.refused(
                f"its axis {stage.axes[own[thread.tag]].name!r} is bound to {thread.tag} inside the axis "
                f"{target.axes[axis].name!r} of {target.name}, which is bound to it too; compute {stage.name} outside that axis, "
                f"leave its own axis serial, bind it to another tag ({thread_tags()}), or let the threads share it: "
                f's[{stage.name}].set_scope("shared")'
            )


def storage_scope(stage: StageNode, path: Iterable[tuple[StageNode, int]]) -> str:
    """Where a stage's storage lives: where its schedule says or, without a word, as near as it is needed.

    What is computed inside a thread's loops is the thread's own, what is computed inside those of a block only is shared by its threads.
    """
    tags = [thread.tag for node, axis in path if (thread := node.mark(axis).thread) is not None and thread.tag in HARDWARE_TAGS]
    if stage.scope or not tags:
        return stage.scope or "global"
    return "local" if any(tag.startswith("threadIdx.") for tag in tags) else "shared"


def relaxed(scope: str, tag: str) -> bool:
    """Whether memory of a scope holds what all threads of a tag read: they share it, or it lies where all of them see it."""
    return shares(scope, tag) or (scope == "global" and tag in HARDWARE_TAGS)


def shares(scope: str | None, tag: str) -> bool:
    """Whether the threads of a tag see one piece of memory of a scope: those of a block see "shared", those of a warp "warp"."""
    if tag in VIRTUAL_TAGS or tag.startswith("threadIdx."):
        return scope is not None and (scope.split(".")[0] == "shared" or (scope == "warp" and tag == "threadIdx.x"))
    return False


def check_extents(tree: ScheduleTree, domains: Mapping[int, StageDomain]) -> None:
    """Check the second law, and that virtual threads have a constant extent.

    Raises:
        ScheduleError: naming the loops and their extents.
    """
    launched: dict[tuple[int, str], tuple[StageNode, int, PrimExpr]] = {}
    for domain in domains.values():
        stage = domain.stage
        for axis in stage.leaf:
            thread = stage.mark(axis).thread
            if thread is None:
                continue
            extent, value = domain.extents[axis], as_int(domain.extents[axis])
            where = f"In schedule for {stage.name}: axis {stage.axes[axis].name!r} of extent {extent} is bound to {thread.tag}"
            if thread.extent is not None and value != thread.extent:
                raise ScheduleError(
                    f"{where}, whose thread axis {thread.name!r} has the extent {thread.extent}; "
                    "split the axis by that extent, or leave the domain of the thread axis out"
                )
            if thread.tag in VIRTUAL_TAGS:
                if value is None:
                    raise ScheduleError(
                        f"{where}, but the number of virtual threads is a constant; split the axis with nparts and bind that"
                    )
                continue
            first = launched.setdefault((_kernel(tree, stage), thread.tag), (stage, axis, extent))
            # interned, so symbolic extents that are written alike are one object
            if first[2] is not extent:
                raise ScheduleError(
                    f"{where}, but in the same kernel the axis {first[0].axes[first[1]].name!r} of {first[0].name}, of extent {first[2]}, "
                    "is bound to it too; give both axes one extent, or bind one of them to another tag"
                )


def _kernel(tree: ScheduleTree, stage: StageNode) -> int:
    # Time is a loop of the host: what a step computes is launched in each step anew.
    while isinstance(stage.attach, At) and not isinstance(tree[stage.attach.stage].op, ScanOp):
        stage = tree[stage.attach.stage]
    return stage.id
