"""Multi-level tiling: what the tiling rules share.

A structure such as "SSRSRS" names the loop levels from the outside in: S all spatial axes, R all reduction axes.
Each axis gets one tile size per level of its kind, left open, and the levels are nested in order (Ansor, section 4.1).
"""

from __future__ import annotations

from dataclasses import replace

from ...schedule.factors import Factor
from ...schedule.steps import Annotate, ComputeAt, Pragma, SampleCategorical
from ...spaces.state import SketchState, Tiling
from .rule import RuleOptions

UNROLL_STEPS = (0, 16, 64, 512)


def tile_stage(state: SketchState, stage: int, options: RuleOptions) -> tuple[SketchState, Tiling]:
    """Split every axis of a stage into the levels of the structure, sizes open, and nest the levels."""
    node = state.stage(stage)
    parts: dict[int, tuple[int, ...]] = {}
    samples: dict[int, int] = {}
    for kind, axes in (("S", node.spatial), ("R", node.reduction)):
        count = options.structure.count(kind)
        for axis in axes:
            state, samples[axis] = state.sample_tile(stage, axis, count, options.max_innermost)
            # The outermost part follows from the others: a tiling is a factorisation of the extent, so nothing is left over.
            factors: tuple[Factor, ...] = (None, *((samples[axis], part) for part in range(1, count)))
            state, parts[axis] = state.split(stage, axis, factors)
    seen = {"S": 0, "R": 0}
    levels = []
    for kind in options.structure:
        axes = node.spatial if kind == "S" else node.reduction
        # the n-th S of a structure has the n-th part of every spatial axis
        levels.append(tuple(parts[axis][seen[kind]] for axis in axes))
        seen[kind] += 1
    tiling = Tiling(options.structure, tuple(levels), samples)
    state = state.reorder(stage, tuple(axis for level in levels for axis in level))
    return replace(state, tilings={**state.tilings, stage: tiling}), tiling


def follow_tiling(state: SketchState, stage: int, consumer: int, tiling: Tiling, level: int) -> SketchState:
    """Tile an elementwise consumer like the stage it reads, down to a level, and compute the stage there.

    The outermost level is fused and parallel; the rest of the consumer's tile is one loop per axis, with the stage's
    vector size on the last.
    """
    node = state.stage(consumer)
    count = tiling.structure.count("S")
    rows: list[tuple[int, ...]] = []
    for axis in node.spatial:
        sample = tiling.samples[axis]
        factors: list[Factor] = [None, *((sample, part) for part in range(1, level))]
        last = axis == node.spatial[-1]
        # the levels inside of the one it is computed at are one loop, of their product
        # on the last axis the innermost one stays apart: it is the lanes
        factors.append((sample, *range(level, count - 1 if last else count)))
        if last:
            factors.append((sample, count - 1))
        state, parts = state.split(consumer, axis, tuple(factors))
        rows.append(parts)
    depth = level + 1
    order = [parts[n] for n in range(depth) for parts in rows] + [rows[-1][depth]]
    state = state.reorder(consumer, tuple(order))
    state, outer = state.fuse(consumer, tuple(parts[0] for parts in rows))
    state = state.add(Annotate(consumer, outer, "parallel"))
    # the outermost level went into the fused loop
    target = outer if level == 1 else rows[-1][level - 1]
    state = state.add(ComputeAt(stage, consumer, target)).add(Annotate(consumer, rows[-1][depth], "vectorize"))
    return replace(state, finished=state.finished | {consumer})


def finish_tiled(state: SketchState, stage: int, tiling: Tiling, parallel: bool) -> SketchState:
    """Mark the loops of a tiled stage: its outermost level parallel if it stands alone, its last axis a vector, unrolling open."""
    if parallel:
        state, outer = state.fuse(stage, tiling.levels[0])
        state = state.add(Annotate(stage, outer, "parallel"))
    # The last level is spatial, and its last axis the one along which results are neighbours.
    state = state.add(Annotate(stage, tiling.levels[-1][-1], "vectorize"))
    sample = len(state.tree.samples)
    state = state.add(SampleCategorical(UNROLL_STEPS))
    first = state.stage(stage).leaf[0]
    state = state.add(Pragma(stage, first, "auto_unroll_max_step", (sample, 0))).add(Pragma(stage, first, "unroll_explicit", True))
    return replace(state, finished=state.finished | {stage})
