"""Expressions that are not of one level only."""

from __future__ import annotations

from ..tir.expr import PrimExpr, Range
from ..tir.function import GlobalVar

BaseExpr = PrimExpr


def is_relax_expr(expr: object) -> bool:
    """Whether an expression is one of a graph: never, as graphs are not here."""
    return False


__all__ = ["BaseExpr", "GlobalVar", "PrimExpr", "Range", "is_relax_expr"]
