"""A trace: the steps of a schedule. It is the schedule; the tree is what applying it to a program gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..dataclass import dataclass, field
from ..errors import RecordError, ScheduleError
from ..tir.printer.highlight import ShownAsText
from .naming import PythonNames
from .steps import Sampling, Step, step_from_json
from .tree import ScheduleTree

MAX_STEPS = 10_000


@dataclass(frozen=True)
class Trace(ShownAsText):
    """An immutable sequence of steps."""

    steps: tuple[Step, ...] = field(default=())

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        return "\n".join(str(step) for step in self.steps)

    def append(self, step: Step) -> Trace:
        """This trace with one more step."""
        return Trace((*self.steps, step))

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree after all steps.

        Raises:
            ScheduleError: naming the first step that does not fit, by number.
        """
        for number, step in enumerate(self.steps):
            try:
                tree = step.apply(tree)
            except ScheduleError as error:
                raise ScheduleError(f"step {number} ({step.code}): {error}") from error
        return tree

    @property
    def open_decisions(self) -> tuple[int, ...]:
        """Numbers of the sampling steps whose value is open."""
        return tuple(n for n, step in enumerate(self.steps) if isinstance(step, Sampling) and step.decision is None)

    def to_json(self) -> list[Any]:
        """The steps as JSON."""
        return [step.to_json() for step in self.steps]

    @staticmethod
    def from_json(data: Any) -> Trace:
        """The trace of JSON that `to_json` made.

        Raises:
            RecordError: for anything else.
        """
        if not isinstance(data, list) or len(data) > MAX_STEPS:
            raise RecordError(f"a trace is a list of at most {MAX_STEPS} steps")
        return Trace(tuple(step_from_json(item) for item in data))

    def as_python(self, tree: ScheduleTree) -> list[str]:
        """The Python lines that schedule the program of `tree` like this trace."""
        # of the whole schedule, as the factors of any step may name its samples and sizes
        names = PythonNames(self.apply(tree))
        lines = [line for stage in tree.in_order() for line in names.axis_lines(stage)]
        for step in self.steps:
            after = step.apply(tree)
            lines.extend(step.python(tree, after, names))
            tree = after
        return lines
