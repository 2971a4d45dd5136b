"""Inputs whose layout is free, such as constant weights that may be packed once; and the computations that schedules make of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Any

from ..arith.index_map import IndexMap
from ..errors import TuningError
from ..schedule.given_layouts import given_inputs, given_layout
from ..schedule.layout_rewrite import ATTRIBUTE, as_declared, with_given_layouts, with_transform_stages
from ..schedule.steps.caching import redirect
from ..schedule.trace import Trace
from ..schedule.tree import ScheduleTree
from ..target import Target, TargetLike
from ..te.dag import topological_order
from ..te.extern import ExternOp
from ..te.operation import ComputeOp, Operation, PlaceholderOp
from ..te.tensor import Tensor
from ..tir.expr import ProducerLoad
from ..tir.rewriting import Node, post_order_rewrite


class LayoutRewriteOption(IntEnum):
    """How programs take the inputs that a computation lists under `attrs={"layout_free_placeholders": [B]}`.

    NO_REWRITE: as they were declared.
    INSERT_TRANSFORM_STAGE: as they were declared; the program may copy them into the layout in which it reads them.
    REWRITE_FOR_PRE_TRANSFORMED: in that layout. Whoever calls packs them, once for all calls.
    """

    NO_REWRITE = 0
    INSERT_TRANSFORM_STAGE = 1
    REWRITE_FOR_PRE_TRANSFORMED = 2

    @staticmethod
    def get_target_default(target: TargetLike, in_relay_integration: bool = False) -> LayoutRewriteOption:
        """The option for a target where the user names none.

        Args:
            target: what programs are for.
            in_relay_integration: a compiler of whole models calls, which packs constants itself.
        """
        if in_relay_integration:
            return LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED
        is_cpu = Target(target).kind.name == "llvm"
        return LayoutRewriteOption.INSERT_TRANSFORM_STAGE if is_cpu else LayoutRewriteOption.NO_REWRITE


def checked_option(option: Any, where: str) -> LayoutRewriteOption:
    """The option that a user named, as a member or a number.

    Raises:
        TuningError: if it is none.
    """
    known = {int(member): member for member in LayoutRewriteOption}
    # True is an int, and would be option 1.
    if isinstance(option, bool) or not isinstance(option, int) or int(option) not in known:
        listed = ", ".join(f"{number} ({member.name})" for number, member in known.items())
        raise TuningError(f"{where}: layout_rewrite_option is {option!r}; it is one of {listed}")
    return known[int(option)]


_REWRITES: Mapping[LayoutRewriteOption, Callable[[Trace, ScheduleTree], Trace]] = {
    LayoutRewriteOption.NO_REWRITE: lambda trace, tree: as_declared(trace),
    LayoutRewriteOption.INSERT_TRANSFORM_STAGE: with_transform_stages,
    LayoutRewriteOption.REWRITE_FOR_PRE_TRANSFORMED: with_given_layouts,
}


def rewrite_layouts(trace: Trace, tree: ScheduleTree, option: LayoutRewriteOption) -> Trace:
    """The trace for an option: all of them compute the same, from inputs in different layouts.

    Args:
        trace: all decisions made.
        tree: the unscheduled program.
        option: how layout-free inputs are passed.
    """
    return _REWRITES[option](trace, tree)


def with_packed_inputs(tensors: Sequence[Tensor], tree: ScheduleTree) -> list[Tensor]:
    """The tensors of a computation with those inputs packed that a schedule of it wants packed."""
    packed = {tensor: stage.op.output(0) for tensor, stage in given_inputs(tree).items()}
    layouts = {tensor: given_layout(tree, tensor) for tensor in packed}
    new: dict[Operation, Operation] = {tensor.op: made.op for tensor, made in packed.items()}
    # Producers first, so what an operation reads has been replaced by then.
    for op in topological_order(tensors):
        if op not in new:
            new[op] = _reading(op, new, layouts)
    return [new[tensor.op].output(tensor.value_index) for tensor in tensors]


def _reading(op: Operation, new: Mapping[Operation, Operation], layouts: Mapping[Tensor, IndexMap]) -> Operation:
    """An operation that reads what the new operations make."""
    changed = [tensor for tensor in op.input_tensors if new[tensor.op] is not tensor.op]
    if isinstance(op, ExternOp):
        for tensor in changed:
            op = op.reading(tensor.op, new[tensor.op].output(tensor.value_index))
        return op
    if not isinstance(op, ComputeOp) or not changed:
        return op

    def rule(node: Node) -> Node | None:
        if not isinstance(node, ProducerLoad) or not isinstance(node.producer, Tensor) or node.producer not in changed:
            return None
        made = new[node.producer.op].output(node.producer.value_index)
        layout = layouts.get(node.producer)
        return ProducerLoad(made, node.indices if layout is None else layout.map_indices(node.indices))

    # what is packed by now is free no more
    free = tuple(tensor for tensor in op.attrs.get(ATTRIBUTE, ()) if tensor not in layouts)
    attrs = op.attrs.set(**{ATTRIBUTE: free}) if ATTRIBUTE in op.attrs else op.attrs
    return replace(op, attrs=attrs, body=tuple(post_order_rewrite(body, rule) for body in op.body))


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
