"""Rules that draw from `tensorexpr.spaces`: what Ansor has no rule for."""

from __future__ import annotations

from ....schedule.te_schedule import Schedule
from ....schedule.trace import Trace
from ....schedule.tree import Root
from ....spaces.default import scheduled_by_plans
from ....spaces.dot_tiles import dot_plans, tile_dot_products
from ....spaces.operands import operands_of
from ....spaces.reduction import contiguous_axis
from ....spaces.register_plan import register_plans
from ....spaces.register_tiling import tile_in_registers
from ....spaces.state import SketchState
from ....te.access import needs_multi_level_tiling
from ..rule import Meet, RuleOptions, SketchRule, previous

# The plans of a contraction that are tried: by their count of cycles, which is right to some 20 %.
ALTERNATIVES = 4


class PlanProgram(SketchRule):
    """The plans of the whole computation, their sizes open: what is known to be fast is measured first, and varied."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        node = state.stage(stage)
        return Meet.APPLY if node.has_loops and stage == state.tree.order[-1] and not len(state.trace) else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        """One state for each of the best plans of the contractions, the best first."""
        made: dict[Trace, SketchState] = {}
        for alternative in range(ALTERNATIVES):
            s = Schedule.going_on(state.tree)
            scheduled_by_plans(s, options.target, alternative)
            if len(s.trace) and s.trace not in made:
                name = "Plan" if not alternative else f"Plan{alternative + 1}"
                made[s.trace] = state.opened(s.trace, *(stage.id for stage in s.tree.stages)).note(name)
        return [(program, None) for program in made.values()]


class Reduction(SketchRule):
    """A sum and its like that reads nothing again: over lanes, over threads, or in vectors of results."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """Reductions of one output at the root; of those with data reuse, the ones that stream an operand along a reduction axis."""
        node = state.stage(stage)
        if not node.has_loops or stage in state.finished or not isinstance(node.attach, Root) or not len(node.reduction):
            return Meet.SKIP
        if node.origin.num_outputs != 1 or node.relations or node.marks:
            return Meet.SKIP
        if not needs_multi_level_tiling(node.op):
            return Meet.APPLY_AND_SKIP_REST
        axis = contiguous_axis(node.compute)
        along = axis is not None and any(axis.var is node.axes[own].var for own in node.reduction)
        streamed = any(all(operand.moves_with(own) for own in node.spatial) for operand in operands_of(state.tree, node))
        return Meet.APPLY if along and streamed else Meet.SKIP  # a product whose operands are read again wants a tile

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        return [(state.scheduled(stage, options.target), previous(state, stage))]


class DotProductTiling(SketchRule):
    """Bytes by fours, bfloat16 by twos, on targets that have the instructions; nothing else comes near them."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """Reductions with one elementwise reader that `dot_plans` can lay out for the target's instructions."""
        node = state.stage(stage)
        if not len(node.reduction) or state.free_consumer(stage) is None:
            return Meet.SKIP
        return Meet.APPLY_AND_SKIP_REST if dot_plans(state, node, options.target, options.caller_packs) else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        consumer = state.free_consumer(stage)
        assert consumer is not None
        after = previous(state, stage)
        plans = dot_plans(state, state.stage(stage), options.target, options.caller_packs)
        return [(tile_dot_products(state, stage, consumer.id, plan, options.target), after) for plan in plans]


class RegisterTiling(SketchRule):
    """Rows and vectors of a tile, of sizes that need not divide; one program for each order of loops and way to pack."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """Reductions of one output with data reuse, of which `register_plans` knows tiles that fit the registers."""
        node = state.stage(stage)
        if not len(node.reduction) or not needs_multi_level_tiling(node.op) or state.free_consumer(stage) is None:
            return Meet.SKIP
        return Meet.APPLY if register_plans(state, node, options.target, options.caller_packs) else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        consumer = state.free_consumer(stage)
        assert consumer is not None
        after = previous(state, stage)
        plans = register_plans(state, state.stage(stage), options.target, options.caller_packs)
        return [(tile_in_registers(state, stage, consumer.id, plan, options.target), after) for plan in plans]
