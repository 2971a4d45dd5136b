"""`ApplyCustomRule`: what a computation says itself about how to schedule it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import TuningError
from ...runtime.registry import get_global_func
from ...schedule.blocks import BlockRV, Schedule
from .schedule_rule import PyScheduleRule

if TYPE_CHECKING:
    from ..tune_context import TuneContext

ANNOTATION = "schedule_rule"
_NOTHING = "None"


class ApplyCustomRule(PyScheduleRule):
    """Calls the registered function that a block's annotation `schedule_rule` names, as (schedule, block).

    The name is looked up as it is, and then as meta_schedule.TARGET.NAME for each key and the kind of the target. "None" asks for nothing.
    """

    def __init__(self) -> None:
        self._keys: tuple[str, ...] = ("cpu",)

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task's target."""
        self._keys = (*context.target.keys, context.target.kind.name)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """What the function gives: a schedule or several.

        Raises:
            TuningError: if no function of the name is registered, or it gives something else.
        """
        name = sch.get(block).annotations.get(ANNOTATION)
        if not isinstance(name, str) or name == _NOTHING:
            return [sch]
        names = [name, *(f"meta_schedule.{key}.{name}" for key in self._keys)]
        found = next((f for f in (get_global_func(one, allow_missing=True) for one in names) if f is not None), None)
        if found is None:
            raise TuningError(f"a block asks for the schedule rule {name!r}, but no function is registered as {' or '.join(names)}")
        made: Any = found(sch, block)
        listed = [sch] if made is None else list(made) if isinstance(made, (list, tuple)) else [made]
        if not all(isinstance(one, Schedule) for one in listed):
            raise TuningError(f"the schedule rule {name!r} gives a schedule or a list of schedules, not {made!r}")
        return listed
