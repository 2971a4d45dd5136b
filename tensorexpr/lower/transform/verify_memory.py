"""Memory of devices is only touched by what runs there."""

from __future__ import annotations

from ...errors import LoweringError
from ...target import Target
from ...tir.expr import BufferLoad, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import AttrStmt, BufferStore, Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import own_expressions, sub_statements


def VerifyMemory() -> Pass:
    """The function as it is.

    Raises:
        LoweringError: when it runs on a function for a GPU that accesses a parameter's memory outside of its threads.
    """

    def run(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        target = func.attrs.get("target")
        if isinstance(target, Target) and "gpu" in target.keys:
            pointers = {buffer.data for buffer in func.buffer_map.values()} | {param for param in func.params if param.dtype == "handle"}
            name = _outside(func.body, pointers)
            if name is not None:
                raise LoweringError(
                    f"Memory verification failed: {name} is accessed by the host of {target.kind.name}; bind the loops around it to threads"
                )
        return func

    return Pass("tir.VerifyMemory", run)


def _outside(stmt: Stmt, pointers: set[Var]) -> str | None:
    """The name of a buffer that is accessed outside of threads."""
    if isinstance(stmt, AttrStmt) and stmt.attr_key in ("thread_extent", "pipeline_exec_scope"):
        return None
    if isinstance(stmt, BufferStore) and stmt.buffer.data in pointers:
        return stmt.buffer.name
    for expr in own_expressions(stmt):
        for node in walk(expr):
            if isinstance(node, BufferLoad) and node.buffer.data in pointers:
                return node.buffer.name
    return next((name for name in (_outside(inner, pointers) for inner in sub_statements(stmt)) if name is not None), None)
