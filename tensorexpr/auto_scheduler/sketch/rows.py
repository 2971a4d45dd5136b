"""Programs that work row by row, such as softmax and norms: all stages of a row at one loop, while it is in the nearest cache."""

from __future__ import annotations

from dataclasses import replace

from ...schedule.steps import Annotate, ComputeAt, ComputeInline
from ...schedule.tree import Inline, StageNode
from ...te.access import is_strictly_inlineable, needs_multi_level_tiling
from .reductions import lane_axis, reduce_over_lanes, vector_of_results
from .rule import RuleOptions
from .state import SketchState
from .tiling import extents


def inline_cheap_stages(state: SketchState) -> SketchState:
    """What costs nothing to compute again disappears into its readers."""
    for stage in tuple(state.tree.in_order()):
        inner = stage.has_loops and not stage.is_output and not len(stage.reduction) and not isinstance(stage.attach, Inline)
        if inner and is_strictly_inlineable(stage.op) and all(reader.has_loops for reader in state.tree.consumers(stage)):
            state = state.add(ComputeInline(stage.id))
    return state


def inner_stages(state: SketchState, output: StageNode) -> list[StageNode]:
    """The stages before the output that are computed somewhere, producers first."""
    return [s for s in state.tree.in_order() if not s.is_placeholder and s.id != output.id and not isinstance(s.attach, Inline)]


def common_rows(state: SketchState, output: StageNode) -> int:
    """How many leading axes of the output are those of all stages before it, read at the same indices; 0 if they share no loop."""
    rows = len(output.spatial)
    pending = [(stage, stage) for stage in inner_stages(state, output)]
    while pending:
        stage, origin = pending.pop()
        for reader in state.tree.consumers(stage):
            axes = [reader.axes[axis].var for axis in reader.spatial]
            for load in state.tree.reads(reader):
                if state.tree.producer(load).id == stage.id:
                    same = [index is axis for index, axis in zip(load.indices, axes, strict=False)]
                    rows = min(rows, same.index(False) if False in same else len(same))
            if isinstance(reader.attach, Inline):
                pending.append((reader, origin))
    return rows


def is_row_program(state: SketchState, output: StageNode) -> bool:
    """True if the output and all before it share rows, something is reduced along them, and no product is among them."""
    if not output.is_output or len(output.reduction) or sum(s.is_output for s in state.tree.stages) != 1:
        return False
    if any(len(s.op.axis) == 0 or s.origin.num_outputs != 1 for s in state.tree.stages if s.has_loops):
        return False
    if not all(s.has_loops or s.is_placeholder for s in state.tree.stages):
        return False
    state = inline_cheap_stages(state)
    inner = inner_stages(state, output)
    reduces = any(len(s.reduction) for s in inner) and not any(needs_multi_level_tiling(s.op) for s in inner)
    return reduces and common_rows(state, output) > 0


def schedule_rows(state: SketchState, output: int, options: RuleOptions) -> SketchState:
    """All stages at the loop over rows, each in vectors, the rows in parallel."""
    state = inline_cheap_stages(state)
    node = state.stage(output)
    inner = inner_stages(state, node)
    rows = node.spatial[: common_rows(state, node)]
    if len(rows) < len(node.spatial) and extents(node, [node.spatial[-1]])[0] > 1:
        state = vector_of_results(state, output, options)
    state, place = state.fuse(output, tuple(rows))
    state = state.add(Annotate(output, place, "parallel"))
    for stage in reversed(inner):
        state = _in_row(state, stage.id, len(rows), output, place, options)
    return replace(state, finished=state.finished | {output, *(stage.id for stage in inner)})


def _in_row(state: SketchState, stage: int, rows: int, output: int, place: int, options: RuleOptions) -> SketchState:
    node = state.stage(stage)
    axis = lane_axis(state.tree, node, options)
    if axis is not None:
        state, partial = reduce_over_lanes(state, stage, axis, options)
        return state.add(ComputeAt(stage, output, place)).add(ComputeAt(partial, output, place))
    if len(node.spatial) > rows and extents(node, [node.spatial[-1]])[0] > 1:
        state = vector_of_results(state, stage, options)
    return state.add(ComputeAt(stage, output, place))
