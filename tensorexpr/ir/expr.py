"""Expressions that are not of one level only."""

from __future__ import annotations

from ..tir.expr import PrimExpr, Range
from ..tir.function import GlobalVar

BaseExpr = PrimExpr


def is_relax_expr(expr: object) -> bool:
    """Whether an expression is one of a graph, of which a struct info is known."""
    return hasattr(type(expr), "struct_info")


__all__ = ["BaseExpr", "GlobalVar", "PrimExpr", "Range", "is_relax_expr"]
