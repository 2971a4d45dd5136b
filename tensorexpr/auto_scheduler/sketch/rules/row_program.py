"""Compute all stages of a row together."""

from __future__ import annotations

from ..rows import is_row_program, schedule_rows
from ..rule import Meet, RuleOptions, SketchRule
from ..state import SketchState


class RowProgram(SketchRule):
    """Softmax, norms, means: every stage at the loop over rows of the last one, so that a row never leaves the nearest cache."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        node = state.stage(stage)
        if not node.has_loops or stage in state.finished or len(state.trace):
            return Meet.SKIP
        return Meet.APPLY if is_row_program(state, node) else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        return [(schedule_rows(state, stage, options), None)]
