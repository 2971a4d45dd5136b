"""`ParallelizeVectorizeUnroll`: how much a program may do at once; said at its root, done when it is finished."""

from __future__ import annotations

from collections.abc import Sequence

from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.thread_binding import is_root
from ..tune_context import TuneContext
from .analysis import blocks_below, is_spatial
from .schedule_rule import PyScheduleRule

PARALLEL = "meta_schedule.parallel"
VECTORIZE = "meta_schedule.vectorize"
UNROLL_EXPLICIT = "meta_schedule.unroll_explicit"
UNROLL_IMPLICIT = "meta_schedule.unroll_implicit"


class ParallelizeVectorizeUnroll(PyScheduleRule):
    """Marks the root block with what `RewriteParallelVectorizeUnroll` does to all blocks.

    Args:
        max_jobs_per_core: iterations of the parallel loop for each core, at most; -1 for no parallel loops.
        max_vectorize_extent: lanes; -1 for no vectors.
        unroll_max_steps: numbers of steps to unroll, of which one is sampled if anything is reduced; None or empty for none.
        unroll_explicit: unroll here, not by leaving it to the compiler.
    """

    def __init__(
        self,
        max_jobs_per_core: int = 16,
        max_vectorize_extent: int = 16,
        unroll_max_steps: Sequence[int] | None = None,
        unroll_explicit: bool = True,
    ) -> None:
        self.max_jobs_per_core = max_jobs_per_core
        self.max_vectorize_extent = max_vectorize_extent
        self.unroll_max_steps = list(unroll_max_steps or ())
        self.unroll_explicit = unroll_explicit
        self._cores = 1

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task's number of cores."""
        self._cores = context.target.num_cores

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedule with its root marked."""
        if not is_root(sch, block):
            return [sch]
        if self.max_jobs_per_core > 0:
            sch.annotate(block, PARALLEL, self.max_jobs_per_core * self._cores)
        if self.max_vectorize_extent > 0:
            sch.annotate(block, VECTORIZE, self.max_vectorize_extent)
        if self.unroll_max_steps and any(not is_spatial(stmt) for stmt in blocks_below(sch.get(block))):
            count = len(self.unroll_max_steps)
            steps = sch.sample_categorical(self.unroll_max_steps, [1.0 / count] * count)
            sch.annotate(block, UNROLL_EXPLICIT if self.unroll_explicit else UNROLL_IMPLICIT, steps)
        return [sch]
