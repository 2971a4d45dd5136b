"""Give a tiled stage that has no elementwise consumer a consumer of its own: the copy out of a local tile."""

from __future__ import annotations

from dataclasses import replace

from ....schedule.steps import CacheWrite
from ....te.access import needs_multi_level_tiling
from ..rule import Meet, RuleOptions, SketchRule
from ..state import SketchState
from ..tiling import elementwise_consumer


class AddCacheWrite(SketchRule):
    """The result is accumulated in a local tile and copied out when it is done."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        node = state.stage(stage)
        if node.is_placeholder or stage in state.cached or stage in state.finished or node.origin.num_outputs != 1:
            return Meet.SKIP
        fits = needs_multi_level_tiling(node.op) and elementwise_consumer(state.tree, node) is None
        return Meet.APPLY if fits else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        new = len(state.tree.stages)
        state = state.add(CacheWrite(stage, "local"))
        return [(replace(state, cached=state.cached | {stage, new}), new)]
