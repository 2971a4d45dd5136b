"""Reductions in the lanes of vectors and over threads, by rfactor.

A reduction along memory keeps one accumulator per lane of some vector registers, and combines the lanes in the end. One
with fewer results than threads is cut: each thread reduces a part into results of its own.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from ...schedule.lane_reduction import why_not_in_lanes
from ...schedule.steps import Annotate, ComputeAt, RFactor, SampleCategorical
from ...schedule.tree import ScheduleTree, StageNode
from .operands import operands_of
from .register_plan import lanes_of
from .rule import RuleOptions
from .state import SketchState
from .tiling import extents

# Registers of accumulators: an addition takes 4 cycles and two start in each, so that 8 keep the units busy.
ACCUMULATORS = (1, 2, 4, 8)
ROWS_AT_ONCE = (1, 4, 8)


def lane_axis(tree: ScheduleTree, stage: StageNode, options: RuleOptions) -> int | None:
    """The reduction axis along memory, if its terms can be the lanes of a vector and fill one."""
    best = axis_along_memory(tree, stage)
    if best is None or stage.origin.num_outputs != 1 or why_not_in_lanes(stage) is not None:
        return None
    (extent,) = extents(stage, [best])
    return best if extent >= lanes_of(options.target, stage) else None


def axis_along_memory(tree: ScheduleTree, stage: StageNode) -> int | None:
    """The reduction axis along which most reads are of neighbours in memory; None if it is a spatial axis."""
    if not len(stage.reduction):
        return None
    votes = dict.fromkeys((*stage.spatial, *stage.reduction), 0)
    for operand in operands_of(tree, stage):
        for axis in votes:
            votes[axis] += len(operand.forms) if operand.is_contiguous(axis) else 0
    best = max(stage.reduction, key=lambda axis: votes[axis])
    most = max((votes[axis] for axis in stage.spatial), default=0)
    return best if votes[best] > most else None


def lane_sizes(extent: int, lanes: int) -> tuple[int, ...]:
    """Widths of accumulators that the extent can fill, in elements."""
    return tuple(count * lanes for count in ACCUMULATORS if count * lanes <= extent)


def reduce_over_lanes(state: SketchState, stage: int, axis: int, options: RuleOptions) -> tuple[SketchState, int]:
    """Reduce along an axis into one result per lane, and those into one; returns also the stage of partial results."""
    node = state.stage(stage)
    (extent,) = extents(node, [axis])
    sample = len(state.tree.samples)
    state = state.add(SampleCategorical(lane_sizes(extent, lanes_of(options.target, node))))
    state, (_, inner) = state.split(stage, axis, (None, (sample, 0)))
    partial = len(state.tree.stages)
    state = state.add(RFactor(stage, inner, len(node.spatial)))
    made = state.stage(partial)
    lane = made.spatial[-1]
    state = state.reorder(partial, (*(loop for loop in made.leaf if loop != lane), lane))
    state = state.add(Annotate(partial, lane, "vectorize")).add(Annotate(stage, state.stage(stage).reduction[0], "vectorize"))
    return replace(state, finished=state.finished | {partial}), partial


def over_rows(state: SketchState, stage: int, options: RuleOptions) -> SketchState:
    """A reduction at the root over the lanes, its results in parallel."""
    axis = lane_axis(state.tree, state.stage(stage), options)
    assert axis is not None
    state, partial = reduce_over_lanes(state, stage, axis, options)
    node = state.stage(stage)
    if len(node.spatial):
        state, rows = state.fuse(stage, tuple(node.spatial))
        state = state.add(Annotate(stage, rows, "parallel")).add(ComputeAt(partial, stage, rows))
    return replace(state, finished=state.finished | {stage})


def can_be_cut(tree: ScheduleTree, stage: StageNode, options: RuleOptions) -> bool:
    """True for a reduction with too few rows of results for all threads, that is long enough to cut."""
    if not len(stage.reduction) or stage.origin.num_outputs != 1 or why_not_in_lanes(stage) is not None:
        return False
    along = axis_along_memory(tree, stage) is not None
    rows = prod(extents(stage, list(stage.spatial if along else stage.spatial[:-1])))
    (length,) = extents(stage, [stage.reduction[0]])
    return options.target.num_cores > 1 and rows < options.target.num_cores and length >= 4 * options.target.num_cores


def over_threads(state: SketchState, stage: int, options: RuleOptions) -> SketchState:
    """Each thread reduces a part of the first reduction axis; one pass combines the parts."""
    node = state.stage(stage)
    state, (outer, _) = state.split(stage, node.reduction[0], (options.target.num_cores, None))
    partial = len(state.tree.stages)
    state = state.add(RFactor(stage, outer, 0))
    axis = lane_axis(state.tree, state.stage(partial), options)
    if axis is not None:
        state, lanes = reduce_over_lanes(state, partial, axis, options)
        state = state.add(ComputeAt(lanes, partial, state.stage(partial).spatial[-1]))
    elif len(state.stage(partial).spatial) > 1:
        state = _rows_at_once(state, partial, options)
    state = state.add(Annotate(partial, 0, "parallel"))
    if len(node.spatial):
        state = vector_of_results(state, stage, options)
    return replace(state, finished=state.finished | {stage, partial})


def _rows_at_once(state: SketchState, stage: int, options: RuleOptions) -> SketchState:
    """Add several rows of the source to a row of results at once, so that it is loaded and stored that many times less."""
    node = state.stage(stage)
    rows, columns = node.reduction[0], node.spatial[-1]
    sample = len(state.tree.samples)
    state = state.add(SampleCategorical(ROWS_AT_ONCE))
    state, (several, each) = state.split(stage, rows, (None, (sample, 0)))
    state, (outer, inner) = _vector(state, stage, columns, options)
    others = tuple(axis for axis in state.stage(stage).leaf if axis not in (several, each, outer, inner))
    state = state.reorder(stage, (*others, several, outer, each, inner))
    return state.add(Annotate(stage, each, "unroll")).add(Annotate(stage, inner, "vectorize"))


def vector_of_results(state: SketchState, stage: int, options: RuleOptions) -> SketchState:
    """The last spatial axis in the lanes, inside of any reduction."""
    node = state.stage(stage)
    state, (outer, inner) = _vector(state, stage, node.spatial[-1], options)
    state = state.reorder(stage, (*node.spatial[:-1], outer, *node.reduction, inner))
    return state.add(Annotate(stage, inner, "vectorize"))


def _vector(state: SketchState, stage: int, axis: int, options: RuleOptions) -> tuple[SketchState, tuple[int, ...]]:
    """Split some registers off an axis; how many stays open."""
    (extent,) = extents(state.stage(stage), [axis])
    lanes = lanes_of(options.target, state.stage(stage))
    sample = len(state.tree.samples)
    state = state.add(SampleCategorical(tuple(dict.fromkeys(min(count * lanes, extent) for count in ACCUMULATORS))))
    return state.split(stage, axis, (None, (sample, 0)))
