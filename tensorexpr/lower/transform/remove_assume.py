"""What only tells the compiler something, taken out."""

from __future__ import annotations

from ...tir.expr import Call
from ...tir.stmt import NOP, Evaluate, Stmt
from ..passes import Pass
from ..rebuild import map_stmt
from .combinators import Sequential


def RemoveAssume() -> Pass:
    """No `T.assume`, and no statement that had nothing else to do."""
    from . import factory

    return Sequential(
        [Pass("tir.RemoveAssumeInternal", lambda func, ctx: func.with_body(_without(func.body))), factory("RemoveNoOp")()],
        name="tir.RemoveAssume",
    )


def _without(stmt: Stmt) -> Stmt:
    if isinstance(stmt, Evaluate) and isinstance(stmt.value, Call) and stmt.value.op == "tir.assume":
        return NOP
    return map_stmt(stmt, _without)
