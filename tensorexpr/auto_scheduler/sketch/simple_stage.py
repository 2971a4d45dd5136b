"""Loops of a stage that no tiling rule took: parallel outside, a vector inside, the vector's size open."""

from __future__ import annotations

from dataclasses import replace

from ...schedule.steps import Annotate, SampleCategorical
from ...schedule.tree import LoopKind, Root
from .operands import operands_of
from .rule import RuleOptions
from .state import SketchState
from .tiling import extents

TASKS_PER_CORE = 4
VECTORS = (1, 2, 4)
BLOCK = 16  # columns and lanes of a block that is transposed in registers
BLOCKS = (1, 4, 16)  # blocks in a row that a thread does one after the other


def finish_simple_stages(state: SketchState, options: RuleOptions) -> list[SketchState]:
    """The programs in which every stage at the root that nobody scheduled is parallel and, in one of them, vectorised."""
    made = [state]
    for stage in state.tree.order:
        node = state.stage(stage)
        if node.is_placeholder or stage in state.finished or not isinstance(node.attach, Root) or not len(node.spatial):
            continue
        if node.relations or node.marks:  # a custom rule has been here
            made = [_outermost_parallel(before, stage) for before in made]
            continue
        made = [after for before in made for after in _variants(before, stage, options)]
    return made


def _outermost_parallel(state: SketchState, stage: int) -> SketchState:
    """The outermost loop in parallel, if it may be and nobody said something else."""
    node = state.stage(stage)
    first = node.leaf[0]
    if node.is_reduction(first) or any(node.mark(axis).kind is not LoopKind.SERIAL for axis in node.leaf):
        return state
    return state.add(Annotate(stage, first, "parallel"))


def _variants(state: SketchState, stage: int, options: RuleOptions) -> list[SketchState]:
    node = state.stage(stage)
    last = extents(node, [node.spatial[-1]])[0]
    plain = [_parallel(state, stage, list(node.spatial), options)] if len(node.reduction) or last < 2 else []
    vector = [_vectorised(state, stage, options)] if last >= 2 and (not len(node.reduction) or len(node.spatial) > 1) else []
    columns = None if options.only_ansor or len(node.reduction) else _column_axis(state, stage)
    if columns is not None:
        vector = [_in_blocks(state, stage, columns, options), *vector]
    made = (vector or plain) if options.only_ansor else plain + vector
    done = [replace(s, finished=s.finished | {stage}) for s in made]
    return done or [replace(state, finished=state.finished | {stage})]


def _column_axis(state: SketchState, stage: int) -> int | None:
    """The axis along which a stage reads neighbours that it stores far apart, as a transpose does."""
    node = state.stage(stage)
    last = node.spatial[-1]
    for operand in operands_of(state.tree, node):
        if operand.moves_with(last) and not operand.is_contiguous(last):
            found = [axis for axis in node.spatial[:-1] if operand.is_contiguous(axis) and extents(node, [axis])[0] >= BLOCK]
            if found and extents(node, [last])[0] >= BLOCK:
                return found[0]
    return None


def _in_blocks(state: SketchState, stage: int, columns: int, options: RuleOptions) -> SketchState:
    """Square blocks that are transposed in registers: rows of the result in the lanes, its columns written out."""
    node = state.stage(stage)
    last = node.spatial[-1]
    sample = len(state.tree.samples)
    state = state.add(SampleCategorical(BLOCKS))
    state, (outer_column, inner_column) = state.split(stage, columns, (None, BLOCK))
    state, (outer, blocks, inner) = state.split(stage, last, (None, (sample, 0), BLOCK))
    others = [axis for axis in node.spatial if axis not in (columns, last)]
    state = state.reorder(stage, (*others, outer_column, outer, blocks, inner_column, inner))
    state = state.add(Annotate(stage, inner_column, "unroll")).add(Annotate(stage, inner, "vectorize"))
    return _parallel(state, stage, [*others, outer_column], options).note("Blocks")


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
