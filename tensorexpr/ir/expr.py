"""Expressions that are not of one level only."""

from __future__ import annotations

from ..tir.expr import PrimExpr, Range
from ..tir.function import GlobalVar

BaseExpr = PrimExpr

__all__ = ["BaseExpr", "GlobalVar", "PrimExpr", "Range"]
