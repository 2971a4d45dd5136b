"""Loops of a stage that no tiling rule took: parallel outside, a vector inside, the vector's size open."""

from __future__ import annotations

from dataclasses import replace

from ...schedule.steps import Annotate, SampleCategorical
from ...schedule.tree import LoopKind, Root
from ...spaces.stages import extents
from ...spaces.state import SketchState
from .rule import RuleOptions

TASKS_PER_CORE = 4
VECTORS = (1, 2, 4)


def finish_simple_stages(state: SketchState, options: RuleOptions) -> SketchState:
    """The program with loops for every stage at the root that nobody scheduled."""
    for stage in state.tree.order:
        node = state.stage(stage)
        if node.is_placeholder or stage in state.finished or not isinstance(node.attach, Root) or not len(node.spatial):
            continue
        custom = node.relations or node.marks  # a custom rule has been here
        state = _outermost_parallel(state, stage) if custom else _variant(state, stage, options)
    return state


def _outermost_parallel(state: SketchState, stage: int) -> SketchState:
    """The outermost loop in parallel, if it may be and nobody said something else."""
    node = state.stage(stage)
    first = node.leaf[0]
    if node.is_reduction(first) or any(node.mark(axis).kind is not LoopKind.SERIAL for axis in node.leaf):
        return state
    return state.add(Annotate(stage, first, "parallel"))


def _variant(state: SketchState, stage: int, options: RuleOptions) -> SketchState:
    """The stage in vectors or, of a single column, in parallel; Ansor's rules have nothing else for it."""
    node = state.stage(stage)
    if not options.only_ansor and node.origin.num_outputs == 1:
        return state.scheduled(stage, options.target)
    vector = extents(node, [node.spatial[-1]])[0] >= 2 and (not len(node.reduction) or len(node.spatial) > 1)
    state = _vectorised(state, stage, options) if vector else _parallel(state, stage, list(node.spatial), options)
    return replace(state, finished=state.finished | {stage})


def _parallel(state: SketchState, stage: int, loops: list[int], options: RuleOptions) -> SketchState:
    """Fuse outer loops until there are enough tasks, and run them in parallel."""
    node = state.stage(stage)
    taken, tasks = 0, 1
    while taken < len(loops) and tasks < options.target.num_cores * TASKS_PER_CORE:
        dom = node.axes[loops[taken]].dom
        tasks *= extents(node, [loops[taken]])[0] if dom is not None else TASKS_PER_CORE * options.target.num_cores
        taken += 1
    if not taken:
        return state
    state, outer = state.fuse(stage, tuple(loops[:taken]))
    return state.add(Annotate(stage, outer, "parallel"))


def _vectorised(state: SketchState, stage: int, options: RuleOptions) -> SketchState:
    """Split a vector off the last axis, put it inside any reduction, and run the outer loops in parallel."""
    node = state.stage(stage)
    last = node.spatial[-1]
    lanes = options.target.vector_bits // 32
    sizes = tuple(dict.fromkeys(min(lanes * count, extents(node, [last])[0]) for count in VECTORS))
    sample = len(state.tree.samples)
    state = state.add(SampleCategorical(sizes))
    state, (outer, inner) = state.split(stage, last, (None, (sample, 0)))
    loops = [*node.spatial[:-1], outer]
    state = state.reorder(stage, (*loops, *node.reduction, inner))
    state = state.add(Annotate(stage, inner, "vectorize"))
    return _parallel(state, stage, loops, options)
