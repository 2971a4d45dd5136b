"""Keep a tile of accumulators in registers over the whole reduction."""

from __future__ import annotations

from ....te.access import needs_multi_level_tiling
from ..register_plan import register_plans
from ..register_tiling import tile_in_registers
from ..rule import Meet, RuleOptions, SketchRule, previous
from ..state import SketchState
from ..tiling import elementwise_consumer


class RegisterTiling(SketchRule):
    """Rows and vectors of a tile, of sizes that need not divide; one program for each order of loops and way to pack."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """Reductions of one output with data reuse, of which `register_plans` knows tiles that fit the registers."""
        node = state.stage(stage)
        if node.is_placeholder or stage in state.finished or not len(node.reduction) or not needs_multi_level_tiling(node.op):
            return Meet.SKIP
        consumer = elementwise_consumer(state.tree, node)
        if consumer is None or consumer.id in state.finished or node.origin.num_outputs != 1:
            return Meet.SKIP
        return Meet.APPLY if register_plans(state, node, options) else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        consumer = elementwise_consumer(state.tree, state.stage(stage))
        assert consumer is not None
        after = previous(state, stage)
        plans = register_plans(state, state.stage(stage), options)
        return [(tile_in_registers(state, stage, consumer.id, plan, options), after) for plan in plans]
