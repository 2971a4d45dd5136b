"""Which schedule a computation gets when nobody wrote one and nothing was tuned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from ..dataclass import dataclass
from ..schedule.te_schedule import Schedule, create_schedule
from ..schedule.tree import ScheduleTree, StageNode
from ..target import Target, TargetLike
from ..te.operation import ComputeOp, PlaceholderOp
from ..te.tensor import Tensor
from ..tir.expr import Reduce
from .contraction_order import contract_in_order
from .contraction_plan import Plan
from .contractions import taken
from .dot_tiles import build_dots, dot_tiles
from .gpu import Tiling, alone_on_gpu, is_gpu, scheduled_for_gpu
from .injective import schedule_injective
from .inlining import inline_cheap_stages
from .machine import is_parallel
from .open_batch import for_any, of_one
from .pairs import build_pairs, rows_of_pairs
from .parts import distribute_sums, materialize_parts, pick_terms
from .products import build_convolution, build_product, convolutions_of, plans_by_dots, plans_of
from .recurrence import schedule_steps
from .reduction import contiguous_axis, is_regrouped, schedule_root_reduction
from .rows import common_rows, has_known_rows, schedule_rows
from .stages import constant_extents, untouched
from .turned import turn_operands
from .window import Window, build_window, sums_of_windows, windows_of
from .winograd import build_filtering, filterings_of


def default_schedule(tensors: Sequence[Tensor], target: TargetLike | None = None) -> Schedule:
    """A schedule by rules, without measuring.

    Convolutions with a border skip its products: where a weight is infinite or NaN, its product with a zero of the border gives
    no NaN in the result. Sums of products have another order than they are written in: what scales all terms multiplies their sum, and
    some of several factors are multiplied and summed before the others, where that takes less than half of the operations.

    Args:
        tensors: inputs and outputs of the computation, as for `build`.
        target: what it will run on; by default the current target, or this machine.
    """
    chosen = Target.target_or_current(target)
    s = create_schedule([tensor.op for tensor in tensors if not isinstance(tensor.op, PlaceholderOp)])
    one = None if is_gpu(chosen) else of_one(s)
    if one is not None:
        scheduled_by_plans(one, chosen)
        made = for_any(s, one)
        if made is not None:
            return made
    scheduled_by_plans(s, chosen)
    return s


def scheduled_by_plans(s: Schedule, target: Target, alternative: int = 0, wanted: Mapping[int, Tiling] | None = None) -> None:
    """Schedule what nothing has been said of yet.

    Args:
        s: the schedule.
        target: what it will run on.
        alternative: which plan contractions get: 0 the one of the fewest cycles, 1 the next one, and the last one if there are
            no more; on GPUs see `gpu.scheduled_for_gpu`.
    """
    take_apart(s, target)
    if is_gpu(target):
        scheduled_for_gpu(s, target, alternative, wanted)
        return
    schedule_steps(s, target)
    scheduled_contractions(s, target, alternative)
    left = list(untouched(s))
    # Last, as rows are for whatever is left: a softmax behind a product shares no loop with the product's tiles.
    rows = rows_of_program(s, left, target)
    if rows:
        schedule_rows(s, left[-1].origin.output(0), left[:-1], rows, target)
        return
    for stage in left:
        schedule_alone(s, stage, target)


def take_apart(s: Schedule, target: Target) -> None:
    """Give products stages of their own, apart from what they are summed with, scaled by, or made of, and inline what is cheap."""
    pick_terms(s)
    # before everything else, as what is inlined decides where operands lie
    inline_cheap_stages(s, target)
    # what adds up and scales may be a part of what reads it
    if not is_gpu(target) and distribute_sums(s):
        inline_cheap_stages(s, target)
    if contract_in_order(s):
        inline_cheap_stages(s, target)
    if not is_gpu(target):
        materialize_parts(s, target)


@dataclass(frozen=True)
class Rule:
    """What takes stages that nothing has been said of.

    Args:
        ways: to compute a stage, as descriptions, the preferred one first; none if the stage is for other rules.
        build: the steps of one of them.
        words: what it makes of the stage, for people.
        moves: what only brings operands to other places is made part of the stage first.
        alternatives: it takes stages when other programs than the preferred one are wanted, too.
    """

    ways: Callable[[ScheduleTree, StageNode, Target], Sequence[Any]]
    build: Callable[[Schedule, StageNode, Any, Target], None]
    words: str | Callable[[StageNode, Any], str]
    moves: bool = False
    alternatives: bool = True


def _pairs(stage: StageNode, row: int) -> str:
    return f"a sum over pairs: {stage.compute.axis[row].name} in the lanes, each term for all of them"


def _product(_: StageNode, plan: Plan) -> str:
    names, found = plan.contraction.names, plan.contraction
    rows = f"{'any number of ' if found.opened else ''}rows {names(*found.rows)}"
    return f"a contraction: {rows}, columns {names(found.column)}, summed over {names(*found.summed)}"


def _windows(_: StageNode, window: Window) -> str:
    return (
        f"windows written out, in a loop over what else is summed: {_SHARED.replace('rows', 'channels') if window.sharing[1] else _SHARED}"
    )


_SHARED = "several rows of results share their loads"
# The rules for sums of products and over windows, from the most special one on: each takes what those before it left untouched.
RULES = (
    Rule(rows_of_pairs, build_pairs, _pairs),
    Rule(filterings_of, build_filtering, "a convolution by minimal filtering: products of tiles of pixels by channels"),
    # Nothing else comes near an instruction that sums groups: where there is one, it sums what has windows, too.
    Rule(plans_by_dots, build_product, "a contraction by instructions that sum groups of small numbers", moves=True),
    Rule(windows_of, build_window, f"a window written out: {_SHARED}"),
    Rule(sums_of_windows, build_window, _windows),
    Rule(convolutions_of, build_convolution, "a convolution: tiles of pixels by vectors of channels"),
    Rule(dot_tiles, build_dots, "tiles of dot products: a few rows, with terms of the sum in the lanes", moves=True, alternatives=False),
    Rule(plans_of, build_product, _product, moves=True),
)


def scheduled_contractions(s: Schedule, target: Target, alternative: int = 0) -> None:
    """Schedule what a rule takes, with what it reads and what reads it; what is left gets operands that lie in its order."""
    for rule in RULES if not alternative else [one for one in RULES if one.alternatives]:
        for stage, ways in taken(s, rule.ways, target, rule.moves):
            rule.build(s, stage, ways[min(alternative, len(ways) - 1)], target)
    turn_operands(s, target)


def words_of(tree: ScheduleTree, stage: StageNode, target: Target) -> str | None:
    """What the first rule that takes a stage makes of it; None if none does."""
    for rule in RULES:
        if ways := rule.ways(tree, stage, target):
            return rule.words if isinstance(rule.words, str) else rule.words(stage, ways[0])
    return None


def rows_of_program(s: Schedule, left: Sequence[StageNode], target: Target) -> int:
    """How many leading axes all stages left share, if they are to be computed row by row; else 0.

    Of several outputs the last one is made of all others: a sum of rows and its norm, say.
    """
    last = left[-1] if left else None
    if last is None or not last.is_output or len(left) == 1 or not _is_made_of(s, last, left[:-1]):
        return 0
    if not all(isinstance(stage.op, ComputeOp) for stage in left) or last.compute.reduce_axis:  # loops of their own have no rows
        return 0
    rows = common_rows(s, last.origin.output(0), left[:-1])
    return rows if rows and has_known_rows(s, left, rows) and _has_enough_rows(last, left[:-1], rows, target) else 0


def _is_made_of(s: Schedule, last: StageNode, others: Sequence[StageNode]) -> bool:
    """True if a stage reads all outputs among others, by itself or through other stages."""
    seen: set[int] = set()
    waiting = [last]
    while waiting:
        for load in s.tree.reads(waiting.pop()):
            producer = s.tree.producer(load)
            if producer.id not in seen:
                seen.add(producer.id)
                waiting.append(producer)
    # An output that the last stage isn't made of has no reader inside of the loop over rows, and so no place there.
    return all(stage.id in seen for stage in others if stage.is_output)


def _has_enough_rows(last: StageNode, inner: Sequence[StageNode], rows: int, target: Target) -> bool:
    """True unless a few rows, each a lot of work, would leave threads idle that could share the reductions, or the results, of one row."""
    # Example: a softmax over 4 rows of a million on 16 cores: 12 would wait, so each reduction is cut over all of them instead.
    count = constant_extents(last.compute.axis[:rows])
    depth = [constant_extents((*stage.compute.axis, *stage.compute.reduce_axis)) for stage in (*inner, last)]
    work = max((prod(extents) for extents in depth if extents is not None), default=0)
    return count is None or prod(count) >= target.num_cores or not is_parallel(target, work)


def _may_have_lanes(op: ComputeOp) -> bool:
    """True if lanes are results, or terms that may be reduced in any order: an argmax over columns, or several sums at once."""
    axis, body = contiguous_axis(op), op.body[0]
    return any(axis is result for result in op.axis) or (isinstance(body, Reduce) and is_regrouped(body))


def schedule_alone(s: Schedule, stage: StageNode, target: Target) -> None:
    """Schedule a stage that stays at the root, without its neighbours; of several results that depend on each other it keeps its loops."""
    if is_gpu(target):
        alone_on_gpu(s, stage, target)
        return
    if not isinstance(stage.op, ComputeOp) or (stage.op.num_outputs != 1 and not _may_have_lanes(stage.op)):
        return
    tensor = stage.origin.output(0)
    if stage.op.reduce_axis:
        schedule_root_reduction(s, tensor, target)
    else:
        schedule_injective(s, tensor, target)
