"""Statements without effect, taken out."""

from __future__ import annotations

from ...arith.index_analyzer import Analyzer
from ...tir.expr import BufferLoad, Call, PrimExpr
from ...tir.function import PrimFunc
from ...tir.intrin import intrinsic_of
from ...tir.rewriting import walk
from ...tir.stmt import NOP, BufferStore, Evaluate, For, IfThenElse, LetStmt, Stmt, is_no_op
from ..context import PassContext
from ..element_flow import ElementFlow, is_never_read, stored_value
from ..options import RemoveNoOpConfig
from ..passes import Pass
from ..phase3.remove_no_op import remove_no_op
from ..rebuild import map_stmt
from ..scopes import inside_loop, under_conditions
from .simplify import is_pure, stores_what_is_there


def RemoveNoOp() -> Pass:
    """No statements without effect: empty loops and branches, stores of what is there already, names that nobody uses.

    With `use_dataflow_analysis` also stores of what an earlier store left there, and of what is overwritten before it is read. A call that
    was let stays as a statement.
    """
    return Pass("tir.RemoveNoOp", without_no_ops)


def without_no_ops(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` as `RemoveNoOp` leaves it."""
    body = func.body
    if ctx.option(RemoveNoOpConfig).use_dataflow_analysis:  # one after the other: of two equal stores each may make the other needless
        for backwards in (False, True):
            body = _Remover(ElementFlow(body, backwards)).stmt(body)
    return remove_no_op(func.with_body(_Remover().stmt(body)), ctx)


def _has_no_effect(value: PrimExpr) -> bool:
    return all(not isinstance(node, Call) or intrinsic_of(node).pure for node in walk(value))


class _Remover:
    def __init__(self, flow: ElementFlow | None = None) -> None:
        self._analyzer = Analyzer()
        self._flow = flow

    def stmt(self, stmt: Stmt) -> Stmt:
        """The statement without stores that change nothing and bindings of nothing."""
        match stmt:
            case For():
                with inside_loop(self._analyzer, stmt):
                    return map_stmt(stmt, self.stmt)
            case BufferStore():
                return NOP if self._is_needless(stmt) else stmt
            case IfThenElse():
                with under_conditions(self._analyzer, [stmt.condition]):
                    then_case = self.stmt(stmt.then_case)
                with under_conditions(self._analyzer, [~stmt.condition]):
                    else_case = None if stmt.else_case is None else self.stmt(stmt.else_case)
                same = then_case is stmt.then_case and else_case is stmt.else_case
                return stmt if same else IfThenElse(stmt.condition, then_case, else_case)
        result = map_stmt(stmt, self.stmt)
        if isinstance(result, LetStmt) and is_no_op(result.body):
            return NOP if is_pure(result.value) else Evaluate(result.value)
        return result

    def _is_needless(self, stmt: BufferStore) -> bool:
        """True if what a store stores is there already, or never read."""
        value = self._analyzer.simplify(stmt.value)
        changed = value is not stmt.value or stores_what_is_there(stmt)
        if changed and stores_what_is_there(BufferStore(stmt.buffer, value, stmt.indices, stmt.predicate)):
            return True
        facts = () if self._flow is None or stmt.predicate is not None or not _has_no_effect(value) else self._flow.known(stmt)
        if not facts:
            return False
        there = stored_value(BufferLoad(stmt.buffer, stmt.indices), facts, self._analyzer)
        return there is value or is_never_read(stmt, facts, self._analyzer)
