"""What the schedules of AutoTVM's tasks have in common: the product under some results, accumulators, copies, arguments in blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...autotvm.env import GLOBAL_SCOPE
from ...dataclass import dataclass
from ...errors import ScheduleError
from ...schedule.te_schedule import Schedule, Stage, create_schedule
from ...spaces.dot_products import instruction_for
from ...spaces.nests import accumulators_of
from ...spaces.stages import result_of
from ...target import Target
from ...te.operation import ComputeOp, Operation
from ...te.tensor import Tensor
from ...te.tensor_intrin import TensorIntrin
from ...tir.arithmetic import as_int
from ...tir.expr import IterVar

# The longest loop that is written out where a knob may ask for any length: TVM's templates stop at 16 steps too.
MOST_UNROLLED = 16
# Bytes of a lane that one instruction multiplies and adds.
GROUP = 4


@dataclass(frozen=True, eq=False)
class Opened:
    """A schedule of some results, with the reduction that a task is about and where its elements end up."""

    s: Schedule
    product: Tensor
    result: Tensor

    @property
    def operands(self) -> list[Tensor]:
        """What the product reads, in the order of its declaration."""
        return list(self.product.op.input_tensors)


def opened(outs: Tensor | Sequence[Tensor]) -> Opened:
    """A schedule of some results: what comes after the product, element by element, is inlined into the last of it.

    Example:
        relu(dense(x, w) + b): the sum is the product, `b` is added where relu is computed, which is the result.

    Raises:
        ScheduleError: if no reduction is under the results, or what comes after it isn't elementwise.
    """
    results = [outs] if isinstance(outs, Tensor) else list(outs)
    s = create_schedule([tensor.op for tensor in results])
    pending, after = [tensor.op for tensor in results], list[Operation]()
    while pending and not _is_product(pending[0]):
        op = pending.pop(0)
        after.append(op)
        pending += [tensor.op for tensor in op.input_tensors if isinstance(tensor.op, ComputeOp)]
    if not pending:
        raise ScheduleError(f"nothing is summed under {', '.join(tensor.op.name for tensor in results)}; this schedule is for products")
    for op in after:
        if op not in s.outputs:
            s[op].compute_inline()
    product = pending[0].output(0)
    result = result_of(s, s.tree[s[product].id])
    if result.op not in s.outputs:
        raise ScheduleError(f"what is computed of {product.op.name} isn't elementwise, so that tiles of it can't be finished at once")
    return Opened(s, product, result)


def _is_product(op: Operation) -> bool:
    return isinstance(op, ComputeOp) and bool(op.reduce_axis)


def of_arguments() -> bool:
    """Whether a task is instantiated: operands then come packed, as a network's other operators leave them, and packing isn't timed."""
    return GLOBAL_SCOPE.in_tuning


def in_blocks(s: Schedule, tensor: Tensor, mapping: Callable[..., list[Any]]) -> Tensor:
    """A tensor in another layout, argument or not; what its stage makes now."""
    stage = s[tensor]  # once: by what it makes now it isn't found when that is another operation
    stage.transform_layout(mapping)
    found: Tensor = stage.op.output(0)
    return found


def accumulate(s: Schedule, product: Tensor, result: Tensor) -> Tensor:
    """The stage that sums up a tile of the result, in registers."""
    # as their stages are now: a copy that the product reads makes another operation of it
    now, final = (s[tensor].op.output(0) for tensor in (product, result))
    return accumulators_of(s, now, final)


def at_root(s: Schedule, tensor: Tensor) -> None:
    """A copy, made before anything reads it: rows on all cores, each in vectors."""
    *rows, last = s[tensor].op.axis
    if rows:
        s[tensor].parallel(s[tensor].fuse(*rows))
    s[tensor].vectorize(last)


def copies_at_root(s: Schedule, tensors: Sequence[Tensor]) -> None:
    """The copies that some operands are, of other copies perhaps: padded, packed. Each is made before it is read."""
    for tensor in tensors:
        if isinstance(tensor.op, ComputeOp):
            copies_at_root(s, tensor.op.input_tensors)
            at_root(s, s[tensor].op.output(0))


def write_out(stage: Stage, axis: IterVar, length: int | None = None) -> None:
    """Unroll a loop, unless it is too long."""
    steps = as_int(axis.dom.extent) if length is None and axis.dom is not None else length
    if steps is not None and steps <= MOST_UNROLLED:
        stage.unroll(axis)


def lanes() -> int:
    """Numbers of 32 bits in a vector of the target."""
    return Target.target_or_current(None).vector_bits // 32


def free_registers() -> int:
    """Accumulators that leave registers for operands."""
    return Target.target_or_current(None).vector_registers // 2 - 2


def sum_groups(s: Schedule, found: Opened, accumulators: Tensor, lane: IterVar, group: IterVar, width: int) -> None:
    """Sum up groups of four by the target's instruction, which takes whole vectors of the `width` lanes; without one step by step."""
    # the operands that the stage reads now: copies have the types of what they are of
    left, right = found.operands
    dot = instruction_for(left.dtype, right.dtype, found.product.dtype, Target.target_or_current(None))
    stage = s[accumulators]
    if dot is None or dot.group != GROUP or width % dot.outputs:
        stage.reorder(group, lane)
        stage.vectorize(lane)
        return
    vector, lane = stage.split(lane, factor=dot.outputs)
    stage.reorder(vector, lane, group)
    stage.unroll(vector)
    stage.tensorize(lane, TensorIntrin.get(dot.intrinsic))
