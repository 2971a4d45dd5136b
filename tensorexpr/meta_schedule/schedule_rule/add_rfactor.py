"""`AddRFactor`: long reductions to few results are cut into partial ones, which run in parallel."""

from __future__ import annotations

from ...errors import ScheduleError
from ...schedule.blocks import BlockRV, LoopRV, Schedule
from ...schedule.blocks.thread_binding import is_root
from ..tune_context import TuneContext
from .analysis import REDUCE, SPATIAL, bound_loops, needs_rfactor
from .schedule_rule import PyScheduleRule

RANDOM_PRODUCER = "meta_schedule.random_compute_producer"


class AddRFactor(PyScheduleRule):
    """Splits the reduction loops and factors out the outer or the inner part.

    Args:
        max_jobs_per_core: a program that has more iterations of spatial loops than this times the cores needs none; -1 for no limit.
        max_innermost_factor: the largest inner part.
    """

    def __init__(self, max_jobs_per_core: int = 16, max_innermost_factor: int | None = None) -> None:
        self.max_jobs_per_core = max_jobs_per_core
        self.max_innermost_factor = max_innermost_factor
        self._cores = 1

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task's number of cores."""
        self._cores = context.target.num_cores

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedule with each part factored out, and as it is."""
        limit = self._cores * self.max_jobs_per_core if self.max_jobs_per_core > 0 else 1 << 62
        if is_root(sch, block) or not needs_rfactor(sch, block, limit):
            return [sch]
        # the rule works in place, and the block as it is stays a choice
        plain = sch.copy()
        try:
            fused, outer = _fused_reduction(sch, block)
        except ScheduleError:
            return [plain]
        factors = sch.sample_perfect_tile(fused, n=2, max_innermost_factor=self.max_innermost_factor or -1)
        found = []
        for loop in sch.split(fused, factors):
            factored = sch.copy()
            try:
                factored.rfactor(loop, outer)
            except ScheduleError:
                continue
            factored.annotate(block, RANDOM_PRODUCER, 1)
            found.append(factored)
        return [*found, plain]


def _fused_reduction(sch: Schedule, block: BlockRV) -> tuple[LoopRV, int]:
    """One loop over all that is reduced, inside of the spatial loops, and how many of those there are."""
    loops = bound_loops(sch, block) or []
    spatial = [loop.loop for loop in loops if loop.kind == SPATIAL]
    reduced = [loop.loop for loop in loops if loop.kind == REDUCE]
    if [loop.loop for loop in loops] != [*spatial, *reduced]:
        sch.reorder(*spatial, *reduced)
    return (sch.fuse(*reduced) if len(reduced) > 1 else reduced[0]), len(spatial)
