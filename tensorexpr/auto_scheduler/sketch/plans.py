"""Tiles of matrix units as a design space: blocks, warps, parts of the sum and where they wait, by whole tiles that fit the chip.

A product gets one `Planned` space beside the sketches; all else of the program is scheduled by rules there. Other products keep the rule's
tiles meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ...errors import InternalError
from ...schedule.te_schedule import Schedule
from ...schedule.trace import Trace
from ...schedule.tree import ScheduleTree, StageNode
from ...spaces.contractions import inline_moves
from ...spaces.default import scheduled_by_plans, take_apart
from ...spaces.gpu import is_gpu
from ...spaces.gpu.block import limits_of
from ...spaces.gpu.matrix_plan import Tiling, matrix_plan, sums_in_parts, tilings
from ...spaces.stages import is_untouched
from ...target import Target
from ...te.operation import Operation
from ...tune.features import Extracted
from ...tune.features.device import Columns, kernel_columns, of_kernels
from ...tune.features.nest import IntArray
from ...tune.features.units import Counts, as_columns, counted
from ...tune.planned import Choice, Planned
from ...tune.space import Sketch

KNOBS = ("group", "tile_m", "tile_n", "warp_m", "warp_n", "chunks", "copies", "parts", "beside")
"""Whether four warps work together; rows and columns of a block and of a warp; chunks of 16 bytes of a part of the sum; parts that have
room in shared memory; parts that other blocks sum; rows of blocks that run side by side."""
_BESIDE = (1, 2, 4, 8, 16)
_PARTS = 8  # of the numbers of parts, those that are nearest to the rule's


def unit_spaces(outputs: tuple[Operation, ...], initial: ScheduleTree, target: Target) -> list[Planned]:
    """The spaces of products that matrix units of the target compute; none for other targets."""
    if not is_gpu(target):
        return []
    s = Schedule.going_on(initial)
    take_apart(s, target)
    found = []
    for stage in list(s.tree.in_order()):
        if is_untouched(s.tree[stage.id]) and matrix_plan(s.tree, s.tree[stage.id], target) is not None:
            inline_moves(s, s.tree[stage.id])
            space = _space(outputs, initial, s, s.tree[stage.id], target)
            found += [space] if space is not None else []
    return found


def _space(outputs: tuple[Operation, ...], initial: ScheduleTree, s: Schedule, stage: StageNode, target: Target) -> Planned | None:
    by_rule = matrix_plan(s.tree, stage, target)
    plans = {(*_choice(plan.tiling)[:7],): plan for plan in tilings(s.tree, stage, target)}
    if by_rule is None:
        return None
    limits = limits_of(target)
    own = replace(by_rule, tiling=replace(by_rule.tiling, copies=by_rule.copies, chunks=by_rule.part // by_rule.unit.chunk))
    rule = _choice(replace(own.tiling, beside=own.beside))
    plans[rule[:7]] = replace(own, tiling=replace(own.tiling, parts=1))
    rows = [
        (*key, parts, beside)
        for key, plan in plans.items()
        for parts in {1, *sums_in_parts(plan, limits)[-_PARTS:], *([rule[7]] if key == rule[:7] else [])}
        for beside in _BESIDE
        if plan.rows.tiles % beside == 0
    ]
    choices = np.array(rows, np.int64)
    knobs = {name: tuple(int(number) for number in np.unique(choices[:, place])) for place, name in enumerate(KNOBS)}

    def make(choice: Choice) -> Trace:
        made = Schedule.going_on(initial)
        scheduled_by_plans(made, target, wanted={stage.id: _tiling(choice)})
        return made.trace

    @lru_cache(maxsize=1 << 14)
    def counts(choice: Choice, cache: float) -> tuple[Counts, Counts]:
        return counted(replace(plans[choice[:7]], tiling=_tiling(choice)), limits, cache)

    @lru_cache(maxsize=1)
    def others(chosen: Target) -> Sequence[Columns]:
        """The kernels of the rest of the program, which don't depend on a choice; as they are where the sum is in one part."""
        sketch = Sketch("rest", outputs, initial, make((*rule[:7], 1, rule[8])))
        columns, _ = kernel_columns(sketch, sketch.bodies, np.zeros((1, 0), np.int64), chosen)
        on_units = [one for one in columns if one["on_units"].any()]
        if not on_units:
            raise InternalError(f"no kernel of the plan of {stage.name} is on matrix units")
        return [one for one in columns if one is not on_units[0]]

    def seen(chosen: IntArray, target: Target) -> Extracted:
        cache = float(target.attrs.get("l2_cache_size_bytes", limits.rates.l2 << 20))
        found = [counts(tuple(row), cache) for row in chosen.tolist()]
        own = [as_columns([one[kernel] for one in found]) for kernel in (0, 1)]
        rest = [{name: np.repeat(values, len(chosen)) for name, values in one.items()} for one in others(target)]
        return Extracted(*of_kernels([*own, *rest], len(chosen)), np.ones(len(chosen), bool))

    return Planned(f"Tiles({stage.name})", outputs, knobs, choices, rule, make, seen)


def _choice(tiling: Tiling) -> Choice:
    return (int(tiling.is_group), *tiling.shape, tiling.chunks, tiling.copies, tiling.parts, tiling.beside or 1)


def _tiling(choice: Choice) -> Tiling:
    group, rows, columns, row, column, chunks, copies, parts, beside = choice
    return Tiling((rows, columns, row, column), bool(group), chunks, copies, parts, beside)
