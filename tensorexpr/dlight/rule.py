"""What a rule is: a function of blocks in, its schedule out, or None where it has none to give."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from ..errors import LoweringError
from ..schedule.blocks import Schedule
from ..target import Target
from ..tir.function import PrimFunc

Schedules = Schedule | list[Schedule] | None


class ScheduleRule(ABC):
    """A way to schedule some functions. Derive from it, or decorate a function with `ScheduleRule.from_callable(name)`."""

    @abstractmethod
    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedules:
        """The function's schedule.

        Args:
            func: of blocks.
            target: what it will run on.
            tunable: whether decisions may be left open, and several schedules be given.

        Returns:
            A schedule or several, or None to leave the function to the next rule.
        """

    def scheduled(self, func: PrimFunc, target: Target) -> PrimFunc | None:
        """The function as `ApplyDefaultSchedule` takes it: with the one schedule of `apply`; None where there is none.

        Raises:
            LoweringError: if there are several.
        """
        found = self.apply(func, target, False)
        schedules = found if isinstance(found, list) else [found]
        if len(schedules) != 1:
            raise LoweringError(f"{type(self).__name__} gives {len(schedules)} schedules; ApplyDefaultSchedule takes one")
        return None if schedules[0] is None else schedules[0].mod["main"]

    @staticmethod
    def from_callable(name: str) -> Callable[[Callable[[PrimFunc, Target, bool], Schedules]], ScheduleRule]:
        """A decorator that makes a rule of a function with the arguments of `apply`."""

        def decorate(wrapped: Callable[[PrimFunc, Target, bool], Schedules]) -> ScheduleRule:
            class Rule(ScheduleRule):
                def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedules:
                    return wrapped(func, target, tunable)

            Rule.__name__ = name
            return Rule()

        return decorate

    def is_target_available(self, target: Target) -> bool:
        """Whether the rule has schedules for a target."""
        return True
