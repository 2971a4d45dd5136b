"""The computation that a schedule makes of another one: with the stages that caching and factoring added."""

from __future__ import annotations

from ..schedule.steps.caching import redirect
from ..schedule.tree import ScheduleTree
from ..te.operation import Operation, PlaceholderOp
from ..te.tensor import Tensor


def scheduled_operations(tree: ScheduleTree) -> dict[int, Operation]:
    """Stage -> its operation now, reading the others; producers first.

    A stage's consumers name the operation that they were declared with, whatever became of it.
    """
    made: dict[int, Operation] = {}
    for stage in tree.in_order():
        op = stage.op
        for tensor in dict.fromkeys(op.input_tensors):
            producer = tree.find(tensor.op)
            if producer is not None and made[producer.id] is not tensor.op:
                op = redirect(op, tensor.op, made[producer.id].output(tensor.value_index))
        made[stage.id] = op
    return made


def boundary_tensors(tree: ScheduleTree, operations: dict[int, Operation]) -> list[Tensor]:
    """The inputs of such a computation and its outputs."""
    inputs = [op.output(0) for op in operations.values() if isinstance(op, PlaceholderOp)]
    outputs = [operations[stage.id] for stage in tree.in_order() if stage.is_output]
    return [*inputs, *(op.output(n) for op in outputs for n in range(op.num_outputs))]
