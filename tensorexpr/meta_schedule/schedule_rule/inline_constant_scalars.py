"""`InlineConstantScalars`: a block that makes one constant number disappears into those that read it."""

from __future__ import annotations

from ...errors import ScheduleError
from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.thread_binding import is_root
from ...tir.arithmetic import as_int
from ...tir.block import Block
from ...tir.rewriting import variables
from ...tir.stmt import BufferStore
from .analysis import is_constant
from .schedule_rule import PyScheduleRule


class InlineConstantScalars(PyScheduleRule):
    """Inlines blocks that write one element with a constant."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedule without the block, if it is one of these."""
        stmt: Block = sch.get(block)
        if is_root(sch, block) or not is_constant(stmt) or not isinstance(stmt.body, BufferStore) or variables(stmt.body.value):
            return [sch]
        if all(as_int(extent) == 1 for extent in stmt.body.buffer.shape):
            try:
                sch.compute_inline(block)
            except ScheduleError:
                return [sch]
        return [sch]
