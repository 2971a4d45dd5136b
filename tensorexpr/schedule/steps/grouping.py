"""Steps on groups of stages: what lies between some outputs and inputs, placed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ...dataclass import dataclass, replace
from ...errors import ScheduleError
from ..naming import PythonNames
from ..tree import At, Attach, Root, ScheduleTree, StageGroup, StageNode
from .base import Step
from .placement import ComputeAt


@dataclass(frozen=True)
class CreateGroup(Step):
    """The stages between `inputs` and `outputs` become a group: those on a path from an input to an output, outputs included.

    The inputs themselves belong to it where `include_inputs` is set and they are computed. Groups nest.
    """

    code: ClassVar[str] = "create_group"
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]
    include_inputs: bool

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with one more group.

        Raises:
            ScheduleError: for stages that aren't there, an empty group, or one that crosses another.
        """
        for number in (*self.outputs, *self.inputs):
            if not 0 <= number < len(tree.stages):
                raise ScheduleError(
                    f"create_group: the schedule has no stage {number}; stages: {', '.join(s.name for s in tree.in_order())}"
                )
        members = self._members(tree)
        if not members:
            raise ScheduleError(
                f"create_group: nothing is computed between the inputs {_names(tree, self.inputs)} and the outputs "
                f"{_names(tree, self.outputs)}; every stage of a group depends on one of its inputs"
            )
        for number, group in enumerate(tree.groups):
            shared = set(members) & set(group.members)
            if shared and shared != set(members) and shared != set(group.members):
                raise ScheduleError(
                    f"create_group: {_names(tree, sorted(shared))} is in group {number} already, which neither holds the new group nor "
                    "lies in it; groups are nested or apart"
                )
        return replace(tree, groups=(*tree.groups, StageGroup(members, self.outputs, self.inputs)))

    def _members(self, tree: ScheduleTree) -> tuple[int, ...]:
        """The computed stages, in order, that are reached from the outputs and reach an input."""
        reached = _above(tree, self.outputs, stop=set(self.inputs))
        found = {number for number in self.inputs if self.include_inputs}
        fed = set(self.inputs)
        # producers first, so that one pass finds all that the inputs feed
        for stage in tree.in_order():
            if stage.id in reached and any(tree.producer(load).id in fed for load in tree.reads(stage)):
                fed.add(stage.id)
                found.add(stage.id)
        return tuple(number for number in tree.order if number in found and not tree[number].is_placeholder)

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        outputs, inputs = (", ".join(names.stage(after[number]) for number in part) for part in (self.outputs, self.inputs))
        name = group_name(len(before.groups))
        return [f"{name} = s.create_group(outputs=[{outputs}], inputs=[{inputs}], include_inputs={self.include_inputs})"]


def group_name(number: int) -> str:
    """The Python name of a group."""
    return f"group_{number}"


def _names(tree: ScheduleTree, numbers: Sequence[int]) -> str:
    return ", ".join(tree[number].name for number in numbers) or "(none)"


def _above(tree: ScheduleTree, outputs: Sequence[int], stop: set[int]) -> set[int]:
    """The stages that `outputs` are made of, without what lies beyond `stop`."""
    found: set[int] = set()
    stack = list(outputs)
    while stack:
        number = stack.pop()
        if number not in found and number not in stop:
            found.add(number)
            stack.extend(tree.producer(load).id for load in tree.reads(tree[number]))
    return found


def _group(tree: ScheduleTree, number: int) -> StageGroup:
    if not 0 <= number < len(tree.groups):
        raise ScheduleError(f"the schedule has no group {number}; it has {len(tree.groups)}")
    return tree.groups[number]


def _with_attach(tree: ScheduleTree, number: int, attach: Attach) -> ScheduleTree:
    groups = (*tree.groups[:number], replace(tree.groups[number], attach=attach), *tree.groups[number + 1 :])
    return replace(tree, groups=groups)


def _at_home(tree: ScheduleTree, group: StageGroup) -> list[StageNode]:
    """The members that are where `compute_root` puts them."""
    return [tree[number] for number in group.members if tree[number].attach == tree.home(number)]


@dataclass(frozen=True)
class GroupComputeAt(Step):
    """The stages of a group that were left at its root are computed inside a loop; those at a loop of another stage stay there."""

    code: ClassVar[str] = "group_compute_at"
    group: int
    target: int
    axis: int

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the group's stages at the loop. Members go one by one, so each is checked as by `ComputeAt`.

        Raises:
            ScheduleError: if the loop is a member's.
        """
        group = _group(tree, self.group)
        if self.target in group.members:
            raise tree[self.target].refused(
                f"group {self.group} can't be computed at it, as it is a member itself; name a stage that reads the group's outputs"
            )
        # Found before the group has its new place, which changes what home is.
        moving = _at_home(tree, group)
        placed = _with_attach(tree, self.group, At(self.target, self.axis))
        for stage in moving:
            # a member of a group inside, which has a place of its own, stays there
            if placed.home(stage.id) == At(self.target, self.axis):
                placed = ComputeAt(stage.id, self.target, self.axis).apply(placed)
        return placed

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        target = after[self.target]
        return [f"{group_name(self.group)}.compute_at(s[{names.stage(target)}], {names.axis(target, self.axis)})"]


@dataclass(frozen=True)
class GroupComputeRoot(Step):
    """The stages of a group that were left at its root go where the group was made: to the root, or into the group around it."""

    code: ClassVar[str] = "group_compute_root"
    group: int

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        moving = _at_home(tree, _group(tree, self.group))
        placed = _with_attach(tree, self.group, Root())
        for stage in moving:
            placed = placed.with_stage(replace(placed[stage.id], attach=placed.home(stage.id)))
        return placed

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        return [f"{group_name(self.group)}.compute_root()"]
