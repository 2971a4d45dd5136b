"""Rules that draw from `tensorexpr.spaces`: what Ansor has no rule for."""

from __future__ import annotations

from dataclasses import replace

from ....schedule.te_schedule import Schedule
from ....schedule.trace import Trace
from ....schedule.tree import Root
from ....spaces.contraction_plan import Plan, searched_plans
from ....spaces.contractions import inline_moves, operands_of
from ....spaces.default import scheduled_by_plans
from ....spaces.reduction import contiguous_axis
from ....spaces.stages import is_untouched, tiled_result
from ....spaces.state import SketchState
from ....spaces.tiles import Tiles
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
            found = self.program(state, options, alternative)
            if len(found.trace):
                made.setdefault(found.trace, found)
        return [(program, None) for program in made.values()]

    def program(self, state: SketchState, options: RuleOptions, alternative: int = 0) -> SketchState:
        """The computation with one of its plans, the sizes open."""
        s = Schedule.going_on(state.tree)
        scheduled_by_plans(s, options.target, alternative)
        name = "Plan" if not alternative else f"Plan{alternative + 1}"
        return state.opened(s.trace, *(stage.id for stage in s.tree.stages)).note(name)


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


class ContractionTiling(SketchRule):
    """Register tiles of sizes that need not divide; one program for each axis in the lanes, order of loops and way to pack.

    Where the target sums bytes by fours or bfloat16 by twos, nothing else comes near, and no other rule is asked.
    """

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """Untouched contractions of one output, of which a tile fits the registers."""
        node = state.stage(stage)
        if not node.has_loops or stage in state.finished | state.cached or not is_untouched(node) or node.origin.num_outputs != 1:
            return Meet.SKIP
        if not needs_multi_level_tiling(node.op):
            return Meet.SKIP
        plans = self._plans(Schedule.going_on(state.tree), stage, options)
        return Meet.SKIP if not plans else Meet.APPLY_AND_SKIP_REST if all(plan.dot for plan in plans) else Meet.APPLY

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        """One state for each of `searched_plans`, the stage that makes the result of the contraction scheduled with it."""
        made: list[tuple[SketchState, int | None]] = []
        for plan in self._plans(Schedule.going_on(state.tree), stage, options):
            s = Schedule.going_on(state.tree)
            inline_moves(s, s.tree[stage])
            result = tiled_result(s, s.tree[stage], state.finished)
            finished = {stage, s[result].id}
            Tiles(s, result, s.tree[stage].origin.output(0), plan, options.target).build()
            moved = {old.id for old in state.tree.stages if s.tree[old.id].attach != old.attach}
            after = state.opened(s.trace, *finished, *moved, *range(len(state.tree.stages), len(s.tree.stages)))
            # Only whole programs are known to be good; of these tiles the model says which are.
            made.append((replace(after, preferred=state.preferred).note(f"Tile({plan.words})"), previous(state, stage)))
        return made

    def _plans(self, s: Schedule, stage: int, options: RuleOptions) -> list[Plan]:
        """The plans of a stage, once what only moves its operands is inlined."""
        inline_moves(s, s.tree[stage])
        return searched_plans(s.tree, s.tree[stage], options.target, options.caller_packs)
