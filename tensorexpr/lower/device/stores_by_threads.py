"""Loops that fill memory outside of all kernels, as threads: the first rows of a scan, which no primitive binds.

for i, j in T.grid(3, 100):                            for bx in launch_thread("blockIdx.x", 2), tx in launch_thread("threadIdx.x", 256):
    S[i * 100 + j] = Z[i * 100 + j]         ->             if bx * 256 + tx < 300:
                                                               S[...] = Z[...] for i = (bx * 256 + tx) // 100, j = (bx * 256 + tx) % 100
"""

from __future__ import annotations

from ...arith import detect_linear_equation
from ...tir.arithmetic import as_int, const, floordiv, floormod
from ...tir.expr import BufferLoad, Call, IterVar, PrimExpr, Range, Var
from ...tir.intrin import INTRINSICS
from ...tir.rewriting import substitute, walk
from ...tir.stmt import AttrStmt, BufferStore, DeclBuffer, For, ForKind, IfThenElse, Stmt

_THREADS = 256  # of a block


def stores_by_threads(stmt: Stmt) -> Stmt | None:
    """The kernel of a store, or of a nest of loops whose iterations each store one element of their own and read none of these; or None."""
    loops, body = _nest(stmt)
    store = body
    while isinstance(store, DeclBuffer):
        store = store.body
    if not isinstance(store, BufferStore) or len(store.indices) != 1 or store.predicate is not None:
        return None
    alone = not loops
    if any(_is_call_of_host(node) or not (alone or _is_settled(node, store)) for node in walk(store.value)):
        return None
    if not alone and not _apart(store.indices[0], loops):
        return None
    total: PrimExpr = const(1, "int32" if alone else loops[0].loop_var.dtype)
    for loop in loops:
        total = total * loop.extent
    block, thread = Var("bx", total.dtype), Var("tx", total.dtype)
    number = block * _THREADS + thread
    rest: PrimExpr = number
    values: dict[Var, PrimExpr] = {}
    for loop in reversed(loops):
        values[loop.loop_var] = floormod(rest, loop.extent) + loop.min
        rest = floordiv(rest, loop.extent)
    inner = substitute(body, values)
    if as_int(total) == 1:
        return _launched(block, "blockIdx.x", total, _launched(thread, "threadIdx.x", total, inner))
    blocks, threads = floordiv(total + (_THREADS - 1), const(_THREADS, total.dtype)), const(_THREADS, total.dtype)
    return _launched(block, "blockIdx.x", blocks, _launched(thread, "threadIdx.x", threads, IfThenElse(number < total, inner)))


def _launched(var: Var, tag: str, extent: PrimExpr, body: Stmt) -> Stmt:
    axis = IterVar(Range.from_min_extent(const(0, var.dtype), extent), var, IterVar.THREAD_INDEX, tag)
    return AttrStmt(axis, "thread_extent", extent, body)


def _nest(stmt: Stmt) -> tuple[list[For], Stmt]:
    """The serial loops that stand directly in each other, outer ones first, and what the innermost one runs."""
    loops: list[For] = []
    while isinstance(stmt, For) and stmt.kind in (ForKind.SERIAL, ForKind.UNROLLED, ForKind.PARALLEL):
        loops.append(stmt)
        stmt = stmt.body
    return loops, stmt


def _apart(index: PrimExpr, loops: list[For]) -> bool:
    """Whether different iterations store to different places: each loop's step is at least what the loops of smaller steps span."""
    terms = detect_linear_equation(index, [loop.loop_var for loop in loops])
    if not terms:
        return False
    steps = [as_int(term) for term in terms[:-1]]
    if len(loops) == 1:
        return bool(steps[0])
    extents = [as_int(loop.extent) for loop in loops]
    span = 1
    for step, extent in sorted((abs(step or 0), extent or 0) for step, extent in zip(steps, extents, strict=True)):
        if step < span or not extent:
            return False
        span = step * extent
    return True


def _is_settled(node: object, store: BufferStore) -> bool:
    """Whether a load gives the same before and behind the stores of other iterations."""
    return not isinstance(node, BufferLoad) or node.buffer.data is not store.buffer.data


def _is_call_of_host(node: object) -> bool:
    return isinstance(node, Call) and (node.op not in INTRINSICS or not INTRINSICS[node.op].pure)
