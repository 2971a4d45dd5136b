"""Write out the loops over a small constant matrix, as the transforms of Winograd's convolution have."""

from __future__ import annotations

from dataclasses import replace

from ....schedule.steps import Annotate
from ....te.operation import ComputeOp
from ..rule import Meet, RuleOptions, SketchRule, previous
from ..state import SketchState
from ..tiling import extents

ATTRIBUTE = "auto_scheduler_simplify_const_tensor_indices"


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
