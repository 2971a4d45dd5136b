"""`CrossThreadReduction`: the threads of a block share a reduction, and what it makes stays with those who read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dataclass import dataclass
from ...schedule.blocks import BlockRV, LoopRV, Schedule
from ...schedule.blocks.thread_binding import THREADS, in_threads, is_root
from ..tune_context import TuneContext
from .analysis import REDUCE, SPATIAL, loop_kind, needs_rfactor, needs_tiling
from .schedule_rule import PyScheduleRule


@dataclass
class _Place:
    """Where a reduction can be computed: at a loop of a block that reads it, whose innermost loop is given too."""

    loop: LoopRV
    consumer: BlockRV
    innermost: LoopRV


class CrossThreadReduction(PyScheduleRule):
    """Splits the reduction loops among threads, and computes the block at those who read it, in shared memory, where it can be.

    On targets that don't say how many threads a block and a warp have, nothing is done.

    Args:
        thread_extents: numbers of threads, of which one is sampled.
    """

    def __init__(self, thread_extents: Sequence[int]) -> None:
        self.thread_extents = list(thread_extents)
        self._max_threads = 0

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the threads of a block of the task's target."""
        attrs = context.target.attrs
        self._max_threads = int(attrs.get("max_threads_per_block", 0)) if "thread_warp_size" in attrs else 0

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedule with the reduction shared by threads, and as it is; or only as it is."""
        if not self._max_threads or is_root(sch, block) or not needs_rfactor(sch, block, self._max_threads):
            return [sch]
        shared = sch.copy()
        place = _place_of(shared, block)
        count = len(self.thread_extents)
        threads = shared.sample_categorical(self.thread_extents, [1.0 / count] * count)
        if place is not None:
            threads = _move(shared, block, place, threads)
        inner = shared.split(_fused_reduction(shared, block), [None, threads])[1]
        shared.bind(inner, f"{THREADS}.x")
        return [shared, sch]


def _place_of(sch: Schedule, block: BlockRV) -> _Place | None:
    """Where a block can be computed with those who read it; None for several results, no readers, or readers without a common loop."""
    if len(sch.get(block).writes) != 1:
        return None
    consumers = sch.get_consumers(block)
    if not consumers or needs_tiling(sch, consumers[0]):
        return None
    around = [sch.get_loops(consumer) for consumer in consumers]
    common = _common(sch, around)
    if len(consumers) > 1 and not common:
        return None
    depth = _depth(sch, sch.get_loops(block), min(len(around[0]), common) if len(consumers) > 1 else len(around[0]))
    return _Place(around[0][depth - 1], consumers[0], around[0][-1]) if depth else None


def _common(sch: Schedule, around: Sequence[Sequence[LoopRV]]) -> int:
    """How many outer loops several blocks share."""
    same = [all(sch.get(loop) is sch.get(level[0]) for loop in level) for level in zip(*around, strict=False)]
    return same.index(False) if False in same else len(same)


def _depth(sch: Schedule, loops: Sequence[LoopRV], limit: int) -> int:
    """How many of a block's outer loops are of data, at most so many: it can be computed as deep in the loops of those who read it."""
    count = 0
    for loop in loops[:limit]:
        if loop_kind(sch.get(loop)) != SPATIAL:
            break
        count += 1
    return count


def _move(sch: Schedule, block: BlockRV, place: _Place, threads: Any) -> Any:
    """Compute a block at a place, in memory that threads share; who reads it runs over threads too: so many, or as many as before.

    Returns:
        the number of threads.
    """
    target = place.loop
    if in_threads(sch, place.consumer):
        threads = _threads_around(sch, place.consumer, threads)
    else:
        outer, inner = sch.split(place.innermost, [None, threads])
        sch.bind(inner, f"{THREADS}.x")
        # the split took the place of the innermost loop
        target = outer if target is place.innermost else target
    sch.compute_at(block, target, preserve_unit_loops=True)
    sch.set_scope(block, 0, "shared")
    return threads


def _threads_around(sch: Schedule, block: BlockRV, default: Any) -> Any:
    """The factor that split off the threads of a block: the random variable itself, so that other decisions change both."""
    insts = sch.trace.insts if sch.trace is not None else ()
    bound = {inst.inputs[0] for inst in insts if inst.kind == "Bind" and inst.attrs[0] == f"{THREADS}.x"}
    around = [sch.get(loop) for loop in sch.get_loops(block)]
    for inst in insts:
        # inputs are the loop and its factors, outputs the parts in their order
        for factor, loop in zip(inst.inputs[1:], inst.outputs, strict=False) if inst.kind == "Split" else ():
            if loop in bound and any(sch.get(loop) is one for one in around):
                return factor
    return default


def _fused_reduction(sch: Schedule, block: BlockRV) -> LoopRV:
    """One loop over all that is reduced, inside of the others."""
    loops = sch.get_loops(block)
    reducing = [loop for loop in loops if loop_kind(sch.get(loop)) == REDUCE]
    others = [loop for loop in loops if loop not in reducing]
    if loops != [*others, *reducing]:
        sch.reorder(*others, *reducing)
    return sch.fuse(*reducing) if len(reducing) > 1 else reducing[0]
