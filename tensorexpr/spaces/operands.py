"""What a stage reads, by the numbers of its root axes."""

from __future__ import annotations

from dataclasses import dataclass

from ..schedule.tree import ScheduleTree, StageNode
from ..te.affine_access import Access, access_of
from ..tir.arithmetic import as_int


@dataclass(frozen=True, eq=False)
class Operand(Access[int]):
    """One load of a stage, and the stage that it reads."""

    producer: StageNode


def operands_of(tree: ScheduleTree, stage: StageNode) -> list[Operand]:
    """The loads of a stage, each once. Axes of one iteration move nothing, so they are left out of the forms."""
    axes = [*stage.spatial, *stage.reduction]
    roots = {stage.axes[axis].var: axis for axis in axes}
    still = frozenset(axis for axis in axes if (dom := stage.axes[axis].dom) is not None and as_int(dom.extent) == 1)
    found = []
    for load in dict.fromkeys(tree.reads(stage)):
        access = access_of(load, roots.get, still)
        found.append(Operand(access.load, access.forms, access.partial, tree.producer(load)))
    return found
