"""What scans ask of a schedule.

A scan's stage has one loop, time. The stages that depend on its states are computed inside of that loop, at each step the
rows that the step needs; update's stage stores into the scan's own storage, which the state placeholder's reads see too.

1. Steps run one after the other: time is not split, parallel, vectorised or bound.
2. What depends on a state stays inside of the time loop.
3. An axis of such a stage that is time takes the rows of a step alone, so it's no loop to transform.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..te.scan_op import ScanOp
from ..tir.rewriting import variables
from .tree import LoopKind, ScheduleTree, SplitRelation, StageNode

_KINDS = ("serial", "unroll")
FOR_SCANS = ("env_threads", "compute_at", "compute_root", "reorder", "pragma", "set_scope", *_KINDS)
FOR_UPDATES = (
    *("split", "fuse", "reorder", "pragma", "compute_at", "compute_root", "cache_write", "rfactor", "parallel", "vectorize", "bind"),
    *("sample_tile", *_KINDS),
)
FOR_STEPS = (*FOR_UPDATES, "compute_inline", "set_scope", "storage_align")
NOT_FOR_INITS = ("transform_layout", "set_store_predicate", "rolling_buffer")


def check_scan_primitive(tree: ScheduleTree, stage: StageNode, primitive: str) -> None:
    """Refuse a primitive that means nothing for a scan, what a step computes, or what a scan starts from.

    Raises:
        ScheduleError: naming what can be scheduled in its place.
    """
    if isinstance(stage.op, ScanOp):
        if primitive not in FOR_SCANS:
            updates = ", ".join(tensor.op.name for tensor in stage.op.update)
            raise stage.refused(f"{primitive} is not for a scan, whose only loop is time; schedule the loops of its update: {updates}")
        return
    owner = tree.carried.get(stage.id)
    if owner is not None:
        allowed = FOR_UPDATES if is_update(tree, stage) else FOR_STEPS
        if primitive not in allowed:
            raise stage.refused(
                f"{primitive} is not for what a step of {tree[owner].name} computes; such a stage takes {', '.join(allowed)}"
            )
    elif primitive in NOT_FOR_INITS and any(isinstance(reader.op, ScanOp) for reader in tree.consumers(stage)):
        raise stage.refused(f"{primitive} is not for the init of a scan; leave its elements as they are declared")


def is_update(tree: ScheduleTree, stage: StageNode) -> bool:
    """True if the stage stores the rows of a scan."""
    owner = tree.carried.get(stage.id)
    scan = tree[owner].op if owner is not None else None
    return isinstance(scan, ScanOp) and any(tensor.op is stage.origin for tensor in scan.update)


def check_update_stays(tree: ScheduleTree, stage: StageNode, primitive: str) -> None:
    """Refuse to move a scan, or its update.

    Raises:
        ScheduleError: naming what may be moved.
    """
    if isinstance(stage.op, ScanOp):
        raise stage.refused(f"{primitive} can't move a scan, which is computed whole at the root")
    if is_update(tree, stage):
        scan = tree[tree.carried[stage.id]]
        raise stage.refused(
            f"{primitive} can't move the update of {scan.name}, which every step computes; "
            "move what it reads, or cache_write it and move the new stage"
        )


def time_axes(tree: ScheduleTree, stage: StageNode) -> set[int]:
    """The root axes of a stage of a step that depend on time: for the update the first, else what its readers index so."""
    if is_update(tree, stage):
        return {0}
    found: set[int] = set()
    for reader in tree.consumers(stage):
        if reader.id not in tree.carried:
            continue
        # Ends at the update: what a step hands to the next one goes through a state, a placeholder, so reads make no cycle.
        times = {reader.axes[axis].var for axis in time_axes(tree, reader)}
        for load in tree.reads(reader):
            if tree.producer(load).id == stage.id:
                found.update(axis for axis, index in enumerate(load.indices) if times & set(variables(index)))
    return found


def check_time_loop(tree: ScheduleTree, stage: StageNode, path: Iterable[tuple[StageNode, int]]) -> None:
    """Check the laws 2 and 3 for one stage; `path` are the loops around it.

    Raises:
        ScheduleError: naming the stage and what to do.
    """
    owner = tree.carried.get(stage.id)
    if owner is None or stage.is_placeholder:
        return
    scan = tree[owner]
    loop = scan.axes[0].name
    if not any(target.id == owner for target, _ in path):
        raise stage.refused(
            f"it depends on a state of {scan.name}, so it can't be computed outside of the loop {loop!r}; "
            f"compute_at that loop, or one of a stage inside of it"
        )
    for axis in time_axes(tree, stage):
        check_untouched(stage, axis, scan)


def check_untouched(stage: StageNode, axis: int, scan: StageNode) -> None:
    """Refuse splits, fusions and kinds of a root axis that is time.

    Raises:
        ScheduleError: naming the axis and the loop that does run over time.
    """
    used = any(axis == relation.parent if isinstance(relation, SplitRelation) else axis in relation.parts for relation in stage.relations)
    if used or stage.mark(axis).kind not in (LoopKind.SERIAL, LoopKind.UNROLL):
        raise stage.refused(
            f"its axis {stage.axes[axis].name!r} is the time of {scan.name}, of which each step computes "
            f"its own part, so it can't be split, fused or run at once; steps run in order in the loop {scan.axes[0].name!r}"
        )


def init_only(tree: ScheduleTree, stage: StageNode, scan: StageNode) -> bool:
    """True if a scan's own reads of a stage are for its first rows, before the time loop."""
    return isinstance(scan.op, ScanOp) and not is_update(tree, stage)


def storage_of(tree: ScheduleTree, stage: StageNode, output: int) -> tuple[int, int]:
    """The stage and output whose storage holds output `output` of `stage`: a scan's, for its states and updates."""
    owner = tree.carried.get(stage.id)
    scan = tree[owner].op if owner is not None else None
    if owner is not None and isinstance(scan, ScanOp):
        for place, (state, update) in enumerate(zip(scan.state_placeholder, scan.update, strict=True)):
            # one storage for both: a step reads the rows that steps before it have stored
            if stage.origin is state.op or (stage.origin is update.op and update.value_index == output):
                return owner, place
    return stage.id, output
