"""Inputs that are passed in another layout than they were declared with: which arguments they become, and where elements are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..arith.index_map import IndexMap
from ..errors import ScheduleError
from ..te.tensor import Tensor
from ..tir.expr import Var
from .steps.pre_transformed import layout_of
from .tree import ScheduleTree, StageNode


def given_inputs(tree: ScheduleTree) -> dict[Tensor, StageNode]:
    """Each declared input that is passed in another layout, with the stage of what is passed."""
    return {stage.source: stage for stage in tree.stages if stage.source is not None}


def given_arguments(tree: ScheduleTree, args: Sequence[Tensor]) -> list[Tensor]:
    """Arguments with the inputs that are passed in another layout in place of those that were declared."""
    given: Mapping[Tensor, StageNode] = given_inputs(tree)
    return [given[arg].op.output(0) if arg in given else arg for arg in args]


def declared_arguments(tree: ScheduleTree, args: Sequence[Tensor]) -> list[Tensor]:
    """The same arguments as they were declared."""
    declared = {stage.op.output(0): tensor for tensor, stage in given_inputs(tree).items()}
    return [declared.get(arg, arg) for arg in args]


def given_layout(tree: ScheduleTree, tensor: Tensor) -> IndexMap:
    """The indices that elements of an input have where the caller passes them: its own, unless the schedule wants another layout.

    Raises:
        ScheduleError: for a tensor that is no input of the schedule.
    """
    stage = given_inputs(tree).get(tensor)
    known = tree.find(tensor.op)
    if stage is None and (known is None or not known.is_placeholder):
        inputs = ", ".join(s.name for s in tree.in_order() if s.is_placeholder and s.source is None) or "none"
        raise ScheduleError(f"layout_of takes an input of the schedule, not {tensor.name}; inputs: {inputs}")
    found = layout_of(stage, tensor.ndim) if stage is not None else None
    if found is not None:
        return found
    axes = tuple(Var(f"i{axis}", "int32") for axis in range(tensor.ndim))
    return IndexMap(axes, axes)


__all__ = ["declared_arguments", "given_arguments", "given_inputs", "given_layout"]
