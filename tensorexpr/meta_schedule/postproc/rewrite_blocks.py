"""Postprocessors of reductions and of blocks that a rule marked: inits stand before reductions, marked blocks become intrinsics."""

from __future__ import annotations

from ...errors import ScheduleError
from ...schedule.blocks import BlockRV, LoopRV, Schedule
from ...tir.block import Block
from ...tir.expr import IterVar
from ...tir.rewriting import variables
from ...tir.stmt import ForKind
from ..schedule_rule.multi_level_tiling_with_intrin import AUTO_TENSORIZE, AUTO_TENSORIZE_INIT
from .blocks import all_blocks
from .postproc import PyPostproc


class RewriteReductionBlock(PyPostproc):
    """Decomposes every reduction at its outermost loop that reduces."""

    def apply(self, sch: Schedule) -> bool:
        """Rewrite all reductions; always True."""
        for block in all_blocks(sch):
            stmt: Block = sch.get(block)
            loop = _first_reducing(sch, block) if stmt.init is not None else None
            if loop is not None:
                init = sch.decompose_reduction(block, loop)
                if AUTO_TENSORIZE in stmt.annotations:
                    _mark_init(sch, block, init)
        return True


def _mark_init(sch: Schedule, block: BlockRV, init: BlockRV) -> None:
    """Say which intrinsic, if any, is for the init: it is not the reduction's own."""
    own = sch.get(block).annotations.get(AUTO_TENSORIZE_INIT)
    sch.unannotate(init, AUTO_TENSORIZE)
    sch.annotate(init, AUTO_TENSORIZE, own if own is not None else "")
    for marked in (block, init) if own is not None else ():
        sch.unannotate(marked, AUTO_TENSORIZE_INIT)


def _first_reducing(sch: Schedule, block: BlockRV) -> LoopRV | None:
    """The outermost loop that reduces; None if there is none, or if threads share the reduction: all of them have an init then."""
    realize = sch.realization(block)
    reduced = set().union(
        *(
            variables(value)
            for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
            if axis.iter_type == IterVar.COMM_REDUCE
        )
    )
    reducing = [loop for loop in sch.get_loops(block) if sch.get(loop).loop_var in reduced]
    shared = any(sch.get(loop).kind is ForKind.THREAD_BINDING for loop in reducing)
    return reducing[0] if reducing and not shared else None


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
