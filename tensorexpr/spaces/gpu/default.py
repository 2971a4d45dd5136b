"""Which schedule each stage gets on a GPU when nobody wrote one and nothing was tuned. Every stage that stays at the root is a kernel."""

from __future__ import annotations

from collections.abc import Mapping

from ...schedule.scans import time_axes
from ...schedule.steps import BindLoops
from ...schedule.te_schedule import Schedule
from ...schedule.tree import StageNode
from ...target import Target
from ...te.extern import ExternOp
from ...te.operation import ComputeOp
from ...te.thread_axis import thread_axis
from ..recurrence import stages_of_steps
from ..stages import compute_of, untouched
from .block import limits_of
from .contraction import schedule_contractions
from .injective import schedule_injective
from .matrix_plan import Tiling, matrix_plan
from .matrix_units import schedule_on_matrix_units
from .reduction import is_shared_by_threads, schedule_reduction
from .rows import rows_for_blocks, schedule_rows
from .short import schedule_short_products, short_plan
from .tile_plan import tile_plan


def scheduled_for_gpu(s: Schedule, target: Target, alternative: int = 0, wanted: Mapping[int, Tiling] | None = None) -> None:
    """Schedule what nothing has been said of yet, after cheap stages are inlined.

    Args:
        s: the schedule.
        target: what it will run on.
        alternative: 0 what is preferred; 1 products whose terms stay in a loop, kernels for each stage of a program of rows, and a thread
            for each result of a reduction; from 2 on products by the next best plans, with sums that are cut or that aren't.
        wanted: tilings of products on matrix units, by the number of the stage; the others are those of the rule.
    """
    for step in stages_of_steps(s):
        _step_in_threads(s, step, target)
    # Units that multiply whole tiles come first: they take what threads would do one product at a time.
    schedule_on_matrix_units(s, target, wanted)
    if alternative != 1:
        schedule_short_products(s, target)
    schedule_contractions(s, target, written_out=alternative != 1, rank=max(0, alternative - 1))
    left = list(untouched(s))
    rows = 0 if alternative == 1 else rows_for_blocks(s, left, target)
    if rows:
        schedule_rows(s, left, rows, target)
        return
    for stage in left:
        alone_on_gpu(s, stage, target, together=alternative != 1)


def _step_in_threads(s: Schedule, stage: StageNode, target: Target) -> None:
    """A thread for each result of a step of a scan; time is the host's loop around the kernels of its steps."""
    times, made = time_axes(s.tree, stage), s[stage.origin.output(0)]
    axes = list(compute_of(s, stage.origin.output(0)).axis)
    own = [axis for number, axis in enumerate(axes) if number not in times]
    made.reorder(*(axis for number, axis in enumerate(axes) if number in times), *own)
    block, thread = made.split(made.fuse(*own), factor=limits_of(target).warp)
    made.bind(block, thread_axis("blockIdx.x"))
    made.bind(thread, thread_axis("threadIdx.x"))


def alone_on_gpu(s: Schedule, stage: StageNode, target: Target, together: bool = True) -> None:
    """Schedule a stage that stays at the root, without its neighbours; `together`, if threads may share the results of a reduction.

    Loops of an operator's own that launch no threads get some: one for each iteration of a parallel loop, or of one that only stores.
    """
    if isinstance(stage.op, ComputeOp) and stage.compute.reduce_axis:
        schedule_reduction(s, stage.origin.output(0), target, together)
    elif isinstance(stage.op, ComputeOp):
        schedule_injective(s, stage.origin.output(0), target)
    elif isinstance(stage.op, ExternOp):
        s.apply_step(BindLoops(stage.id))


def seen_on_gpu(s: Schedule, stage: StageNode, target: Target) -> str:
    """What the rules make of a stage with a reduction, in words, for `explain`."""
    units = matrix_plan(s.tree, stage, target)
    if units is not None:
        rows, columns = units.sides
        return (
            f"a contraction on matrix units of {units.unit.ptx}: {units.warps} warps compute tiles of {rows.tile} x {columns.tile}, each "
            f"{rows.warp} x {columns.warp}, of {units.part} terms at a time in shared memory, where {units.copies} such parts have room"
            f"{_cut(units.tiling.parts)}"
        )
    short = short_plan(s.tree, stage, target)
    if short is not None:
        return (
            f"a product of a few rows: {short.threads} threads share the terms of each result, {short.beside} such groups of a block have "
            f"{short.each} columns each, and read the matrix by {short.width} elements{_cut(short.parts)}"
        )
    plan = tile_plan(s.tree, stage, target)
    if plan is not None:
        tile = " x ".join(str(part.size) for part in plan.tiles)
        terms = " x ".join(map(str, plan.chunk))
        return (
            f"a contraction: {plan.threads} threads compute tiles of {tile}, of {terms} terms at a time in shared memory{_cut(plan.parts)}"
        )
    if is_shared_by_threads(stage.compute):
        return "a reduction whose terms are neighbours in memory: the threads of a block share each result"
    return "a reduction whose results are neighbours in memory, or whose terms have an order: a thread for each result"


def _cut(parts: int) -> str:
    return f"; blocks of their own sum {parts} parts of the terms, which a second kernel adds up" if parts > 1 else ""
