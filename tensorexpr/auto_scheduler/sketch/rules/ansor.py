"""The rules of Ansor (Zheng et al., OSDI 2020, table 1), in its order."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ....schedule.steps import Annotate, CacheWrite, ComputeInline, RFactor, SampleCategorical
from ....schedule.tilings import divisors
from ....schedule.tree import StageNode
from ....spaces.stages import elementwise_consumer, extents
from ....spaces.state import SketchState
from ....te.access import is_strictly_inlineable, needs_multi_level_tiling
from ....te.operation import ComputeOp
from ..rule import Meet, RuleOptions, SketchRule, previous
from ..tiling import finish_tiled, follow_tiling, tile_stage

ATTRIBUTE = "auto_scheduler_simplify_const_tensor_indices"
FUSION_LEVELS = (1, 2)
# Results per core from which there is parallelism enough without cutting the reduction.
RESULTS_PER_CORE = 16


class AlwaysInline(SketchRule):
    """A stage without reduction whose reads are elementwise or a broadcast disappears into its readers."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        """Inputs, outputs, reductions and what an extern reads stay; all else that is one expression of its reader's axes goes."""
        node = state.stage(stage)
        if not node.has_loops or node.is_output or stage in state.finished or len(node.reduction):
            return Meet.SKIP
        if not all(reader.has_loops for reader in state.tree.consumers(node)):  # an extern reads it from memory
            return Meet.SKIP
        return Meet.APPLY_AND_SKIP_REST if is_strictly_inlineable(node.op) else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        return [(state.add(ComputeInline(stage)), previous(state, stage))]


class SimplifyComputeWithConstTensor(SketchRule):
    """A stage that names the axes of a constant: they and the reductions are unrolled, so that its zeros and ones are folded."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        node = state.stage(stage)
        named = isinstance(node.op, ComputeOp) and ATTRIBUTE in node.op.attrs and stage not in state.finished
        return Meet.APPLY_AND_SKIP_REST if named else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        """One state: the named axes and the reductions unrolled, inside tiles of sampled sizes over the others, which run in parallel."""
        node = state.stage(stage)
        names = {str(name) for name in node.compute.attrs[ATTRIBUTE]}
        unrolled = [axis for axis in (*node.spatial, *node.reduction) if node.is_reduction(axis) or node.axes[axis].name in names]
        after = previous(state, stage)
        outer, inner = [], []
        for axis in node.spatial:
            if axis not in unrolled:
                most = max(1, min(options.max_innermost, extents(node, [axis])[0]))
                state, sample = state.sample_tile(stage, axis, 2, most)
                state, (one, other) = state.split(stage, axis, (None, (sample, 1)))
                outer.append(one)
                inner.append(other)
        state = state.reorder(stage, (*outer, *inner, *unrolled))
        for axis in unrolled:
            state = state.add(Annotate(stage, axis, "unroll"))
        if outer:
            state, fused = state.fuse(stage, tuple(outer))
            state = state.add(Annotate(stage, fused, "parallel"))
        return [(replace(state, finished=state.finished | {stage}), after)]


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
    # Of products only those with few results, each a long sum: where there are many, tiles make work for all cores without a second pass.
    if needs_multi_level_tiling(node.op):
        return results <= length and results <= cores * RESULTS_PER_CORE
    return length > 1 and length > cores


def _factored(state: SketchState, stage: int, over_lanes: bool) -> SketchState:
    node = state.stage(stage)
    length = prod(extents(node, list(node.reduction)))
    # One axis, so that a single sampled length cuts the whole reduction, wherever in it that falls.
    state, whole = state.fuse(stage, tuple(node.reduction))
    sample = len(state.tree.samples)
    state = state.add(SampleCategorical(divisors(length)))
    state, (outer, inner) = state.split(stage, whole, (None, (sample, 0)))
    partial = len(state.tree.stages)
    state = state.add(RFactor(stage, inner if over_lanes else outer, len(node.spatial)))
    made = state.stage(partial)
    # RFactor was told to put the new axis behind those of the results
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


class AddCacheWrite(SketchRule):
    """The result is accumulated in a local tile and copied out when it is done."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        node = state.stage(stage)
        if node.is_placeholder or stage in state.cached or stage in state.finished or node.origin.num_outputs != 1:
            return Meet.SKIP
        fits = needs_multi_level_tiling(node.op) and elementwise_consumer(state.tree, node) is None
        return Meet.APPLY if fits else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        # the stage that computes gets the next number; rules go on with it, and its copy is then the consumer that fusion looks for
        new = len(state.tree.stages)
        state = state.add(CacheWrite(stage, "local"))
        return [(replace(state, cached=state.cached | {stage, new}), new)]


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
        """One state for each of `FUSION_LEVELS`, at which the reader takes the tile over."""
        consumer = elementwise_consumer(state.tree, state.stage(stage))
        assert consumer is not None
        tiled, tiling = tile_stage(state, stage, options)
        made: list[tuple[SketchState, int | None]] = []
        for level in FUSION_LEVELS:
            fused = follow_tiling(tiled, stage, consumer.id, tiling, level)
            made.append((finish_tiled(fused, stage, tiling, parallel=False), previous(state, stage)))
        return made


class MultiLevelTiling(SketchRule):
    """Blocks for threads, caches and registers; every size is left open."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        node = state.stage(stage)
        fits = not node.is_placeholder and stage not in state.finished and len(node.spatial) and needs_multi_level_tiling(node.op)
        return Meet.APPLY_AND_SKIP_REST if fits else Meet.SKIP

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        tiled, tiling = tile_stage(state, stage, options)
        return [(finish_tiled(tiled, stage, tiling, parallel=True), previous(state, stage))]


class SkipStage(SketchRule):
    """Nothing to do here."""

    def meets(self, state: SketchState, stage: int, options: RuleOptions) -> Meet:
        return Meet.APPLY

    def apply(self, state: SketchState, stage: int, options: RuleOptions) -> list[tuple[SketchState, int | None]]:
        return [(state, previous(state, stage))]
