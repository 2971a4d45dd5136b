"""Statements that know the line of the printed function on which they stand."""

from __future__ import annotations

from ...ir.source import SourceName, Span
from ...tir.function import PrimFunc
from ...tir.printer.program import statement_lines
from ...tir.stmt import Stmt
from ..context import PassContext
from ..passes import Pass
from ..rebuild import map_stmt


def InstallDebugSpans() -> Pass:
    """Give each statement a `span`: the line of its function's script, counted from `def`, in a file NAME.tir.

    A function's statements are copied; what passes after it make anew has no span.
    """

    def install(func: PrimFunc, ctx: PassContext) -> PrimFunc:
        lines = statement_lines(func)
        file = SourceName(f"{func.attrs.get('global_symbol', 'main')}.tir")

        def placed(stmt: Stmt) -> Stmt:
            line, copy = lines.get(id(stmt)), map_stmt(stmt, placed)
            return copy if line is None else copy.placed(Span(file, line, line, 0, 0))

        return func.with_body(placed(func.body))

    return Pass("tir.InstallDebugSpans", install)
