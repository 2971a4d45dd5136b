"""All index arithmetic in int32, proved or not, and the shapes of buffers with it."""

from __future__ import annotations

from dataclasses import replace

from ...errors import LoweringError
from ...tir.block import Block
from ...tir.buffer import Buffer
from ...tir.expr import BufferLoad, IntImm, PrimExpr
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import BufferStore, DeclBuffer
from ...tir.stmt_functor import Renaming
from ..context import PassContext
from ..passes import Pass
from .narrow_data_type import ForcedNeeds, narrowed


def ForceNarrowIndexToInt32() -> Pass:
    """Indices, loop variables, axes and constant extents of buffers in int32. The caller promises that no index is larger.

    Raises:
        LoweringError: when it runs on a function with a buffer of 64 bit integers, whose values could be indices.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        wide = next((buffer for buffer in func.buffer_map.values() if buffer.dtype == "int64"), None)
        if wide is not None:
            raise LoweringError(f"buffer {wide.name} holds int64: its values could be indices, which ForceNarrowIndexToInt32 would cut off")
        return _with_narrow_shapes(narrowed(func, ForcedNeeds()))

    return Pass("tir.ForceNarrowIndexToInt32", run)


def _with_narrow_shapes(func: PrimFunc) -> PrimFunc:
    changed = {buffer: new for buffer in _buffers(func) if (new := _narrow(buffer)) is not buffer}
    if not changed:
        return func
    renaming = Renaming({}, folding=False, buffers=changed)
    buffer_map = {param: renaming.buffer(buffer) for param, buffer in func.buffer_map.items()}
    return replace(func, body=renaming.apply(func.body), buffer_map=buffer_map)


def _buffers(func: PrimFunc) -> set[Buffer]:
    """The buffers that a function takes, makes and uses."""
    found = set(func.buffer_map.values())
    for node in walk(func.body):
        if isinstance(node, (BufferLoad, BufferStore, DeclBuffer)):
            found.add(node.buffer)
        elif isinstance(node, Block):
            found.update(node.alloc_buffers)
            found.update(match.buffer for match in node.match_buffers)
    return found


def _narrow(buffer: Buffer) -> Buffer:
    shape, strides = tuple(map(_constant, buffer.shape)), tuple(map(_constant, buffer.strides))
    offset = _constant(buffer.elem_offset)
    if all(new is old for new, old in zip((*shape, *strides, offset), (*buffer.shape, *buffer.strides, buffer.elem_offset), strict=True)):
        return buffer
    return replace(buffer, shape=shape, strides=strides, elem_offset=offset)


def _constant(expr: PrimExpr) -> PrimExpr:
    return IntImm("int32", expr.value) if isinstance(expr, IntImm) and expr.dtype == "int64" else expr
