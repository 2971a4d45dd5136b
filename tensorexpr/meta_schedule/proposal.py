"""Names of the MetaSchedule proposal, which some programs use: composite schedules and search policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..schedule.blocks import BlockRV, Schedule
from .schedule_rule.schedule_rule import PyScheduleRule
from .search_strategy.search_strategy import PySearchStrategy
from .tune_context import TuneContext


class PyCompositeSchedule(PyScheduleRule):
    """A schedule rule by the proposal's name: `initialize` takes the task, `apply` transforms a schedule at a block."""

    def initialize(self, context: TuneContext) -> None:
        """Take the task."""

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task."""
        self.initialize(context)


class CompositeSchedule(PyCompositeSchedule):
    """A schedule rule of a function, which may be called as the function too.

    Args:
        name: for messages.
        function: takes a schedule and a block; gives None, the schedule, or a list of schedules.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._function(*args, **kwargs)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """What the function makes of a schedule."""
        made = self._function(sch, block)
        return [sch] if made is None else list(made) if isinstance(made, (list, tuple)) else [made]


def as_composite_schedule(name: str = "") -> Callable[[Callable[..., Any]], CompositeSchedule]:
    """Decorator that makes a schedule rule of a function of a schedule and a block.

    Args:
        name: for messages; the function's own if empty.
    """
    return lambda function: CompositeSchedule(name or function.__name__, function)


class PySearchPolicy(PySearchStrategy):
    """A search strategy by the proposal's name."""
