"""Refuse what can't run on several threads: Python functions called in a parallel loop would wait for each other and for the GIL."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import LoweringError
from ...tir.expr import Call, PrimExpr
from ...tir.foreign import PACKED, TRACE
from ...tir.function import PrimFunc
from ...tir.stmt import For, ForKind, Stmt
from ..context import PassContext
from ..rebuild import operands, own_expressions, sub_statements


def verify_packed_calls(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` as it is.

    Raises:
        LoweringError: naming the function and the loop.
    """
    stack: list[tuple[Stmt, str]] = [(func.body, "")]
    seen: set[PrimExpr] = set()
    while stack:
        stmt, loop = stack.pop()
        if isinstance(stmt, For) and stmt.kind is ForKind.PARALLEL:
            loop = stmt.loop_var.name
        if loop:
            _check(own_expressions(stmt), loop, seen)
        stack.extend((inner, loop) for inner in sub_statements(stmt))
    return func


def _check(exprs: Iterable[PrimExpr], loop: str, seen: set[PrimExpr]) -> None:
    pending = list(exprs)
    while pending:
        expr = pending.pop()
        if expr in seen:
            continue
        seen.add(expr)
        if isinstance(expr, Call) and expr.op in (PACKED, TRACE):
            raise LoweringError(
                f"the Python function {expr.args[0]} is called inside the parallel loop {loop}, where threads would wait for each other; "
                "make the loop serial, or call the function outside it"
            )
        pending.extend(operands(expr))
