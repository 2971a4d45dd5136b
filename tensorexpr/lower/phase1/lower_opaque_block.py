"""Blocks without axes become plain statements: their predicate an if, what they still allocate storage of the whole buffer."""

from __future__ import annotations

from ...errors import LoweringError
from ...tir.block import BlockRealize
from ...tir.buffer import BufferRegion
from ...tir.expr import IntImm
from ...tir.function import PrimFunc
from ...tir.intrin import likely
from ...tir.stmt import BufferRealize, IfThenElse, Stmt
from ..context import PassContext
from ..rebuild import map_stmt
from .blocks import has_blocks

TRUE = IntImm("bool", 1)


def lower_opaque_block(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` without blocks.

    Raises:
        LoweringError: if a block still has axes, an init or views, since the pass that removes them is switched off.
    """
    return func.with_body(_rewrite(func.body)) if has_blocks(func) else func


def _rewrite(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, BlockRealize):
        return map_stmt(stmt, _rewrite)
    block = stmt.block
    for what, left in (("axes", block.iter_vars), ("an init", block.init), ("views", block.match_buffers)):
        if left:
            raise LoweringError(
                f"block {block.name_hint!r} still has {what}; LowerOpaqueBlock needs the passes on blocks before it, in order"
            )
    body = _rewrite(block.body)
    for buffer in reversed(block.alloc_buffers):
        body = BufferRealize(buffer, BufferRegion.full_region(buffer).region, TRUE, body)
    holds = isinstance(stmt.predicate, IntImm) and stmt.predicate.value
    return body if holds else IfThenElse(likely(stmt.predicate), body)
