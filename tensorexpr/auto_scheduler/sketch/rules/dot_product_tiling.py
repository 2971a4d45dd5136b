"""Compute a contraction of small numbers with instructions that sum groups of them."""

from __future__ import annotations

from ..dot_products import dot_plans, tile_dot_products
from ..rule import Meet, RuleOptions, SketchRule, previous
from ..state import SketchState
from ..tiling import elementwise_consumer


class DotProductTiling(SketchRule):
    """Bytes by fours, bfloat16 by twos, on targets that have the instructions; nothing else comes near them."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """Reductions with one elementwise reader that `dot_plans` can lay out for the target's instructions."""
        node = state.stage(stage)
        if node.is_placeholder or stage in state.finished or not len(node.reduction) or node.origin.num_outputs != 1:
            return Meet.SKIP
        consumer = elementwise_consumer(state.tree, node)
        if consumer is None or consumer.id in state.finished:
            return Meet.SKIP
        return Meet.APPLY_AND_SKIP_REST if dot_plans(state, node, options) else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        consumer = elementwise_consumer(state.tree, state.stage(stage))
        assert consumer is not None
        after = previous(state, stage)
        plans = dot_plans(state, state.stage(stage), options)
        return [(tile_dot_products(state, stage, consumer.id, plan, options), after) for plan in plans]
