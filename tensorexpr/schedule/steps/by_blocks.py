"""`ByBlocks`: the loops of a program as primitives on blocks make them, in place of steps on stages."""

from __future__ import annotations

from typing import ClassVar

from ...dataclass import dataclass, replace
from ...errors import ScheduleError
from ..block_lines import block_lines
from ..naming import PythonNames
from ..tree import ScheduleTree
from .base import JsonText, Step


@dataclass(frozen=True)
class ByBlocks(Step):
    """The counterpart of `schedule_tensors`: a trace of `tir.Schedule`, for the function of blocks that computes the same tensors.

    So a search over schedules of blocks writes the records that all others write, and whoever replays a record replays this one. No other
    step changes such a program; the function is made, and the trace applied to it, when the program is lowered (`lower.phase0.by_blocks`).

    Args:
        instructions: the trace as JSON text.
    """

    code: ClassVar[str] = "by_blocks"
    instructions: JsonText

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree whose loops are made by blocks.

        Raises:
            ScheduleError: where steps on stages came before.
        """
        if tree.scheduled is not None:
            raise ScheduleError(f"a trace of blocks schedules a program as it was declared; {tree.scheduled.name} is scheduled already")
        return replace(tree, by_blocks=self.instructions)

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        return ["# the loops are made by a trace of blocks:", *(f"# {line}" for line in block_lines(self.instructions))]
