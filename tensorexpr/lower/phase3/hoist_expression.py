"""Compute what a loop doesn't change in front of it: loads, divisions and calls, bound by a let.

Only values that each iteration computes anyway leave, only out of loops that run at least once, and only as many as
registers can hold. Index arithmetic stays: code generation places its terms loop by loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...arith import Analyzer
from ...tir.expr import And, BufferLoad, Call, Div, Let, Or, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.intrin import intrinsic_of
from ...tir.stmt import BufferStore, For, ForKind, IfThenElse, LetStmt, SeqStmt, Stmt, While
from ..context import PassContext
from ..rebuild import FreeVars, map_expr, map_stmt, operands, own_expressions, sub_statements, walk_statements
from ..register_file import RegisterFile
from ..scopes import inside_loop


def hoist_expression(func: PrimFunc, ctx: PassContext) -> PrimFunc:
    """`func` with invariant values in front of their loops; itself if there are none."""
    return func.with_body(_Hoister(RegisterFile.of(func)).stmt(func.body))
