"""What must hold of a whole tree before it is lowered. Steps check what they can; this checks what needs every stage.

1. Coverage: a stage that is computed at a loop is read only inside that loop.
2. Parallel loops do not nest.
3. Nothing is computed inside a vectorised loop but the loop's own stage.
4. Threads of a grid do not nest in threads of the same tag (see `thread_legality`).
5. A double buffered stage can be computed an iteration early (see `buffering_legality`).
6. Nothing stands in, or is said about, a loop inside a tensorized one (see `tensorize_legality`).
7. What depends on a state of a scan stays in its time loop (see `scans`).
8. Prefetches, rolling buffers and store predicates fit what is read where (see `memory_rules`).
9. What an extern takes the address of is compact.
10. A program is scheduled by a trace of blocks or by steps on stages, not by both.
11. A loop variable means one loop: a reduce_axis that two stages share isn't a loop of both, one inside the other.
"""

from __future__ import annotations

from ..te.extern import ExternOp, addressed, is_plain
from .attachment import enclosing_loops, is_inside
from .buffering_legality import check_double_buffer
from .memory_rules import check_memory_rules
from .scans import check_time_loop, init_only
from .tensorize_legality import check_tensorized
from .thread_legality import check_threads
from .tree import At, Inline, LoopKind, ScheduleTree, StageNode


def check_tree(tree: ScheduleTree) -> None:
    """Check the laws above.

    Raises:
        ScheduleError: naming the stage, the law that fails and what to do.
    """
    if tree.by_blocks and tree.scheduled is not None:
        raise tree.scheduled.refused("the program's loops are made by a trace of blocks, which no step on stages follows")
    # Once for all stages: each inlined stage passes its readers on, which for every stage by itself would be a walk of the whole tree.
    readers = real_readers(tree)
    for stage in tree.in_order():
        if stage.has_loops:
            check_memory_rules(tree, stage)
        if stage.is_placeholder or isinstance(stage.attach, Inline):
            continue
        if isinstance(stage.op, ExternOp):
            _check_extern(tree, stage.op)
        path = tuple(enclosing_loops(tree, stage))
        _check_kinds(stage, path)
        _check_own_loops(stage, path)
        check_threads(stage, path)
        check_time_loop(tree, stage, path)
        check_tensorized(tree, stage)
        if stage.double_buffer:
            check_double_buffer(tree, stage, readers)
        if isinstance(stage.attach, At):
            _check_coverage(tree, stage, readers[stage.id])


def _check_extern(tree: ScheduleTree, op: ExternOp) -> None:
    """What an extern hands to others as compact memory must be compact."""
    pointers = addressed(op)
    for placeholder, tensor in op.pairs():
        stage = tree.find(tensor.op)
        if stage is not None and stage.aligns and is_plain(placeholder) and placeholder.data in pointers:
            raise stage.refused(
                f"storage_align keeps its rows apart, but the extern {op.name} takes its address and "
                "knows it as compact; leave storage_align out, or declare the extern with in_buffers that have strides as variables"
            )


def real_readers(tree: ScheduleTree) -> dict[int, tuple[StageNode, ...]]:
    """For each stage the stages whose loops read it once inlined stages are gone."""
    readers: dict[int, dict[int, StageNode]] = {stage.id: {} for stage in tree.stages}
    for stage in reversed(tuple(tree.in_order())):  # readers first: an inlined one passes its own on
        effective = readers[stage.id] if isinstance(stage.attach, Inline) else {stage.id: stage}
        for load in tree.reads(stage):
            readers[tree.producer(load).id].update(effective)
    return {number: tuple(found.values()) for number, found in readers.items()}


def _check_kinds(stage: StageNode, path: tuple[tuple[StageNode, int], ...]) -> None:
    for target, axis in path:
        name = target.axes[axis].name
        if target.mark(axis).kind is LoopKind.VECTORIZE:
            raise stage.refused(
                f"it is computed inside the vectorised loop {name!r} of {target.name}; compute it at a loop further out, or inline it"
            )
        inner = [stage.axes[a].name for a in stage.leaf if stage.mark(a).kind is LoopKind.PARALLEL]
        # A region of threads inside of each thread: the runtime would run the inner one on one thread, or start cores times cores of them.
        if inner and target.mark(axis).kind is LoopKind.PARALLEL:
            raise stage.refused(
                f"its parallel loop {inner[0]!r} lies inside the parallel loop {name!r} of {target.name}; keep one of them parallel"
            )


def _check_own_loops(stage: StageNode, path: tuple[tuple[StageNode, int], ...]) -> None:
    # an axis that two reductions were declared with is one variable, which has one value at a time
    own = {stage.axes[axis].var for axis in stage.leaf}
    for target, axis in path:
        if target.axes[axis].var in own:
            name = target.axes[axis].name
            raise stage.refused(
                f"it reduces over the same reduce_axis {name!r} as {target.name}, inside that loop; "
                f"declare a reduce_axis for each, split {name!r} of one of them, or compute {stage.name} further out"
            )


def _check_coverage(tree: ScheduleTree, stage: StageNode, readers: tuple[StageNode, ...]) -> None:
    """Every reader is the target itself or computed at the same loop or further in."""
    assert isinstance(stage.attach, At)
    target, axis = tree[stage.attach.stage], stage.attach.axis
    if not readers:
        raise stage.refused(f"nothing reads it, so it can't be computed at {target.name}; leave it at the root")
    for reader in readers:
        # A scan copies its init before its time loop runs, and so reads it outside of every iteration.
        reads_inside = reader.id == target.id and not init_only(tree, stage, target)
        if not reads_inside and not is_inside(tree, reader, target.id, axis):
            raise stage.refused(
                f"it is computed at loop {target.axes[axis].name!r} of {target.name}, but {reader.name} also reads it outside that loop; "
                f"compute {reader.name} inside that loop too, or {stage.name} at the root"
            )
