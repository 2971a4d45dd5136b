"""Copies that the program marked (`pragma_<key>`), by what the user's function makes of their two ends.

    with T.attr(0, "pragma_memcpy", 1):
        for i, j in T.grid(8, 4):                            ->   fintrin(src, dst, [2, 0], [0, 0], T.float32(0))
            B[i*4 + j] = T.if_then_else(i >= 2, A[i*4 + j - 8], T.float32(0))

Both ends are buffers of the loops' extents, with a stride for each loop; the source without what is padded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...arith import detect_clip_bound, detect_linear_equation
from ...arith.index_analyzer import Analyzer
from ...errors import LoweringError
from ...tir.arithmetic import const, maximum
from ...tir.buffer import Buffer, decl_buffer
from ...tir.expr import BufferLoad, Call, Cast, IntImm, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.stmt import AttrStmt, BufferStore, For, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt

Intrin = Callable[[Buffer, Buffer, list[PrimExpr], list[PrimExpr], "PrimExpr | None"], Stmt]


def InjectCopyIntrin(pragma_key: str, fintrin: Intrin) -> Pass:
    """Statements of `fintrin` for the copies under `pragma_<pragma_key>`. For flat buffers.

    Args:
        pragma_key: the mark, without its prefix.
        fintrin: called with the source, the destination, how many elements are padded in front of the source along each loop,
            how many behind it, and their value; two empty lists and None without padding. It returns a statement.

    Raises:
        LoweringError: when it runs on something marked that is no copy, or gets no statement.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return func.with_body(injected(func.body))

    def injected(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, AttrStmt) or stmt.attr_key != f"pragma_{pragma_key}":
            return map_stmt(stmt, injected)
        made: Any = fintrin(*_copy(stmt.body))
        if not isinstance(made, Stmt):
            raise LoweringError(f"InjectCopyIntrin({pragma_key!r}): the function returned {made!r}, not a statement")
        return made

    return Pass("tir.InjectCopyIntrin", run)


def _copy(nest: Stmt) -> tuple[Buffer, Buffer, list[PrimExpr], list[PrimExpr], PrimExpr | None]:
    """What `fintrin` is told of a loop nest."""
    loops: list[For] = []
    body = nest
    while isinstance(body, For):
        loops.append(body)
        body = body.body
    if not isinstance(body, BufferStore):
        raise _no_copy(nest, "it isn't one store in loops")
    if any(not isinstance(loop.min, IntImm) or loop.min.value for loop in loops):
        raise _no_copy(nest, "a loop doesn't begin at 0")
    value: PrimExpr = body.value
    condition: PrimExpr | None = None
    padding: PrimExpr | None = None
    if isinstance(value, Call) and value.op == "tir.if_then_else":
        condition, value, padding = value.args
    if isinstance(value, Cast):
        value = value.value
    if not isinstance(value, BufferLoad):
        raise _no_copy(nest, f"it stores {value}, which isn't loaded")
    steps, first = _strides(nest, loops, value)
    into, at = _strides(nest, loops, body)
    before, after = ([], []) if condition is None else _margins(nest, loops, condition)
    analyzer = Analyzer()
    extents = shape = [loop.extent for loop in loops]
    if condition is not None:
        shape = [analyzer.simplify(extent - low - high) for extent, low, high in zip(extents, before, after, strict=True)]
        # The source begins behind its padding, so at the first element that is read.
        first = analyzer.simplify(sum((low * step for low, step in zip(before, steps, strict=True)), first))
    source = _end("src", value.buffer, shape, steps, first)
    return source, _end("dst", body.buffer, extents, into, at), before, after, padding


def _no_copy(nest: Stmt, reason: str) -> LoweringError:
    return LoweringError(f"Cannot match copy pattern: {reason}. The body is {nest}")


def _end(name: str, buffer: Buffer, shape: list[PrimExpr], strides: list[PrimExpr], offset: PrimExpr) -> Buffer:
    """One end of a copy; a single element has one dimension of it."""
    if not shape:
        shape = strides = [const(1, offset.dtype)]
    return decl_buffer(shape, buffer.dtype, name, buffer.data, strides, offset, buffer.scope(), buffer.data_alignment, 0)


def _strides(nest: Stmt, loops: list[For], access: BufferLoad | BufferStore) -> tuple[list[PrimExpr], PrimExpr]:
    """How far each loop moves an access, and where it begins."""
    if len(access.indices) != 1:
        raise _no_copy(nest, f"buffer {access.buffer.name} isn't flat; run FlattenBuffer before")
    found = detect_linear_equation(access.indices[0], [loop.loop_var for loop in loops])
    if not found:
        raise _no_copy(nest, f"the index {access.indices[0]} isn't linear in the loops")
    return found[:-1], found[-1]


def _margins(nest: Stmt, loops: list[For], condition: PrimExpr) -> tuple[list[PrimExpr], list[PrimExpr]]:
    """How many iterations of each loop come before, and after, those in which a condition holds."""
    variables: list[Var] = [loop.loop_var for loop in loops]
    bounds = detect_clip_bound(condition, variables)
    if not bounds and variables:
        raise _no_copy(nest, f"the condition {condition} is no box of the loops")
    analyzer = Analyzer()
    before, after = [], []
    # Bounds come as pairs of a least and a greatest value, None where the condition sets none.
    for loop, low, high in zip(loops, bounds[::2], bounds[1::2], strict=True):
        zero = const(0, loop.loop_var.dtype)
        before.append(zero if low is None else analyzer.simplify(maximum(low, zero)))
        after.append(zero if high is None else analyzer.simplify(maximum(loop.extent - high - 1, zero)))
    return before, after
