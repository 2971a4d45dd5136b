"""Simplify every expression under the loops and conditions around it; drop loops and guards that decide nothing.

A loop of one iteration disappears (unless it carries pragmas, or the context keeps trivial loops), one of none takes
its body with it, and a condition that is proved leaves its branch.
"""

from __future__ import annotations

from dataclasses import replace

from ...arith.analyzer import Analyzer
from ...tir.expr import IntImm, PrimExpr
from ...tir.function import PrimFunc
from ...tir.stmt import NOP, AssertStmt, For, ForKind, IfThenElse, Stmt
from ..context import PassContext
from ..rebuild import Copier, map_stmt
from ..scopes import inside_loop


def simplify(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with simpler expressions; the same object if nothing became simpler."""
    return func.with_body(Simplifier(ctx).stmt(func.body))


class Simplifier:
    """What simplifies one function, statement by statement."""

    def __init__(self, ctx: PassContext) -> None:
        self._analyzer = Analyzer()
        self._keep_trivial = ctx.flag("tir.debug_keep_trivial_loop")
        self._drop_asserts = ctx.flag("tir.disable_assert")

    def stmt(self, stmt: Stmt) -> Stmt:
        """The simplified statement."""
        match stmt:
            case For():
                return self._loop(stmt)
            case IfThenElse():
                return self._branch(stmt)
            case AssertStmt():
                condition = self.expr(stmt.condition)
                if self._drop_asserts or (isinstance(condition, IntImm) and condition.value):
                    return self.stmt(stmt.body)
                with self._analyzer.constraint_scope(condition):
                    body = self.stmt(stmt.body)
                return stmt if condition is stmt.condition and body is stmt.body else replace(stmt, condition=condition, body=body)
        return map_stmt(stmt, self.stmt, self.expr)

    def expr(self, expr: PrimExpr) -> PrimExpr:
        """The simplified expression."""
        return self._analyzer.simplify(expr)

    def _loop(self, loop: For) -> Stmt:
        low, extent = self.expr(loop.min), self.expr(loop.extent)
        if isinstance(extent, IntImm) and loop.kind is not ForKind.THREAD_BINDING:
            if extent.value <= 0:
                return NOP
            if extent.value == 1 and not loop.annotations and not self._keep_trivial:
                return self.stmt(Copier({loop.loop_var: low}).stmt(loop.body))
        if low is not loop.min or extent is not loop.extent:
            loop = replace(loop, min=low, extent=extent)
        with inside_loop(self._analyzer, loop):
            body = self.stmt(loop.body)
        return loop if body is loop.body else replace(loop, body=body)

    def _branch(self, stmt: IfThenElse) -> Stmt:
        condition = self.expr(stmt.condition)
        if isinstance(condition, IntImm):
            taken = stmt.then_case if condition.value else stmt.else_case
            return NOP if taken is None else self.stmt(taken)
        with self._analyzer.constraint_scope(condition):
            then_case = self.stmt(stmt.then_case)
        else_case = stmt.else_case
        if else_case is not None:
            with self._analyzer.constraint_scope(~condition):
                else_case = self.stmt(else_case)
        if condition is stmt.condition and then_case is stmt.then_case and else_case is stmt.else_case:
            return stmt
        return IfThenElse(condition, then_case, else_case)
