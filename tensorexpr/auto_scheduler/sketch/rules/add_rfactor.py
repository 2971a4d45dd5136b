"""Turn a part of a long reduction into an axis of partial results."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ....schedule.steps import Annotate, RFactor, SampleCategorical
from ....schedule.tilings import divisors
from ....schedule.tree import StageNode
from ....te.access import needs_multi_level_tiling
from ..rule import Meet, RuleOptions, SketchRule, previous
from ..state import SketchState
from ..tiling import extents

# Results per core from which there is parallelism enough without cutting the reduction.
RESULTS_PER_CORE = 16


class AddRfactor(SketchRule):
    """Ansor's rule: the fused reduction in two parts, whose outer one gives threads their work or whose inner one gives lanes theirs."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        node = state.stage(stage)
        if not node.has_loops or stage in state.finished or stage in state.cached or not len(node.reduction):
            return Meet.SKIP
        return Meet.APPLY if needs_rfactor(node, options.target.num_cores) else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        after = previous(state, stage)
        return [(_factored(state, stage, over_lanes), after) for over_lanes in (False, True)]


def needs_rfactor(node: StageNode, cores: int) -> bool:
    """True where the reduction is long and the results are few."""
    results, length = prod(extents(node, list(node.spatial))), prod(extents(node, list(node.reduction)))
    if needs_multi_level_tiling(node.op):
        return results <= length and results <= cores * RESULTS_PER_CORE
    return length > 1 and length > cores


def _factored(state: SketchState, stage: int, over_lanes: bool) -> SketchState:
    node = state.stage(stage)
    length = prod(extents(node, list(node.reduction)))
    state, whole = state.fuse(stage, tuple(node.reduction))
    sample = len(state.tree.samples)
    state = state.add(SampleCategorical(divisors(length)))
    state, (outer, inner) = state.split(stage, whole, (None, (sample, 0)))
    partial = len(state.tree.stages)
    state = state.add(RFactor(stage, inner if over_lanes else outer, len(node.spatial)))
    made = state.stage(partial)
    factor = made.spatial[-1]
    results = tuple(made.spatial[:-1])
    if over_lanes:
        state = state.reorder(partial, (*results, *made.reduction, factor)).add(Annotate(partial, factor, "vectorize"))
    else:
        state, factor = state.fuse(partial, (*results, factor))
        results = (factor,)
    if results:
        state, rows = state.fuse(partial, results) if over_lanes else (state, factor)
        state = state.add(Annotate(partial, rows, "parallel"))
    return replace(state, finished=state.finished | {partial})
