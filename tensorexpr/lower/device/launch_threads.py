"""Kernels as one launch: the threads of each tag around all of it, as attributes.

for i in T.thread_binding(4, "blockIdx.x"):                     with T.launch_thread("blockIdx.x", 4) as bx:
    for j in T.thread_binding(8, "threadIdx.x"): f(i, j)   ->       with T.launch_thread("threadIdx.x", 8) as tx:
    for k in T.thread_binding(8, "threadIdx.x"): g(i, k)                f(bx, tx); g(bx, tx)

From here on a loop over threads means what it does on a device: all of them run at once, and meet at barriers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...tir.arithmetic import const
from ...tir.expr import IterVar, Range, Var
from ...tir.function import PrimFunc
from ...tir.stmt import NOP, Allocate, AttrStmt, For, ForKind, Stmt
from ...tir.thread import HARDWARE_TAGS, bound_tag
from ..context import PassContext
from ..rebuild import map_stmt, pointer_scope, sub_statements
from ..transform.unify_thread_binding import unified
from .barriers import mentions, mentions_itself
from .launches import has_threads, launched_tag


def launch_threads(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with one attribute for each tag of a kernel; itself if there are no threads.

    Raises:
        LoweringError: where a kernel has one tag with different numbers of threads.
    """
    return func.with_body(_sunk(_as_attributes(unified(func.body, with_virtual=False)))) if has_threads(func) else func


def thread_loops(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with launches as loops over threads, which is how the phases know their ranges."""
    return func.with_body(launches_as_loops(func.body))


def launches_as_loops(stmt: Stmt) -> Stmt:
    """A statement with launches as loops over threads."""
    result = map_stmt(stmt, launches_as_loops)
    if not isinstance(result, AttrStmt) or launched_tag(result) is None:
        return result
    axis: IterVar = result.node
    low = const(0, axis.dtype) if axis.dom is None else axis.dom.min
    binding = replace(axis, dom=None, var=Var("", axis.dtype))
    return For(axis.var, low, result.value, ForKind.THREAD_BINDING, result.body, binding)


def _sunk(stmt: Stmt) -> Stmt:
    """Memory of blocks and threads that is allocated around a kernel, inside of it: each block and each thread has its own."""
    if launched_tag(stmt) is not None:
        return stmt
    result = map_stmt(stmt, _sunk)
    if not isinstance(result, Allocate) or pointer_scope(result.buffer_var) == "global":
        return result
    kernels = [kernel for kernel in _kernels(result.body) if mentions(kernel, result.buffer_var)]
    # What is handed on to a kernel, or by it, is left where it is.
    if len(kernels) != 1 or _is_used_outside(result.body, result.buffer_var):
        return result
    return _moved(result.body, replace(result, body=NOP), kernels[0])


def _is_used_outside(stmt: Stmt, pointer: Var) -> bool:
    """Whether memory is used where no kernel runs."""
    if launched_tag(stmt) is not None:
        return False
    return mentions_itself(stmt, pointer) or any(_is_used_outside(inner, pointer) for inner in sub_statements(stmt))


def _kernels(stmt: Stmt) -> Iterator[Stmt]:
    if launched_tag(stmt) is not None:
        yield stmt
        return
    for inner in sub_statements(stmt):
        yield from _kernels(inner)


def _moved(stmt: Stmt, storage: Allocate, kernel: Stmt) -> Stmt:
    if stmt is kernel:
        return _inside(stmt, storage)
    return map_stmt(stmt, lambda inner: _moved(inner, storage, kernel))


def _inside(stmt: Stmt, storage: Allocate) -> Stmt:
    """The storage inside the innermost of the launches at the top of a kernel."""
    assert isinstance(stmt, AttrStmt)
    body = _inside(stmt.body, storage) if launched_tag(stmt.body) is not None else replace(storage, body=stmt.body)
    return replace(stmt, body=body)


def _as_attributes(stmt: Stmt) -> Stmt:
    result = map_stmt(stmt, _as_attributes)
    tag = bound_tag(result)
    if not isinstance(result, For) or tag not in HARDWARE_TAGS:
        return result
    axis = IterVar(Range.from_min_extent(result.min, result.extent), result.loop_var, IterVar.THREAD_INDEX, tag)
    return AttrStmt(axis, "thread_extent", result.extent, result.body)
