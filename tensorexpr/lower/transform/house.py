"""The passes of the pipeline, and a few small ones, as users call them: `tir.transform.UnrollLoop()` and so on."""

from __future__ import annotations

from dataclasses import replace

from ...tir.attrs import FrozenMap
from ...tir.expr import Var
from ...tir.function import PrimFunc
from ...tir.stmt import Allocate, AssertStmt, AttrStmt, For, ForKind, Stmt
from ..context import PassContext
from ..passes import Pass
from ..phase1.inject_prefetch import inject_prefetch
from ..phase1.storage_flatten import storage_flatten
from ..phase2.inject_double_buffer import SCOPE, inject_double_buffer
from ..phase2.loop_partition import loop_partition
from ..phase2.register_promotion import register_promotion
from ..phase2.storage_rewrite import storage_rewrite
from ..phase2.trim_no_ops import trim_no_ops
from ..phase2.unroll_loop import unroll_loop
from ..phase2.unroll_register_tile import unroll_register_tile
from ..phase3.instrument_bound_checkers import instrument_bound_checkers
from ..rebuild import map_stmt, walk_statements


def StorageFlatten(cache_line_size: int = 64, create_bound_attribute: bool = False) -> Pass:
    """Every buffer of a function lowered from te with one dimension, BufferRealize as Allocate; other functions stay.

    Args:
        cache_line_size, create_bound_attribute: kept for programs that pass them; allocations are aligned to 64 bytes in any case.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        return storage_flatten(func, ctx, keep_declarations=True) if func.attrs.get("from_legacy_te_schedule") else func

    return Pass("tir.StorageFlatten", run)


def InjectPrefetch() -> Pass:
    """Scheduled prefetches as calls, one per cache line."""
    return Pass("tir.InjectPrefetch", inject_prefetch)


def TrimNoOps() -> Pass:
    """Trim reduction loops to the iterations that a condition lets do something."""
    return Pass("tir.TrimNoOps", trim_no_ops)


def LoopPartition() -> Pass:
    """Loops cut at the borders of their guards."""
    return Pass("tir.LoopPartition", loop_partition)


def UnrollRegisterTile() -> Pass:
    """The loops of register tiles marked as unrolled."""
    return Pass("tir.UnrollRegisterTile", unroll_register_tile)


def UnrollLoop() -> Pass:
    """Unrolled loops expanded."""
    return Pass("tir.UnrollLoop", lambda func, ctx: unroll_loop(func, ctx, mark=True))


def RegisterPromotion() -> Pass:
    """Accumulators and small buffers in registers."""
    return Pass("tir.RegisterPromotion", register_promotion)


def InjectDoubleBuffer() -> Pass:
    """Double buffered stages filled one iteration ahead: allocations marked, or named by an attribute, `double_buffer_scope`."""
    return Pass("tir.InjectDoubleBuffer", lambda func, ctx: inject_double_buffer(_with_marks(func), ctx))


def _with_marks(func: PrimFunc) -> PrimFunc:
    """`func` with the mark of a double buffer on its allocation, where an attribute around its filling said so."""

    def is_mark(stmt: Stmt) -> bool:
        return isinstance(stmt, AttrStmt) and stmt.attr_key == SCOPE and isinstance(stmt.node, Var)

    named = {stmt.node for stmt in walk_statements(func.body) if isinstance(stmt, AttrStmt) and is_mark(stmt)}

    def marked(stmt: Stmt) -> Stmt:
        if isinstance(stmt, AttrStmt) and is_mark(stmt):
            return marked(stmt.body)
        result = map_stmt(stmt, marked)
        if isinstance(result, Allocate) and result.buffer_var in named:
            return replace(result, annotations=FrozenMap({**result.annotations, SCOPE: 1}))
        return result

    return func.with_body(marked(func.body)) if named else func


def StorageRewrite() -> Pass:
    """Allocations hoisted out of serial loops, and shared."""
    return Pass("tir.StorageRewrite", storage_rewrite)


def InstrumentBoundCheckers() -> Pass:
    """Bounds asserted before every access, whatever the context says."""
    ctx = PassContext(config={"tir.instrument_bound_checkers": 1})
    return Pass("tir.InstrumentBoundCheckers", lambda func, _: instrument_bound_checkers(func, ctx))


def ConvertForLoopsToSerial() -> Pass:
    """Every parallel loop serial."""

    def serial(stmt: Stmt) -> Stmt:
        result = map_stmt(stmt, serial)
        return replace(result, kind=ForKind.SERIAL) if isinstance(result, For) and result.kind is ForKind.PARALLEL else result

    return Pass("tir.ConvertForLoopsToSerial", lambda func, ctx: func.with_body(serial(func.body)))


def SkipAssert() -> Pass:
    """No asserts."""

    def skip(stmt: Stmt) -> Stmt:
        return skip(stmt.body) if isinstance(stmt, AssertStmt) else map_stmt(stmt, skip)

    return Pass("tir.SkipAssert", lambda func, ctx: func.with_body(skip(func.body)))
