"""Which schedule a computation gets when nobody wrote one and nothing was tuned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from ..dataclass import dataclass
from ..schedule.steps import ComputeInline
from ..schedule.te_schedule import Schedule, create_schedule
from ..schedule.tree import Inline, ScheduleTree, StageNode
from ..target import Target, TargetLike
from ..te.access import is_costly, is_strictly_inlineable, needs_multi_level_tiling
from ..te.operation import ComputeOp, PlaceholderOp
from ..te.tensor import Tensor
from ..tir.expr import Reduce
from .access import is_move, is_view
from .contraction_order import contract_in_order
from .contraction_plan import Plan
from .contractions import Refused, contraction_of, taken
from .convolutions import convolution_of
from .dot_tiles import build_dots, dot_tiles
from .gpu import Tiling, alone_on_gpu, is_gpu, scheduled_for_gpu
from .injective import schedule_injective
from .machine import is_parallel, operations
from .pairs import build_pairs, rows_of_pairs
from .parts import MANY_READS, WORTH_A_LOOP, distribute_sums, materialize_parts, pick_terms
from .products import build_convolution, build_product, convolutions_of, plans_by_dots, plans_of
from .recurrence import schedule_steps
from .reduction import contiguous_axis, is_regrouped, schedule_root_reduction
from .rows import common_rows, has_known_rows, schedule_rows
from .stages import constant_extents, reads_elementwise, result_of, untouched
from .turned import turn_operands
from .window import build_window, sums_of_windows, windows_of


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


_SHARED = "several rows of results share their loads"
# The rules for sums of products and over windows, from the most special one on: each takes what those before it left untouched.
RULES = (
    Rule(rows_of_pairs, build_pairs, _pairs),
    # Nothing else comes near an instruction that sums groups: where there is one, it sums what has windows, too.
    Rule(plans_by_dots, build_product, "a contraction by instructions that sum groups of small numbers", moves=True),
    Rule(windows_of, build_window, f"a window written out: {_SHARED}"),
    Rule(sums_of_windows, build_window, f"windows written out, in a loop over what else is summed: {_SHARED}"),
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


def inline_cheap_stages(s: Schedule, target: Target) -> None:
    """Inline what costs nothing to compute again, and what is read once for each of its elements."""
    for stage in list(s.tree.in_order()):
        if stage.is_placeholder or stage.is_output or not isinstance(stage.op, ComputeOp) or stage.op.reduce_axis:
            continue
        # looked up again: inlining other stages has changed who reads what
        readers = s.tree.consumers(s.tree[stage.id])
        # Loops of an operator's own, such as a sort's, read memory; a step of a scan stays where the time loop finds it.
        if stage.id in s.tree.carried or not all(reader.has_loops for reader in readers):
            continue
        # A table, such as the waves of a Fourier transform: a sum reads each of its elements for many results.
        if is_costly(stage.op) and any(isinstance(reader.op, ComputeOp) and reader.op.reduce_axis for reader in readers):
            continue
        once = len(readers) == 1 and isinstance(readers[0].op, ComputeOp) and not readers[0].op.reduce_axis
        if not is_gpu(target) and (_ends_a_product(s, stage) or any(_is_worth_storing(s, stage, reader) for reader in readers)):
            continue
        # a reader of more elements than the stage has would compute some of them again
        if is_strictly_inlineable(stage.op) or is_view(stage.op) or (once and _elements(readers[0]) <= _elements(stage)):
            s.apply_step(ComputeInline(stage.id))


def _ends_a_product(s: Schedule, stage: StageNode) -> bool:
    """True for the last stage that is made of a product's results element by element: it is stored in place of them, by the same loops.

    Example:
        H = relu(X @ W + b);  Y = H @ V: with H inlined, each panel of columns of V would compute it again, to multiply vectors by its
        elements (1024 x 512 x 512: 9.4 -> 7.2 ms, two cores of Zen 3). A border around H has less to do, too.
    """
    if all(reads_elementwise(s.tree, reader, stage) for reader in s.tree.consumers(stage)):
        return False
    waiting = [stage]
    # the list grows while it is walked
    for current in waiting:
        for producer in map(s.tree.producer, s.tree.reads(current)):
            # A quantised value reads scales and zeros along all axes, as an outer product its vectors, and sums nothing.
            is_product = needs_multi_level_tiling(producer.op) and bool(producer.compute.reduce_axis)
            if is_product and result_of(s, producer) is stage.origin.output(0):
                return True
            if isinstance(producer.attach, Inline):
                waiting.append(producer)
    return False


def _is_worth_storing(s: Schedule, stage: StageNode, reader: StageNode) -> bool:
    """True if a product or a convolution would compute elements of a stage so often that a loop of its own costs less.

    Example:
        relu(X + b) @ V of 20000 x 96 x 64: 2.4 -> 1.5 ms; 64 x 256 x 64: 0.023 -> 0.026 (two cores of Zen 3). Of V * scale panels are made.
    """
    if is_move(stage.compute) or not isinstance(reader.op, ComputeOp) or not reader.op.reduce_axis:
        return False
    extents = constant_extents((*reader.op.axis, *reader.op.reduce_axis))
    steps = prod(extents or (0,))
    if steps < MANY_READS * _elements(stage) or operations(stage.compute.body, steps) < WORTH_A_LOOP:
        return False
    found = contraction_of(s.tree, reader)
    if isinstance(found, Refused):
        return convolution_of(reader.op) is not None
    return found.right.tensor is not stage.origin.output(0) or not found.can_be_packed


def _elements(stage: StageNode) -> float:
    extents = constant_extents(stage.compute.axis)
    return 0 if extents is None else prod(extents)


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
