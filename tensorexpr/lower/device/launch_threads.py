"""Kernels as one launch: the threads of each tag around all of it, as attributes.

for i in T.thread_binding(4, "blockIdx.x"):                     with T.launch_thread("blockIdx.x", 4) as bx:
    for j in T.thread_binding(8, "threadIdx.x"): f(i, j)   ->       with T.launch_thread("threadIdx.x", 8) as tx:
    for k in T.thread_binding(8, "threadIdx.x"): g(i, k)                f(bx, tx); g(bx, tx)

From here on a loop over threads means what it does on a device: all of them run at once, and meet at barriers.
"""

from __future__ import annotations

from ...tir.expr import IterVar, Range
from ...tir.function import PrimFunc
from ...tir.stmt import AttrStmt, For, ForKind, Stmt
from ...tir.thread import HARDWARE_TAGS, bound_tag
from ..context import PassContext
from ..rebuild import map_stmt, walk_statements
from ..transform.unify_thread_binding import unified


def launched_tag(stmt: Stmt) -> str | None:
    """The tag of threads of a grid that a statement runs over, by a loop or an attribute."""
    if isinstance(stmt, AttrStmt) and stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
        tag: str | None = stmt.node.thread_tag
    else:
        tag = bound_tag(stmt)
    return tag if tag in HARDWARE_TAGS else None


def has_threads(func: PrimFunc) -> bool:
    """Whether a function runs on threads of a grid."""
    return any(launched_tag(stmt) for stmt in walk_statements(func.body))


def launch_threads(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with one attribute for each tag of a kernel; itself if there are no threads.

    Raises:
        LoweringError: where a kernel has one tag with different numbers of threads.
    """
    return func.with_body(_as_attributes(unified(func.body))) if has_threads(func) else func


def _as_attributes(stmt: Stmt) -> Stmt:
    result = map_stmt(stmt, _as_attributes)
    tag = bound_tag(result)
    if not isinstance(result, For) or result.kind is not ForKind.THREAD_BINDING or tag is None:
        return result
    axis = IterVar(Range.from_min_extent(result.min, result.extent), result.loop_var, IterVar.THREAD_INDEX, tag)
    return AttrStmt(axis, "thread_extent", result.extent, result.body)
