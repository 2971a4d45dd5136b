"""Arguments that are passed in another layout than they were declared with: which tensors they become, and where elements are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..arith.index_map import IndexMap
from ..errors import ScheduleError
from ..te.operation import Operation
from ..te.tensor import Tensor
from ..tir.expr import Var
from .steps.pre_transformed import layout_of
from .tree import ScheduleTree, StageNode


def given_inputs(tree: ScheduleTree) -> dict[Tensor, StageNode]:
    """Each declared input that is passed in another layout, with the stage of what is passed."""
    return {stage.source: stage for stage in tree.stages if stage.source is not None}


def given_arguments(tree: ScheduleTree, args: Sequence[Tensor]) -> list[Tensor]:
    """Arguments with what is passed in another layout in place of what was declared."""
    given: Mapping[Tensor, StageNode] = given_inputs(tree)
    return [given[arg].op.output(0) if arg in given else relaid(tree, arg) for arg in args]


def relaid(tree: ScheduleTree, tensor: Tensor) -> Tensor:
    """What the stage of a tensor makes of it since transform_layout moved its elements; the tensor itself where nothing did."""
    stage = tree.find(tensor.op)
    if stage is None or not stage.maps or tensor.op in (stage.origin, stage.op):
        return tensor
    return stage.origin.output(tensor.value_index)


def declared_arguments(tree: ScheduleTree, args: Sequence[Tensor]) -> list[Tensor]:
    """The same arguments as they were declared."""
    declared = {stage.op.output(0): tensor for tensor, stage in given_inputs(tree).items()}
    first: dict[int, Operation] = {}
    for op, number in tree.index.items():
        first.setdefault(number, op)  # an index holds what was declared before what it became
    return [declared[arg] if arg in declared else _declared(tree, arg, first) for arg in args]


def _declared(tree: ScheduleTree, tensor: Tensor, first: Mapping[int, Operation]) -> Tensor:
    stage = tree.find(tensor.op)
    return first[stage.id].output(tensor.value_index) if stage is not None and stage.maps else tensor


def given_layout(tree: ScheduleTree, tensor: Tensor) -> IndexMap:
    """The indices that elements of an argument have where the caller passes them: its own, unless the schedule wants another layout.

    Raises:
        ScheduleError: for a tensor that is neither input nor output of the schedule.
    """
    stage = given_inputs(tree).get(tensor)
    known = tree.find(tensor.op)
    if stage is None and (known is None or not (known.is_placeholder or known.is_output)):
        inputs = ", ".join(s.name for s in tree.in_order() if s.is_placeholder and s.source is None) or "none"
        raise ScheduleError(f"layout_of takes an input or output of the schedule, not {tensor.name}; inputs: {inputs}")
    stage = stage or known
    found = layout_of(stage, tensor.ndim) if stage is not None else None
    if found is not None:
        return found
    axes = tuple(Var(f"i{axis}", "int32") for axis in range(tensor.ndim))
    return IndexMap(axes, axes)
