"""Knobs: what the function of a template decided before it made the steps that follow."""

from __future__ import annotations

from typing import ClassVar

from ...dataclass import dataclass
from ...errors import ScheduleError
from ..naming import PythonNames
from ..tree import ScheduleTree
from .base import Step


@dataclass(frozen=True)
class Knob(Step):
    """A decision of a template: candidate `decision` of `candidates`.

    The steps that follow in the trace are what the template's function made of all its knobs, so that they can be replayed where that
    function isn't known; the step itself changes nothing.
    """

    code: ClassVar[str] = "knob"
    name: str
    candidates: int
    decision: int

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree as it is.

        Raises:
            ScheduleError: for a decision that is no place among the candidates.
        """
        if not 0 <= self.decision < self.candidates:
            raise ScheduleError(f"the knob {self.name!r} has {self.candidates} candidates, and no number {self.decision}")
        return tree

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        return []
