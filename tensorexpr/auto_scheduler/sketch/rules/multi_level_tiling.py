"""Tile a stage that reads elements again."""

from __future__ import annotations

from ....te.access import needs_multi_level_tiling
from ..rule import Meet, RuleOptions, SketchRule, previous
from ..state import SketchState
from ..tiling import finish_tiled, packed_reads, tile_stage


class MultiLevelTiling(SketchRule):
    """Blocks for threads, caches and registers; every size is left open."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        node = state.stage(stage)
        fits = not node.is_placeholder and stage not in state.finished and len(node.spatial) and needs_multi_level_tiling(node.op)
        return Meet.APPLY_AND_SKIP_REST if fits else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        tiled, tiling = tile_stage(state, stage, options)
        after = previous(state, stage)
        return [(finish_tiled(packed, stage, tiling, parallel=True), after) for packed in packed_reads(tiled, stage, tiling, options)]
