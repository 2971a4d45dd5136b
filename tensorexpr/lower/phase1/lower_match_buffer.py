"""Views that blocks state become statements."""

from __future__ import annotations

from dataclasses import replace

from ...tir.block import Block
from ...tir.function import PrimFunc
from ...tir.stmt import Stmt
from ..context import PassContext
from ..rebuild import map_stmt
from .blocks import has_blocks


def lower_match_buffer(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with each view of a block as a BufferBind around the block's body."""
    return func.with_body(_rewrite(func.body)) if has_blocks(func) else func


def _rewrite(stmt: Stmt) -> Stmt:
    result = map_stmt(stmt, _rewrite)
    if isinstance(result, Block) and result.match_buffers:
        body, init = result.body, result.init
        for match in reversed(result.match_buffers):
            body = match.bind(body)
            init = None if init is None else match.bind(init)
        return replace(result, body=body, init=init, match_buffers=())
    return result
