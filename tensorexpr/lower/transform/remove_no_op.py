"""Statements without effect, taken out."""

from __future__ import annotations

from ...arith.index_analyzer import Analyzer
from ...tir.function import PrimFunc
from ...tir.stmt import NOP, BufferStore, Evaluate, For, LetStmt, Stmt, is_no_op
from ..context import PassContext
from ..passes import Pass
from ..phase3.remove_no_op import remove_no_op
from ..rebuild import map_stmt
from ..scopes import inside_loop
from .simplify import is_pure, stores_what_is_there


def RemoveNoOp() -> Pass:
    """No statements without effect: empty loops and branches, stores of what is there already, names that nobody uses.

    A call that was let stays as a statement.
    """
    return Pass("tir.RemoveNoOp", without_no_ops)


def without_no_ops(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` as `RemoveNoOp` leaves it."""
    return remove_no_op(func.with_body(_Remover().stmt(func.body)), ctx)


class _Remover:
    def __init__(self) -> None:
        self._analyzer = Analyzer()

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement without stores that change nothing and bindings of nothing."""
        if isinstance(stmt, For):
            with inside_loop(self._analyzer, stmt):
                return map_stmt(stmt, self.stmt)
        if isinstance(stmt, BufferStore):
            value = self._analyzer.simplify(stmt.value)
            same = value is not stmt.value or stores_what_is_there(stmt)
            return NOP if same and stores_what_is_there(BufferStore(stmt.buffer, value, stmt.indices, stmt.predicate)) else stmt
        result = map_stmt(stmt, self.stmt)
        if isinstance(result, LetStmt) and is_no_op(result.body):
            return NOP if is_pure(result.value) else Evaluate(result.value)
        return result
