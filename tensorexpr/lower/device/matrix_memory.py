"""Memory of pipelines and of `ldmatrix` and `mma`, where blocks ask for it: boxes of one iteration, rows without conflicts, registers."""

from __future__ import annotations

from dataclasses import replace

from ...tir.attrs import FrozenMap
from ...tir.block import Block
from ...tir.function import PrimFunc
from ...tir.stmt import Stmt
from ..context import PassContext
from ..phase1.blocks import has_blocks, is_pipeline
from ..rebuild import map_stmt, walk_statements

_LOCAL_STAGE = "tir.manifest_shared_memory_local_stage"


def pipeline_memory(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with buffers of the size that one iteration of a pipeline needs, which then get versions; itself without pipelines.

    Raises:
        ScheduleError: as `ManifestSharedMemoryLocalStage`.
    """
    if not has_blocks(func) or not any(map(is_pipeline, walk_statements(func.body))):
        return func
    if any(isinstance(stmt, Block) and _LOCAL_STAGE in stmt.annotations for stmt in walk_statements(func.body)):
        # Registers are counted by loops, of which those over threads are outside then.
        func = _run(func, ctx, "LiftThreadBinding", "ManifestSharedMemoryLocalStage")
    return _run(func, ctx, "CompactBufferAllocation")


def matrix_memory(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with permuted rows of shared memory, and registers for matrices of scopes m16n8k8.*; itself if no block has these.

    Raises:
        LoweringError: as `InjectPermutedLayout` and `TransformMmaBufferLayout`.
    """
    blocks = [stmt for stmt in walk_statements(func.body) if isinstance(stmt, Block)]
    if not any("permuted_layout" in one.annotations or any(b.scope().startswith("m16n8k8.") for b in one.alloc_buffers) for one in blocks):
        return func
    # Instructions state strides, so that buffers have their size, and views are gone, before these are permuted and registers.
    names = ("CompactBufferAllocation", "LowerAutoCopy", "LowerMatchBuffer", "InjectPermutedLayout", "TransformMmaBufferLayout")
    return _run(func, ctx, *names)


def _run(func: PrimFunc, ctx: PassContext, *names: str) -> PrimFunc:
    from .. import transform  # few programs need any

    for name in names:
        func = transform.factory(name)().run(func, ctx)
    return func.with_body(_aligned(func.body)) if "CompactBufferAllocation" in names else func


def _aligned(stmt: Stmt) -> Stmt:
    """Without wishes for strides, which buffers have by now; their dimensions may be other ones later."""
    result = map_stmt(stmt, _aligned)
    if not isinstance(result, Block) or "buffer_dim_align" not in result.annotations:
        return result
    return replace(result, annotations=FrozenMap({key: value for key, value in result.annotations.items() if key != "buffer_dim_align"}))
