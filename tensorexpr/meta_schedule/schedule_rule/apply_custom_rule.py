"""`ApplyCustomRule`: what a computation says itself about how to schedule it."""

from __future__ import annotations

import logging
from typing import Any

from ...errors import TuningError
from ...runtime.registry import get_global_func
from ...schedule.blocks import BlockRV, Schedule
from ..tune_context import TuneContext
from .schedule_rule import PyScheduleRule

logger = logging.getLogger(__name__)

ANNOTATION = "schedule_rule"
_NOTHING = "None"


class ApplyCustomRule(PyScheduleRule):
    """Calls the registered function that a block's annotation `schedule_rule` names, as (schedule, block).

    The name is looked up as it is, and then as meta_schedule.TARGET.NAME for each key and the kind of the target. "None" asks for nothing.
    Of a name that nobody registered the log has a warning; the block is then left to the other rules. There is nothing registered here
    for the winograd blocks of TVM's library, so that other rules tile these one by one.
    """

    def __init__(self) -> None:
        self._keys: tuple[str, ...] = ("cpu",)

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task's target."""
        self._keys = (*context.target.keys, context.target.kind.name)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """What the function gives: a schedule or several.

        Raises:
            TuningError: if it gives something else.
        """
        name = sch.get(block).annotations.get(ANNOTATION)
        if not isinstance(name, str) or name == _NOTHING:
            return [sch]
        names = [name, *(f"meta_schedule.{key}.{name}" for key in self._keys)]
        found = next((f for f in (get_global_func(one, allow_missing=True) for one in names) if f is not None), None)
        sch.unannotate(block, ANNOTATION)
        if found is None:
            logger.warning("a block asks for the schedule rule %r, but no function is registered as %s", name, " or ".join(names))
            return [sch]
        made: Any = found(sch, block)
        listed = [sch] if made is None else list(made) if isinstance(made, (list, tuple)) else [made]
        if not all(isinstance(one, Schedule) for one in listed):
            raise TuningError(f"the schedule rule {name!r} gives a schedule or a list of schedules, not {made!r}")
        return listed
