"""The ways to compute a product or a convolution in register tiles, the one of the fewest cycles first, and their steps."""

from __future__ import annotations

from ..dataclass import replace
from ..schedule.te_schedule import Schedule, create_schedule
from ..schedule.tree import Inline, ScheduleTree, StageNode
from ..target import Target
from .access import bordered
from .contraction_plan import Plan, contraction_plans
from .contractions import OPEN_ROWS, Contraction, Refused, contraction_of, contractions_of
from .conv_packed import copied, dense
from .conv_plan import convolution_plans, in_blocks, written_plan
from .convolutions import Convolution, convolution_of
from .stages import is_untouched, tiled_result
from .tiles import Tiles

# What code for each tile has to be better by: it takes longer to compile.
_WORTH_CODE = 0.985


def plans_of(tree: ScheduleTree, stage: StageNode, target: Target) -> list[Plan]:
    """The plans for a contraction with its last axis in the lanes; none for anything else."""
    found = contraction_of(tree, stage, taken_as=OPEN_ROWS)
    return contraction_plans(found, target) if isinstance(found, Contraction) else []


def plans_by_dots(tree: ScheduleTree, stage: StageNode, target: Target) -> list[Plan]:
    """The plans for a contraction of small numbers, convolutions too, with the axis in the lanes of which an instruction sums most.

    Example:
        C[i, j] += int32(A[i, k]) * int32(B[j, k]) of bytes, by fours along k. Not of float32, which no instruction sums in groups.
    """
    plans = [contraction_plans(one, target) for one in contractions_of(tree, stage)]
    groups = [(some[0].dot.group, some) for some in plans if some and some[0].dot is not None]
    # of equal groups the first: the last axis in the lanes
    return max(groups, key=lambda one: one[0])[1] if groups else []


def build_product(s: Schedule, stage: StageNode, plan: Plan, target: Target) -> None:
    """Schedule a contraction with the stage that makes the result of it element by element."""
    Tiles(s, tiled_result(s, stage), stage.origin.output(0), plan, target).build()


def convolutions_of(tree: ScheduleTree, stage: StageNode, target: Target) -> list[Plan]:
    """The plans for a convolution, of a dense copy of its data where one pays; none for anything else."""
    convolution = convolution_of(stage.op)
    plans = [] if convolution is None else convolution_ways(convolution, tree, stage, target)
    of_copy = dense(convolution, plans[0], target) if convolution is not None and plans else None
    if of_copy is None:
        return plans
    alone = create_schedule(of_copy.op).tree
    return convolution_ways(of_copy, alone, alone[alone.index[of_copy.op]], target)


def build_convolution(s: Schedule, stage: StageNode, plan: Plan, target: Target) -> None:
    """Schedule a convolution with the padding that it reads and the stage that reads it element by element.

    The stages that were scheduled are inlined, computed at a loop of another stage, or have vector loops afterwards.
    """
    # Asked before the copy is made, which adds a stage between the data and its reader.
    tensor, result, convolution = stage.origin.output(0), tiled_result(s, stage), convolution_of(stage.op)
    assert convolution is not None
    copy = copied(s, convolution, tensor) if plan.contraction.op is not stage.op else None
    peeled = plan.peeled and _is_plain_border(s, convolution)
    Tiles(s, result, tensor, replace(plan, peeled=peeled), target, copy).build()


def convolution_ways(convolution: Convolution, tree: ScheduleTree, stage: StageNode, target: Target) -> list[Plan]:
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
    """Rows of channels by vectors of pixels, if windows are single pixels that lie side by side; nothing is transposed.

    Example:
        Y[o, y, x] += D[k, y, x] * W[o, k]: rows o, and all y and x as one axis of columns.
    """
    found = contraction_of(tree, stage)
    if isinstance(found, Refused) or not found.right.lies_along(found.column) or convolution.merged_rows() != convolution.rows:
        return None
    plane = found.over_rows()
    plans = contraction_plans(plane, target) if plane.columns == convolution.rows else []
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
