"""Steps that say where a stage is computed: compute_at, compute_inline, compute_root, and its storage scope."""

from __future__ import annotations

from typing import ClassVar

from ...dataclass import dataclass, replace
from ...tir.expr import Reduce
from ...tir.storage_scope import SCOPE_KINDS, is_storage_scope
from ..attachment import check_nothing_inside, enclosing_loops
from ..naming import PythonNames
from ..scans import check_update_stays
from ..tree import At, Inline, LoopKind, ScheduleTree, StageNode
from .base import StageStep, check_leaf, check_not_inlined, stage_of


def _check_movable(tree: ScheduleTree, stage: StageNode, primitive: str) -> None:
    """An output may move to a reader of it; what nobody reads is computed at the root."""
    if stage.is_output and not (primitive == "compute_at" and tree.consumers(stage)):
        raise stage.refused(f"{primitive} can't move an output; outputs are computed at the root")


@dataclass(frozen=True)
class ComputeAt(StageStep):
    """A stage is computed inside a loop of its consumer, each time just the part that the loop's body reads.

    for i in n: A[i] = ...              for i in n:
    for i in n: B[i] = f(A[i])    ->        A[i] = ...
                                            B[i] = f(A[i])
    """

    code: ClassVar[str] = "compute_at"
    target: int
    axis: int

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the stage at the loop.

        Raises:
            ScheduleError: if the target comes before the stage, or is itself computed inside it.
        """
        stage = stage_of(tree, self.stage, "compute_at")
        target = stage_of(tree, self.target, "compute_at")
        _check_movable(tree, stage, "compute_at")
        check_update_stays(tree, stage, "compute_at")
        check_not_inlined(target, "compute_at")
        check_leaf(target, self.axis, "compute_at")
        # the target, or a stage around it, is computed at this one's loops: each would wait for the other
        if any(around.id == stage.id for around in (target, *(host for host, _ in enclosing_loops(tree, target)))):
            raise stage.refused(f"compute_at {target.name}, which is computed inside {stage.name} itself")
        # The order of stages is enough: producers stand before consumers, so one behind the target can't feed it.
        _check_reads(tree, stage, target)
        return tree.with_stage(replace(stage, attach=At(self.target, self.axis)))

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        stage, target = after[self.stage], after[self.target]
        return [f"s[{names.stage(stage)}].compute_at(s[{names.stage(target)}], {names.axis(target, self.axis)})"]


def _check_reads(tree: ScheduleTree, stage: StageNode, target: StageNode) -> None:
    """A loop of a stage that comes before its producer can't hold the producer."""
    if tree.order.index(stage.id) > tree.order.index(target.id):
        raise stage.refused(
            f"compute_at {target.name}, but {target.name} is not computed from {stage.name}; "
            f"{stage.name} is read by {', '.join(s.name for s in tree.consumers(stage)) or 'nothing'}"
        )


@dataclass(frozen=True)
class ComputeInline(StageStep):
    """A stage disappears into its consumers: each read becomes the stage's expression."""

    code: ClassVar[str] = "compute_inline"

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with the stage inline.

        Raises:
            ScheduleError: for outputs, reductions, what an extern reads, and stages with scheduled loops or others at them.
        """
        stage = stage_of(tree, self.stage, "compute_inline")
        _check_movable(tree, stage, "compute_inline")
        check_update_stays(tree, stage, "compute_inline")
        externs = [other.name for other in tree.consumers(stage) if not other.has_loops]
        if externs:
            raise stage.refused(f"the extern {externs[0]} reads all of it from memory, so it can't be inlined; leave it at the root")
        if any(isinstance(body, Reduce) for body in stage.compute.body):
            raise stage.refused("a reduction can't be inlined; use compute_at to bring it next to its consumer")
        check_nothing_inside(tree, stage, ", so it can't be inlined; move that first")
        # Nothing would be left of them without a word; pragmas are hints, and go quietly.
        if stage.relations or any(mark.kind is not LoopKind.SERIAL for mark in stage.marks.values()):
            raise stage.refused("its loops are scheduled already, so it can't be inlined; inline it first, or use compute_at")
        return tree.with_stage(replace(stage, attach=Inline()))


@dataclass(frozen=True)
class ComputeRoot(StageStep):
    """A stage is computed whole, before everything that reads it.

    In a group that is computed at a loop it goes there, and what depends on a state of a scan to the scan's time loop.
    """

    code: ClassVar[str] = "compute_root"

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        stage = stage_of(tree, self.stage, "compute_root")
        # A scan's step has no root of its own: what depends on a state exists only while time runs.
        return tree.with_stage(replace(stage, attach=tree.home(stage.id)))


@dataclass(frozen=True)
class SetScope(StageStep):
    """Where a stage's storage lives: "global" memory, "local" (small, private, a candidate for registers), or one of a device's."""

    code: ClassVar[str] = "set_scope"
    scope: str

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        stage = stage_of(tree, self.stage, "set_scope")
        _check_movable(tree, stage, "set_scope")
        check_scope(stage, self.scope)
        return tree.with_stage(replace(stage, scope=self.scope))

    def python(self, before: ScheduleTree, after: ScheduleTree, names: PythonNames) -> list[str]:
        return [f's[{names.stage(after[self.stage])}].set_scope("{self.scope}")']


def check_scope(stage: StageNode, scope: str) -> None:
    """Refuse a name that is no storage scope. Any scope may be named for any target: a CPU has one memory for all of them."""
    if scope and not is_storage_scope(scope):
        raise stage.refused(
            f"{scope!r} is no storage scope; scopes: {', '.join(SCOPE_KINDS)}, "
            "each also with a tag behind a dot, such as shared.dyn or global.texture"
        )
