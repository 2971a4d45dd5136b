"""The protocol of schedule rules: what may be done with a block."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, ClassVar

from ...schedule.blocks import BlockRV, Schedule
from ..utils import Contextual, chosen


class ScheduleRule(Contextual):
    """Makes design spaces of a schedule by what it does with one block.

    `defaults` has for each kind of target what makes its rules; `register_defaults` adds one.
    """

    defaults: ClassVar[dict[str, Callable[[], list[ScheduleRule]]]] = {}

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules that `sch` becomes: `[sch]` if nothing is done with this block."""
        raise NotImplementedError

    def clone(self) -> ScheduleRule:
        """A rule like this one that belongs to no task yet."""
        return copy(self)

    @staticmethod
    def create(kind: str) -> list[ScheduleRule]:
        """The rules for a kind of target, in the order in which they are tried.

        Raises:
            TuningError: for a kind without rules.
        """
        made: list[ScheduleRule] = chosen(kind, ScheduleRule.defaults, "list of schedule rules")()
        return made


class PyScheduleRule(ScheduleRule):
    """Base of schedule rules that users write."""


def create(kind: str) -> list[Any]:
    """The rules for a kind of target, see `ScheduleRule.create`."""
    return list(ScheduleRule.create(kind))
