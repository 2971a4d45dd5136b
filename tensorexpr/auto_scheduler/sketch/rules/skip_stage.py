"""Leave a stage as it is; its loops are marked when all stages have been visited."""

from __future__ import annotations

from ..rule import Meet, RuleOptions, SketchRule, previous
from ..state import SketchState


class SkipStage(SketchRule):
    """Nothing to do here."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        return Meet.APPLY

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        return [(state, previous(state, stage))]
