"""Memory that `ldmatrix` and `mma` work on, where blocks ask for it: rows without bank conflicts, and registers."""

from __future__ import annotations

from ...tir.block import Block
from ...tir.function import PrimFunc
from ..context import PassContext
from ..rebuild import walk_statements


def matrix_memory(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with permuted rows of shared memory, and registers for matrices of scopes m16n8k8.*; itself if no block has these.

    Raises:
        LoweringError: as `InjectPermutedLayout` and `TransformMmaBufferLayout`.
    """
    blocks = [stmt for stmt in walk_statements(func.body) if isinstance(stmt, Block)]
    if not any("permuted_layout" in one.annotations or any(b.scope().startswith("m16n8k8.") for b in one.alloc_buffers) for one in blocks):
        return func
    from .. import transform  # few programs have any

    # Instructions state strides, so that buffers have their size, and views are gone, before these are permuted and registers.
    for one in ("CompactBufferAllocation", "LowerAutoCopy", "LowerMatchBuffer", "InjectPermutedLayout", "TransformMmaBufferLayout"):
        func = transform.factory(one)().run(func, ctx)
    return func
