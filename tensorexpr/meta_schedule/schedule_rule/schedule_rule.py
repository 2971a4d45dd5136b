"""The protocol of schedule rules: what may be done with a block."""

from __future__ import annotations

from ...schedule.blocks import BlockRV, Schedule
from ..tune_context import Contextual


class ScheduleRule(Contextual, what="list of schedule rules"):
    """Makes design spaces of a schedule by what it does with one block.

    `defaults` has for each kind of target what makes its rules; `register_defaults` adds one.
    """

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules that `sch` becomes: `[sch]` if nothing is done with this block."""
        raise NotImplementedError


class PyScheduleRule(ScheduleRule):
    """Base of schedule rules that users write."""


create = ScheduleRule.create
