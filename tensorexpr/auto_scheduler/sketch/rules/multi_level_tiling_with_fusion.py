"""Tile a stage and compute it inside its elementwise consumer, at one of two levels."""

from __future__ import annotations

from ....te.access import needs_multi_level_tiling
from ..rule import Meet, RuleOptions, SketchRule, previous
from ..state import SketchState
from ..tiling import elementwise_consumer, finish_tiled, follow_tiling, packed_reads, tile_stage

FUSION_LEVELS = (1, 2)


class MultiLevelTilingWithFusion(SketchRule):
    """The consumer follows the tiling, so a tile is still in cache (or in registers) when it is read."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """Reductions with data reuse and one elementwise reader; a stage that has its cache write already is offered to no other rule."""
        node = state.stage(stage)
        if node.is_placeholder or stage in state.finished or not len(node.spatial) or not needs_multi_level_tiling(node.op):
            return Meet.SKIP
        consumer = elementwise_consumer(state.tree, node)
        if consumer is None or consumer.id in state.finished:
            return Meet.SKIP
        return Meet.APPLY_AND_SKIP_REST if stage in state.cached else Meet.APPLY

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        """One state for each way to pack the operands and each of `FUSION_LEVELS`, at which the reader takes the tile over."""
        consumer = elementwise_consumer(state.tree, state.stage(stage))
        assert consumer is not None
        tiled, tiling = tile_stage(state, stage, options)
        made: list[tuple[SketchState, int | None]] = []
        for packed in packed_reads(tiled, stage, tiling, options):
            for level in FUSION_LEVELS:
                fused = follow_tiling(packed, stage, consumer.id, tiling, level)
                made.append((finish_tiled(fused, stage, tiling, parallel=False), previous(state, stage)))
        return made
