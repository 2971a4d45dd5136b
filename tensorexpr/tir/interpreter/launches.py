"""What a statement of a kernel holds: launches of threads, meetings of theirs, memory that they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..expr import BufferLoad, Call, IterVar, PrimExpr, Var
from ..pointers import pointer_scope
from ..rewriting import walk
from ..scopes import parts
from ..stmt import Allocate, AttrStmt, For, Stmt
from ..thread import HARDWARE_TAGS, bound_tag
from ..warp_units import ALONE, TOGETHER

SYNC, ALLREDUCE = "tir.tvm_storage_sync", "tir.tvm_thread_allreduce"
SHUFFLES = ("tir.tvm_warp_shuffle", "tir.tvm_warp_shuffle_up", "tir.tvm_warp_shuffle_down")


def launch_of(stmt: Stmt) -> tuple[str, Var, PrimExpr, Stmt] | None:
    """The tag, variable, number and body of the threads of a grid that a statement starts."""
    if isinstance(stmt, AttrStmt) and stmt.attr_key == "thread_extent" and isinstance(stmt.node, IterVar):
        if stmt.node.thread_tag in HARDWARE_TAGS:
            return stmt.node.thread_tag, stmt.node.var, stmt.value, stmt.body
    elif isinstance(stmt, For) and bound_tag(stmt) in HARDWARE_TAGS:
        return str(bound_tag(stmt)), stmt.loop_var, stmt.extent, stmt.body
    return None


def inner_statements(stmt: Stmt) -> Iterator[Stmt]:
    """A statement and all in it, outer ones first."""
    yield stmt
    for body in parts(stmt).bodies:
        yield from inner_statements(body)


def calls_in(stmt: Stmt, names: Sequence[str]) -> list[Call]:
    """The calls of these names that stand directly in a statement, inner ones first."""
    return [node for expr in parts(stmt).exprs for node in walk(expr) if isinstance(node, Call) and node.op in names]


def meets(stmt: Stmt) -> bool:
    """Whether threads meet in a statement: at a barrier, a reduction or an exchange of values."""
    return any(calls_in(inner, (SYNC, ALLREDUCE, *SHUFFLES, *TOGETHER)) for inner in inner_statements(stmt))


def shared_memory(kernel: Stmt) -> set[Var]:
    """The memory of a kernel's own that its threads share. What is handed on between kernels isn't among it."""
    own = {inner.buffer_var for inner in inner_statements(kernel) if isinstance(inner, Allocate)}
    return {pointer for pointer in own if pointer_scope(pointer).split(".")[0] in ("shared", "warp")}


def accesses(stmt: Stmt, memory: set[Var]) -> bool:
    """Whether a statement reads or writes any of this memory."""
    for inner in inner_statements(stmt):
        own = parts(inner)
        buffers = [*own.buffers, *(node.buffer for expr in own.exprs for node in walk(expr) if isinstance(node, BufferLoad))]
        if any(buffer.data in memory for buffer in buffers):
            return True
    return False


def runs_together(stmt: Stmt) -> bool:
    """Whether the threads that a statement starts run side by side: they meet, or share memory.

    Loops over threads share none: each iteration may run to its end.
    """
    if launch_of(stmt) is None:
        return False
    shares = isinstance(stmt, AttrStmt) and bool(shared_memory(stmt))
    return shares or meets(stmt) or any(calls_in(inner, ALONE) for inner in inner_statements(stmt))
