"""What the primitives of a stage have in common: the schedule that they extend, and axes by their numbers in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tir.expr import IterVar
from .stage_views import StageFacts
from .steps.base import check_has_loops

if TYPE_CHECKING:
    from .te_schedule import Schedule


class StageAxes(StageFacts):
    """A stage whose axes primitives take."""

    _schedule: Schedule

    def _axis(self, ivar: Any, primitive: str) -> int:
        node = self._node
        check_has_loops(node, primitive)
        wanted = ivar.var if isinstance(ivar, IterVar) else ivar  # rfactor keeps a loop's variable and gives it a domain
        for number, axis in enumerate(node.axes):
            if axis.var is wanted:
                return number
        if not isinstance(ivar, IterVar):
            raise node.refused(f"{primitive} takes an axis, not {ivar!r}; axes: {node.axis_names()}")
        owner = next((s.name for s in self._schedule.tree.stages if any(a is ivar for a in s.axes)), None)
        where = f"it belongs to {owner}" if owner else "it belongs to no stage of this schedule"
        raise node.refused(f"no axis {ivar.name!r} to {primitive}, {where}; axes: {node.axis_names()}")

    def _new_axes(self, before: int) -> list[IterVar]:
        return list(self._node.axes[before:])
