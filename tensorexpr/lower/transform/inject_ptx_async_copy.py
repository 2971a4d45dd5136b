"""Copies from global into shared memory that don't wait, where the program marked them (`async_scope`), as PTX has them.

    S[i * 4:i * 4 + 4] = A[j:j + 4]                             ->  T.ptx_cp_async("float32", S, i * 4, A, j, 16)
    S[i] = T.if_then_else(i < n, A[i], T.float32(0))            ->  T.ptx_cp_async("float32", S, i, A, i, 4, i < n)

The hardware copies 4, 8 or 16 bytes, and zeros where its predicate doesn't hold. What doesn't fit stays a store.
"""

from __future__ import annotations

from ...arith.analyzer import Analyzer
from ...tir.dtype import parse_dtype
from ...tir.expr import Broadcast, BufferLoad, Call, FloatImm, IntImm, PrimExpr, Ramp
from ...tir.function import PrimFunc
from ...tir.stmt import AttrStmt, BufferStore, Evaluate, Stmt
from ..async_queues import COPY
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt

_WIDTHS = (4, 8, 16)


def InjectPTXAsyncCopy(proved: bool = False) -> Pass:
    """`ptx_cp_async` for the stores into shared memory under `async_scope`; the attribute goes. For flat buffers.

    Args:
        proved: leave copies of several elements whose places aren't proved to be multiples of their size; else the program vouches for it.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return func.with_body(_copied(func.body, False, proved))

    return Pass("tir.InjectPTXAsyncCopy", run)


def _copied(stmt: Stmt, marked: bool, proved: bool) -> Stmt:
    if isinstance(stmt, AttrStmt) and stmt.attr_key == COPY:
        return _copied(stmt.body, True, proved)
    if marked and isinstance(stmt, BufferStore) and stmt.buffer.scope() in ("shared", "shared.dyn"):
        call = _copy(stmt, proved)
        return stmt if call is None else Evaluate(call)
    return map_stmt(stmt, lambda inner: _copied(inner, marked, proved))


def _copy(store: BufferStore, proved: bool) -> Call | None:
    """The call that does what a store does, or None."""
    value = store.value
    condition: tuple[PrimExpr, ...] = ()
    if isinstance(value, Call) and value.op == "tir.if_then_else" and _is_zero(value.args[2]):
        condition, value = (value.args[0],), value.args[1]
    if not isinstance(value, BufferLoad) or value.buffer.scope() != "global" or value.buffer.dtype != store.buffer.dtype:
        return None
    into, source = _start(store.indices), _start(value.indices)
    kind = parse_dtype(value.dtype)
    size = kind.bits * kind.lanes // 8
    is_masked = store.predicate is not None or value.predicate is not None
    if into is None or source is None or size not in _WIDTHS or is_masked:
        return None
    # The hardware takes addresses that are multiples of the size; arrays begin at such.
    if proved and kind.lanes > 1 and not all(Analyzer().known_divisible(begin, kind.lanes) for begin in (into, source)):
        return None
    args = (store.buffer.data, into, value.buffer.data, source, IntImm("int32", size), *condition)
    return Call(store.buffer.dtype, "tir.ptx_cp_async", args)


def _start(indices: tuple[PrimExpr, ...]) -> PrimExpr | None:
    """Where one element, or a run of neighbours, begins."""
    if len(indices) != 1:
        return None
    (index,) = indices
    if not isinstance(index, Ramp):
        return index if parse_dtype(index.dtype).lanes == 1 else None
    return index.base if isinstance(index.stride, IntImm) and index.stride.value == 1 else None


def _is_zero(value: PrimExpr) -> bool:
    value = value.value if isinstance(value, Broadcast) else value
    return isinstance(value, (IntImm, FloatImm)) and value.value == 0
