"""Simpler expressions and fewer statements, as a pass of its own: what the pipeline's does, and what stands in TVM's."""

from __future__ import annotations

from ...tir.dtype import parse_dtype
from ...tir.expr import BufferLoad, Call, PrimExpr
from ...tir.intrin import INTRINSICS
from ...tir.rewriting import walk
from ...tir.stmt import NOP, BufferStore, LetStmt, Stmt
from ...tir.stmt_functor import Renaming
from ..context import PassContext
from ..passes import Pass
from ..phase1.simplify import Simplifier


def Simplify() -> Pass:
    """Simpler expressions under the loops and conditions around them.

    Branches that are decided go, integers that are let stand where they are used, and so do stores of what is there already. Loops of
    one iteration stay (their variable doesn't).
    """
    return Pass("tir.Simplify", lambda func, ctx: func.with_body(_Named(ctx).stmt(func.body)))


def stores_what_is_there(stmt: BufferStore) -> bool:
    """True for `A[i] = A[i]`."""
    value = stmt.value
    if not isinstance(value, BufferLoad) or value.buffer is not stmt.buffer or stmt.predicate is not None:
        return False
    return all(a is b for a, b in zip(value.indices, stmt.indices, strict=True))


def is_pure(expr: PrimExpr) -> bool:
    """True if evaluating `expr` does nothing and gives the same wherever it stands."""
    return not any(isinstance(node, BufferLoad) or (isinstance(node, Call) and not _is_pure_call(node)) for node in walk(expr))


def _is_pure_call(call: Call) -> bool:
    row = INTRINSICS.get(call.op)
    return row is not None and row.pure


class _Named(Simplifier):
    def __init__(self, ctx: PassContext) -> None:
        super().__init__(ctx)
        self._keep_trivial = True

    def stmt(self, stmt: Stmt) -> Stmt:
        """The simplified statement."""
        if isinstance(stmt, LetStmt) and parse_dtype(stmt.var.dtype).is_int and is_pure(stmt.value):
            return self.stmt(Renaming({stmt.var: self.expr(stmt.value)}, folding=True).apply(stmt.body))
        result = super().stmt(stmt)
        return NOP if isinstance(result, BufferStore) and stores_what_is_there(result) else result
