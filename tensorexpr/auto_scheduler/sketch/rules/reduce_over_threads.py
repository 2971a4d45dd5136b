"""Cut a reduction with few results over the threads."""

from __future__ import annotations

from ....schedule.tree import Root
from ..reductions import can_be_cut, over_threads
from ..rule import Meet, RuleOptions, SketchRule, previous
from ..state import SketchState


class ReduceOverThreads(SketchRule):
    """Each thread has results of its own, which one pass combines."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        node = state.stage(stage)
        if not node.has_loops or stage in state.finished or not isinstance(node.attach, Root):
            return Meet.SKIP
        return Meet.APPLY if can_be_cut(state.tree, node, options) else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        return [(over_threads(state, stage, options), previous(state, stage))]
