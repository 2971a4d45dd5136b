"""Start from the programs that rules make without a search."""

from __future__ import annotations

from ..plan_programs import plan_programs
from ..rule import Meet, RuleOptions, SketchRule
from ..state import SketchState


class PlanProgram(SketchRule):
    """The plans of the whole computation, their sizes open: what is known to be fast is measured first, and varied."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        node = state.stage(stage)
        return Meet.APPLY if node.has_loops and stage == state.tree.order[-1] and not len(state.trace) else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        return [(made, None) for made in plan_programs(state, options.target)]
