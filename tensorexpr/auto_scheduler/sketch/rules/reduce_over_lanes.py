"""Put the terms of a reduction that are neighbours in memory into the lanes of vectors."""

from __future__ import annotations

from ....schedule.tree import Root
from ....te.access import needs_multi_level_tiling
from ..operands import operands_of
from ..reductions import lane_axis, over_rows
from ..rule import Meet, RuleOptions, SketchRule, previous
from ..state import SketchState


class ReduceOverLanes(SketchRule):
    """One accumulator per lane, combined in the end; rows of results in parallel."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """Reductions at the root along an axis that can be lanes; of those with data reuse, the ones that stream an operand."""
        node = state.stage(stage)
        if not node.has_loops or stage in state.finished or not isinstance(node.attach, Root) or not len(node.reduction):
            return Meet.SKIP
        if lane_axis(state.tree, node, options) is None:
            return Meet.SKIP
        if not needs_multi_level_tiling(node.op):
            return Meet.APPLY_AND_SKIP_REST
        streamed = any(all(operand.moves_with(axis) for axis in node.spatial) for operand in operands_of(state.tree, node))
        return Meet.APPLY if streamed else Meet.SKIP  # a product whose operands are read again wants a tile

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        return [(over_rows(state, stage, options), previous(state, stage))]
