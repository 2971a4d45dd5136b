"""The step that leaves elements of a stage out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ...dataclass import dataclass, replace
from ...errors import ScheduleError, TensorExprError
from ...tir.arithmetic import convert
from ...tir.expr import Var
from ...tir.thread import HARDWARE_TAGS
from ..axis_expression import as_python, axes_of, decode, encode, problem_of
from ..naming import PythonNames
from ..tree import AxisExpression, ScheduleTree, StageNode
from .base import StageStep, check_not_inlined, stage_of


@dataclass(frozen=True)
class SetStorePredicate(StageStep):
    """Only the elements of a stage where a predicate over its spatial axes (`op.axis`) holds are computed and stored.

    The predicate may also speak of the threads of a grid: of the threads that share a reduction, tx.var.equal(0) lets one store.

    for i in n: B[i] = ...     ->     for i in n:
                                          if predicate(i): B[i] = ...

    Where it doesn't hold an output keeps what the caller's array held. What a consumer reads has to be stored, so the
    predicate has to hold, provably, for each element that is read. Setting another predicate replaces the first.
    """

    code: ClassVar[str] = "set_store_predicate"
    predicate: AxisExpression

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the predicate.

        Raises:
            ScheduleError: if it is no condition, or speaks of other axes than the spatial ones.
        """
        stage = stage_of(tree, self.stage, "set_store_predicate")
        check_not_inlined(stage, "set_store_predicate")
        problem = problem_of(self.predicate)
        if problem is not None:
            raise stage.refused(f"set_store_predicate can't take {problem}")
        spatial = ", ".join(stage.axes[axis].name for axis in stage.spatial)
        wrong = [axis for axis in axes_of(self.predicate) if axis not in stage.spatial]
        if wrong:
            names = ", ".join(stage.axes[axis].name if 0 <= axis < len(stage.axes) else str(axis) for axis in wrong)
            raise stage.refused(f"a store predicate can't speak of {names}; it is about the axes {spatial}")
        expr = decode(self.predicate, tuple(stage.axes[axis].var for axis in stage.spatial))
        if expr.dtype != "bool":
            raise stage.refused(f"a store predicate is a condition such as {spatial} < 8, not the value {expr}")
        return tree.with_stage(replace(stage, store_predicate=self.predicate))

    def arguments(self, stage: StageNode, names: PythonNames) -> str:
        return as_python(self.predicate, [names.axis(stage, axis) for axis in stage.spatial])


def predicate_of(stage: StageNode, predicate: Any, threads: Mapping[Var, str]) -> AxisExpression:
    """A condition over a stage's spatial axes, and over threads of these variables and tags, as the step stores it.

    Raises:
        ScheduleError: for other axes, and for what has no form in a schedule.
    """
    try:
        expr = convert(predicate)
    except TensorExprError:
        expr = None
    if expr is None:
        raise stage.refused(f"set_store_predicate takes a condition over op.axis, not {predicate!r}")
    try:
        axes = {stage.axes[axis].var: axis for axis in stage.spatial}
        data: AxisExpression = encode(expr, axes, {var: tag for var, tag in threads.items() if tag in HARDWARE_TAGS})
    except ScheduleError as error:
        raise stage.refused(f"set_store_predicate: {error}") from error
    return data
