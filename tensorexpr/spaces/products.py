"""Which stages of a program get register tiles: its products, with what each reads and what reads it, by the plan of the fewest cycles."""

from __future__ import annotations

from dataclasses import replace

from ..schedule.te_schedule import Schedule, create_schedule
from ..schedule.tree import Inline, ScheduleTree, StageNode
from ..target import Target
from .access import bordered
from .contraction_plan import Plan, contraction_plans
from .contractions import OPEN_ROWS, Contraction, Refused, contraction_of, contractions_of, taken
from .conv_packed import copied, dense
from .conv_plan import convolution_plans, in_blocks, written_plan
from .convolutions import Convolution, convolution_of
from .stages import is_untouched, tiled_result, untouched
from .tiles import Tiles

# What code for each tile has to be better by: it takes longer to compile.
_WORTH_CODE = 0.985


def schedule_contractions(s: Schedule, target: Target, alternative: int = 0, by_dots: bool = False) -> None:
    """Schedule all contractions, each with the stage that makes the result of it element by element.

    Args:
        s: the schedule.
        target: what it will run on.
        alternative: which plan they get, see `scheduled_by_plans`.
        by_dots: only those of small numbers that the target has an instruction for, convolutions too: nothing else comes near it.
    """
    for stage, plans in taken(s, lambda one: planned(s, one, target, by_dots)):
        Tiles(s, tiled_result(s, stage), stage.origin.output(0), plans[min(alternative, len(plans) - 1)], target).build()


def planned(s: Schedule, stage: StageNode, target: Target, by_dots: bool) -> list[Plan]:
    """The plans for a stage with its last axis in the lanes or, for dot products, the one with which an instruction sums most."""
    found = contractions_of(s.tree, stage) if by_dots else [contraction_of(s.tree, stage, taken_as=OPEN_ROWS)]
    plans = [contraction_plans(one, stage.origin.output(0).dtype, target) for one in found if isinstance(one, Contraction)]
    groups = [(plan.dot.group if plan.dot is not None else 0, some) for some in plans for plan in some[:1]]
    # of equal groups the first: the last axis in the lanes
    group, chosen = max(groups, key=lambda one: one[0], default=(0, []))
    return chosen if group or not by_dots else []


def schedule_convolutions(s: Schedule, target: Target, alternative: int = 0) -> None:
    """Schedule all convolutions, each with the padding that it reads and the stage that reads it element by element.

    The stages that were scheduled are inlined, computed at a loop of another stage, or have vector loops afterwards.
    """
    for node in untouched(s):
        convolution = convolution_of(node.op)
        if convolution is None:
            continue
        # Asked before the copy is made, which adds a stage between the data and its reader.
        tensor, result = node.origin.output(0), tiled_result(s, node)
        plans, copy = plans_of(convolution, s.tree, node, target), None
        of_copy = dense(convolution, plans[0], target) if plans else None
        if of_copy is not None:
            copy, tree = copied(s, convolution, tensor), create_schedule(of_copy.op).tree
            convolution, plans = of_copy, plans_of(of_copy, tree, tree[tree.index[of_copy.op]], target)
        if plans:
            plan = plans[min(alternative, len(plans) - 1)]
            peeled = plan.peeled and _is_plain_border(s, convolution)
            Tiles(s, result, tensor, replace(plan, peeled=peeled), target, copy).build()


def plans_of(convolution: Convolution, tree: ScheduleTree, stage: StageNode, target: Target) -> list[Plan]:
    """The ways to compute a convolution, the preferred one first."""

    def cycles(plan: Plan) -> float:
        return plan.cycles(target)

    plans = convolution_plans(convolution, target)
    flat, written = flat_plan(convolution, tree, stage, target), written_plan(convolution, target)
    blocks = [found for plan in plans if (found := in_blocks(plan, target)) is not None]
    if blocks and (blocked := min(blocks, key=cycles)).cycles(target) < plans[0].cycles(target):
        plans.insert(0, blocked)
    if written is not None:
        code = [found for found in (in_blocks(written, target), written) if found is not None]
        plans = [*code, *plans] if not plans or _is_worth_code(code[0], plans[0], target) else plans
    if flat is not None:
        plans.insert(0 if not plans or flat.cycles(target) < plans[0].cycles(target) else 1, flat)
    return plans


def flat_plan(convolution: Convolution, tree: ScheduleTree, stage: StageNode, target: Target) -> Plan | None:
    """Rows of channels by vectors of pixels, if windows are single pixels that lie side by side; nothing is transposed."""
    found = contraction_of(tree, stage)
    if isinstance(found, Refused) or not found.right.lies_along(found.column) or convolution.merged_rows() != convolution.rows:
        return None
    plane = found.over_rows()
    plans = contraction_plans(plane, convolution.op.output_dtype(0), target) if plane.columns == convolution.rows else []
    # The other ways to pack are alternatives, whether they cost fewer cycles or more.
    return next((plan for plan in plans if plan.tile.chunks == 1 and plan.pack is plans[0].pack), None)


def _is_worth_code(written: Plan, loops: Plan, target: Target) -> bool:
    """True if tiles that are written out save more than noise: a part of the whole, and more than starting threads takes."""
    # Cycles are of the busiest core; the difference that code for each tile has to make up for is that of all cores.
    one, other, cores = written.cycles(target), loops.cycles(target), target.num_cores if loops.parallel else 1
    return one < _WORTH_CODE * other and (other - one) * cores > target.machine.fork_join_cycles


def _is_plain_border(s: Schedule, convolution: Convolution) -> bool:
    """True if the padded data is nothing but a stored tensor with a border, so that it costs nothing to read the tensor instead."""
    stage = s.tree[s[convolution.data.tensor].id]
    load = bordered(stage.op)
    stored = load is not None and not isinstance(s.tree.producer(load).attach, Inline)
    return stored and not stage.is_output and is_untouched(stage)
