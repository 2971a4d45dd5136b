"""`AutoBind`: blocks that no other rule gave to a grid run on it."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import TuningError
from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.thread_binding import THREAD_EXTENTS, bind_block, factor_sampler
from ..tune_context import TuneContext
from .schedule_rule import PyScheduleRule


class AutoBind(PyScheduleRule):
    """Binds the outer loops of data of a block to blocks and threads.

    Args:
        max_threadblocks: blocks of the grid, at most.
        thread_extents: numbers of threads, of which one is sampled where the loops have so many iterations; 32 to 1024 if None.
        max_threads_per_block: threads of a block; None for the target's.
    """

    def __init__(
        self, max_threadblocks: int = 256, thread_extents: Sequence[int] | None = None, max_threads_per_block: int | None = None
    ) -> None:
        self.max_threadblocks = max_threadblocks
        self.thread_extents = tuple(THREAD_EXTENTS if thread_extents is None else thread_extents)
        self.max_threads_per_block = max_threads_per_block

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the most threads of the task's target, if none were given.

        Raises:
            TuningError: if the target has none.
        """
        if self.max_threads_per_block is None:
            self.max_threads_per_block = threads_of(context, type(self).__name__)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedule with the block bound."""
        bind_block(sch, block, self.max_threadblocks, self.max_threads_per_block or 0, factor_sampler(sch, self.thread_extents))
        return [sch]


def threads_of(context: TuneContext, asking: str) -> int:
    """The most threads of a block on a task's target.

    Raises:
        TuningError: if the target doesn't say.
    """
    most = context.target.attrs.get("max_threads_per_block")
    if most is None:
        raise TuningError(f"{asking} needs max_threads_per_block of the target {context.target}: pass -max_threads_per_block=1024")
    return int(most)
