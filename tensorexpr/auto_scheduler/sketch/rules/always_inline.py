"""Inline what costs nothing to compute again."""

from __future__ import annotations

from ....schedule.steps import ComputeInline
from ....te.access import is_strictly_inlineable
from ..rule import Meet, RuleOptions, SketchRule, previous
from ..state import SketchState


class AlwaysInline(SketchRule):
    """A stage without reduction whose reads are elementwise or a broadcast disappears into its readers."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """Inputs, outputs, reductions and what an extern reads stay; all else that is one expression of its reader's axes goes."""
        node = state.stage(stage)
        if not node.has_loops or node.is_output or stage in state.finished or len(node.reduction):
            return Meet.SKIP
        if not all(reader.has_loops for reader in state.tree.consumers(node)):  # an extern reads it from memory
            return Meet.SKIP
        return Meet.APPLY_AND_SKIP_REST if is_strictly_inlineable(node.op) else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        return [(state.add(ComputeInline(stage)), previous(state, stage))]
