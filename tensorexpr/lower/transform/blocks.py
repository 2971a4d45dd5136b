"""The passes on blocks as users call them: `tir.transform.LowerInitBlock()` and so on."""

from __future__ import annotations

from dataclasses import replace

from ...tir.block import Block, with_guarded_init
from ...tir.function import PrimFunc
from ...tir.stmt import Stmt
from ..context import PassContext
from ..passes import Pass
from ..phase1.convert_blocks_to_opaque import convert_blocks_to_opaque
from ..phase1.inject_software_pipeline import inject_software_pipeline
from ..phase1.lower_auto_copy import lower_auto_copy
from ..phase1.plan_and_update_buffer_allocation_location import plan_and_update_buffer_allocation_location
from ..rebuild import map_stmt


def LowerInitBlock() -> Pass:
    """The inits of blocks as statements in front of their bodies, where all reduction axes stand at their start.

    The pipeline's own pass puts them in front of the reduction's loops where it can.
    """

    def guarded(stmt: Stmt) -> Stmt:
        result = map_stmt(stmt, guarded)
        if not isinstance(result, Block) or result.init is None:
            return result
        return replace(result, body=with_guarded_init(result), init=None)

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return func.with_body(guarded(func.body))

    return Pass("tir.LowerInitBlock", run)


def PlanAndUpdateBufferAllocationLocation() -> Pass:
    """Buffers of blocks where all their uses meet."""
    return Pass(
        "tir.PlanAndUpdateBufferAllocationLocation",
        lambda func, ctx: plan_and_update_buffer_allocation_location(func, ctx, states=True),
    )


def ConvertBlocksToOpaque() -> Pass:
    """Blocks without axes, in terms of the loops around them."""
    return Pass("tir.ConvertBlocksToOpaque", convert_blocks_to_opaque)


def InjectSoftwarePipeline() -> Pass:
    """Loops with stages (`software_pipeline_stage`, `software_pipeline_order`) as pipelines."""
    return Pass("tir.InjectSoftwarePipeline", inject_software_pipeline)


def LowerAutoCopy() -> Pass:
    """Copies marked `auto_copy` between global and shared memory, shared out to the threads of their kernel."""
    return Pass("tir.LowerAutoCopy", lower_auto_copy)
