"""Blocks without axes as plain statements, their buffers as allocations with declarations.

    with T.block():                              T.attr(0, "pragma_x", 1)
        T.where(i < 7)                           B = T.decl_buffer((16,))
        B = T.alloc_buffer((16,))         ->     if i < 7:
        T.block_attr({"pragma_x": 1})                B[i] = ..
        B[i] = ..

Loops over threads become attributes, pragmas of loops too, and loops of one iteration their bodies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...errors import LoweringError
from ...tir.arithmetic import convert, floordiv
from ...tir.attrs import FrozenMap
from ...tir.block import Block, BlockRealize
from ...tir.buffer import Buffer
from ...tir.expr import IntImm, IterVar, PrimExpr, Range, StringImm
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, AttrStmt, DeclBuffer, For, ForKind, IfThenElse, Stmt
from ...tir.stmt_functor import Renaming
from ..context import PassContext
from ..passes import Pass
from ..phase1.blocks import has_blocks
from ..rebuild import map_stmt

TRUE, ZERO = IntImm("bool", 1), IntImm("int32", 0)


def LowerOpaqueBlock() -> Pass:
    """No blocks: predicates as conditions, buffers as allocations.

    Raises:
        LoweringError: when it runs, for a block that still has axes, an init or views.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return func.with_body(_lowered(func.body)) if has_blocks(func) else func

    return Pass("tir.LowerOpaqueBlock", run)


def _lowered(stmt: Stmt) -> Stmt:
    result = map_stmt(stmt, _lowered)
    if isinstance(result, BlockRealize):
        return _block(result.block, result.predicate)
    return _loop(result) if isinstance(result, For) else result


def _block(block: Block, predicate: PrimExpr) -> Stmt:
    for what, left in (("axes", block.iter_vars), ("an init", block.init), ("views", block.match_buffers)):
        if left:
            raise LoweringError(
                f"block {block.name_hint!r} still has {what}; LowerOpaqueBlock needs the passes on blocks before it, in order"
            )
    body = block.body
    if not (isinstance(predicate, IntImm) and predicate.value):
        body = IfThenElse(predicate, body)
    for buffer in reversed(block.alloc_buffers):
        body = Allocate(buffer.data, buffer.dtype, _extents(buffer), TRUE, DeclBuffer(buffer, body))
    for key, value in reversed(list(block.annotations.items())):
        if key.startswith("pragma_"):
            body = AttrStmt(ZERO, key, _operand(value), body)
    return body


def _extents(buffer: Buffer) -> tuple[PrimExpr, ...]:
    """The extents of storage in which the buffer's strides leave room."""
    if not buffer.strides:
        return buffer.shape
    # Strides 20, 1 of the shape 4, 16 take 4 rows of 20: neighbouring strides say how much room a dimension has.
    return (buffer.shape[0], *(floordiv(outer, inner) for outer, inner in zip(buffer.strides, buffer.strides[1:], strict=False)))


def _operand(value: Any) -> PrimExpr:
    return StringImm(value) if isinstance(value, str) else convert(value)


def _loop(loop: For) -> Stmt:
    var, body = loop.loop_var, loop.body
    single = isinstance(loop.extent, IntImm) and loop.extent.value == 1 and not loop.annotations
    if single:  # threads that are alone keep their binding, and nothing counts them
        body = Renaming({var: loop.min}, folding=False).apply(body)
    if loop.kind is ForKind.THREAD_BINDING and loop.thread_binding is not None:
        tag = loop.thread_binding.thread_tag
        axis = IterVar(Range.from_min_extent(loop.min, loop.extent), var, IterVar.THREAD_INDEX, tag)
        key = "virtual_thread" if tag.startswith("vthread") else "thread_extent"
        body = AttrStmt(axis, key, loop.extent, body)
    elif single:
        return body
    else:
        kept = {key: value for key, value in loop.annotations.items() if not key.startswith("pragma_")}
        body = replace(loop, body=body, annotations=FrozenMap(kept))
    for key, value in reversed(list(loop.annotations.items())):
        if key.startswith("pragma_"):
            body = AttrStmt(var, key, _operand(value), body)
    return body
