"""The step that gives the loops of an extern to threads."""

from __future__ import annotations

from typing import ClassVar

from ...dataclass import dataclass, replace
from ...te.extern import ExternOp
from ..own_loops import loops_in_threads
from ..tree import ScheduleTree
from .base import StageStep, stage_of


@dataclass(frozen=True)
class BindLoops(StageStep):
    """The statement of an extern runs in threads of a grid, as kernels one after the other; see `schedule.own_loops`.

    for r in T.parallel(rows): f(r)   ->   in bx: in tx: if bx * 64 + tx < rows: f(bx * 64 + tx)
    """

    code: ClassVar[str] = "bind_loops"

    def apply(self, tree: ScheduleTree) -> ScheduleTree:
        """The tree with another statement of the stage; where it launches threads itself, these stay.

        Raises:
            ScheduleError: for a stage that is no extern.
        """
        stage = stage_of(tree, self.stage, "bind_loops")
        if not isinstance(stage.op, ExternOp):
            raise stage.refused("bind_loops is for externs, whose loops nothing else reaches; bind binds the loops of a stage")
        op = replace(stage.op, statement=loops_in_threads(stage.op.statement))
        return tree.with_stage(replace(stage, op=op, origin=stage.origin))
