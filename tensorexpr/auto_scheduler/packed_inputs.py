"""A computation that reads inputs in another layout than it was declared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..arith.index_map import IndexMap
from ..schedule.given_layouts import given_inputs, given_layout
from ..schedule.layout_rewrite import ATTRIBUTE
from ..schedule.tree import ScheduleTree
from ..te.dag import topological_order
from ..te.extern import ExternOp
from ..te.operation import ComputeOp, Operation
from ..te.tensor import Tensor
from ..tir.expr import ProducerLoad
from ..tir.rewriting import Node, post_order_rewrite


def with_packed_inputs(tensors: Sequence[Tensor], tree: ScheduleTree) -> list[Tensor]:
    """The tensors of a computation with those inputs packed that a schedule of it wants packed."""
    packed = {tensor: stage.op.output(0) for tensor, stage in given_inputs(tree).items()}
    layouts = {tensor: given_layout(tree, tensor) for tensor in packed}
    new: dict[Operation, Operation] = {tensor.op: made.op for tensor, made in packed.items()}
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

    free = tuple(tensor for tensor in op.attrs.get(ATTRIBUTE, ()) if tensor not in layouts)
    attrs = op.attrs.set(**{ATTRIBUTE: free}) if ATTRIBUTE in op.attrs else op.attrs
    return replace(op, attrs=attrs, body=tuple(post_order_rewrite(body, rule) for body in op.body))


__all__ = ["with_packed_inputs"]
