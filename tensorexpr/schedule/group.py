"""The façade of a group of stages: `g = s.create_group(outputs, inputs)`, `g.compute_at(s[C], i)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ScheduleError
from ..tir.expr import IterVar
from .stage_views import View
from .steps.grouping import GroupComputeAt, GroupComputeRoot
from .tree import At

if TYPE_CHECKING:
    from .te_schedule import Schedule, Stage


class Group(View):
    """Stages that are placed together."""

    _schedule: Schedule

    @property
    def stages(self) -> list[Stage]:
        """The members, producers first; stages that cache_read, cache_write and rfactor make of them belong to the group too."""
        members = self._schedule.tree.groups[self.id].members
        return [stage for stage in self._schedule.stages if stage.id in members]

    @property
    def group(self) -> Group | None:
        """The smallest group around this one."""
        groups = self._schedule.tree.groups
        own = set(groups[self.id].members)
        around = [number for number, g in enumerate(groups) if number != self.id and _holds(set(g.members), own, number < self.id)]
        return Group(self._schedule, min(around, key=lambda number: len(groups[number].members))) if around else None

    @property
    def attach_stage(self) -> Stage | None:
        """The stage at whose loop the group is computed; None at the root."""
        attach = self._schedule.tree.groups[self.id].attach
        return next((s for s in self._schedule.stages if s.id == attach.stage), None) if isinstance(attach, At) else None

    @property
    def attach_ivar(self) -> IterVar | None:
        """The loop at which the group is computed; None at the root."""
        attach = self._schedule.tree.groups[self.id].attach
        return self._schedule.tree[attach.stage].axes[attach.axis] if isinstance(attach, At) else None

    def compute_at(self, parent: Stage, scope: IterVar) -> None:
        """Compute the members that are at the group's root inside the loop `scope` of the stage `parent`.

        Raises:
            ScheduleError: if `parent` is a member, or one of the members may not be computed there.
        """
        number = getattr(parent, "id", None)
        if not isinstance(number, int) or isinstance(parent, Group):
            raise ScheduleError(f"group {self.id}: compute_at takes a stage such as s[C] and one of its axes, not {parent!r}")
        self._schedule.apply_step(GroupComputeAt(self.id, number, parent._axis(scope, "compute_at")))

    def compute_root(self) -> None:
        """Put the members that are at the group's root back to where they were before `compute_at`."""
        self._schedule.apply_step(GroupComputeRoot(self.id))

    def __repr__(self) -> str:
        return f"group({', '.join(stage.op.name for stage in self.stages)})"


def _holds(outer: set[int], inner: set[int], made_before: bool) -> bool:
    # of groups with the same members the one made first is the outer one, as `Stage.group` has it
    return inner <= outer and (inner != outer or made_before)
