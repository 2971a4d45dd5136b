"""Blocks that rewrite the layout of a weight, whose result becomes what the function takes instead."""

from __future__ import annotations

from dataclasses import replace

from ...tir.block import Block
from ...tir.buffer import Buffer
from ...tir.expr import Var
from ...tir.function import PrimFunc
from ...tir.stmt import NOP, BufferStore, Stmt
from ...tir.stmt_functor import Renaming
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt, walk_statements

MARK = "meta_schedule.layout_rewrite_preproc"


def RemoveWeightLayoutRewriteBlock(skip_ndarray_rewrite: bool = False) -> Pass:
    """Marked blocks emptied, and parameters in the layout that they made: callers pass weights that are rewritten already.

    Args:
        skip_ndarray_rewrite: kept for programs that pass it; constants are arguments here, which the caller rewrites.
    """
    return Pass("tir.RemoveWeightLayoutRewriteBlock", _run)


def _run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    rewritten: dict[Buffer, Buffer] = {}  # the buffer that was read -> the one that was made of it
    for stmt in walk_statements(func.body):
        if isinstance(stmt, Block) and stmt.annotations.get(MARK) and isinstance(stmt.body, BufferStore) and len(stmt.reads) == 1:
            rewritten[stmt.reads[0].buffer] = stmt.body.buffer
    if not rewritten:
        return func
    params = {param: buffer for param, buffer in func.buffer_map.items() if buffer in rewritten}
    taken = {buffer: replace(rewritten[buffer], data=buffer.data, name=buffer.name) for buffer in params.values()}
    body = _without(func.body, set(rewritten.values()))
    pointers: dict[Var, Var] = {rewritten[buffer].data: buffer.data for buffer in taken}
    buffers = {rewritten[buffer]: new for buffer, new in taken.items()}
    renamed = Renaming(dict(pointers), folding=False, buffers=buffers).apply(body)
    return replace(func, body=renamed, buffer_map={param: taken.get(buffer, buffer) for param, buffer in func.buffer_map.items()})


def _without(stmt: Stmt, made: set[Buffer]) -> Stmt:
    """The statement without the blocks' work, and without storage for what they made."""
    if isinstance(stmt, Block) and stmt.annotations.get(MARK):
        return replace(stmt, reads=(), writes=(), body=NOP)
    result = map_stmt(stmt, lambda inner: _without(inner, made))
    if isinstance(result, Block) and made.intersection(result.alloc_buffers):
        result = replace(result, alloc_buffers=tuple(buffer for buffer in result.alloc_buffers if buffer not in made))
    return result
