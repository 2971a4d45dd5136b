"""`RewriteReductionBlock`: the init of a reduction runs once, before the first loop that reduces."""

from __future__ import annotations

from ...schedule.blocks import BlockRV, LoopRV, Schedule
from ...tir.block import Block
from ...tir.expr import IterVar
from ...tir.rewriting import variables
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
                sch.decompose_reduction(block, loop)
        return True


def _first_reducing(sch: Schedule, block: BlockRV) -> LoopRV | None:
    realize = sch.realization(block)
    reduced = set().union(
        *(
            variables(value)
            for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
            if axis.iter_type == IterVar.COMM_REDUCE
        )
    )
    return next((loop for loop in sch.get_loops(block) if sch.get(loop).loop_var in reduced), None)
