"""The passes on blocks as users call them: `tir.transform.LowerInitBlock()` and so on."""

from __future__ import annotations

from ..passes import Pass
from ..phase1.convert_blocks_to_opaque import convert_blocks_to_opaque
from ..phase1.inject_software_pipeline import inject_software_pipeline
from ..phase1.lower_init_block import lower_init_block
from ..phase1.plan_and_update_buffer_allocation_location import plan_and_update_buffer_allocation_location


def LowerInitBlock() -> Pass:
    """The inits of blocks as statements in front of their reductions."""
    return Pass("tir.LowerInitBlock", lower_init_block)


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
