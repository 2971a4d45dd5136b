"""What all programs share, by the names that users of TVM look for here; it is made in `tir`."""

from __future__ import annotations

from ..tir.expr import PointerType, PrimExpr, PrimType, Range
from ..tir.function import GlobalVar
from ..tir.structural import structural_equal, structural_hash
from ..tir.structural_difference import assert_structural_equal
from . import diagnostics, module
from .module import IRModule
from .source import SourceMap, SourceName, Span

__all__ = [
    "GlobalVar",
    "IRModule",
    "PointerType",
    "PrimExpr",
    "PrimType",
    "Range",
    "SourceMap",
    "SourceName",
    "Span",
    "assert_structural_equal",
    "diagnostics",
    "module",
    "structural_equal",
    "structural_hash",
]
