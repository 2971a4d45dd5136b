"""`RewriteTensorize`: blocks that a rule marked for an intrinsic become that intrinsic."""

from __future__ import annotations

from ...errors import ScheduleError
from ...schedule.blocks import Schedule
from ..schedule_rule.multi_level_tiling_with_intrin import AUTO_TENSORIZE
from .blocks import all_blocks
from .postproc import PyPostproc


class RewriteTensorize(PyPostproc):
    """Tensorises blocks annotated with the name of an intrinsic; inits of reductions that have none are vectorised on request.

    Args:
        vectorize_init_loop: run the innermost loop of such an init as a vector.
    """

    def __init__(self, vectorize_init_loop: bool = False) -> None:
        self.vectorize_init_loop = vectorize_init_loop

    def apply(self, sch: Schedule) -> bool:
        """Rewrite all marked blocks; False if an intrinsic doesn't fit."""
        marked = [block for block in all_blocks(sch) if isinstance(sch.get(block).annotations.get(AUTO_TENSORIZE), str)]
        for block in marked:  # those inside of them go with them
            name = sch.get(block).annotations[AUTO_TENSORIZE]
            if not name and not self.vectorize_init_loop:
                continue
            sch.unannotate(block, AUTO_TENSORIZE)
            if not name:
                if inner := sch.get_child_blocks(block):
                    sch.vectorize(sch.get_loops(inner[0])[-1])
                continue
            try:
                sch.tensorize(block, name)
            except ScheduleError:
                return False
        return True
