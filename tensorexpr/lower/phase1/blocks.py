"""What the passes on blocks share: whether there is anything to do, and blocks that state what they touch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...arith.block_access import get_block_read_write_region
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import Var
from ...tir.function import PrimFunc
from ...tir.stmt import For, Stmt
from ..rebuild import walk_statements


def has_blocks(func: PrimFunc) -> bool:
    """True if `func` has blocks; functions of a te.Schedule never do."""
    if func.attrs.get("from_legacy_te_schedule"):
        return False
    return any(isinstance(stmt, BlockRealize) for stmt in walk_statements(func.body))


STAGE, ORDER = "software_pipeline_stage", "software_pipeline_order"


def is_pipeline(loop: Stmt) -> bool:
    """True for a loop whose statements belong to stages."""
    return isinstance(loop, For) and (STAGE in loop.annotations or ORDER in loop.annotations)


def stated(block: Block, buffers: Mapping[Var, Buffer]) -> Block:
    """The block with the regions that it touches.

    Args:
        buffers: by pointer, for what calls are handed.
    """
    reads, writes = get_block_read_write_region(block, buffers)
    return replace(block, reads=tuple(reads), writes=tuple(writes))
