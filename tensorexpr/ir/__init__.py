"""What all programs share, by the names that users of TVM look for here; it is made in `tir`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..tir.expr import PointerType, PrimExpr, PrimType, Range
from ..tir.function import GlobalVar
from ..tir.structural import structural_equal, structural_hash
from ..tir.structural_difference import assert_structural_equal
from . import diagnostics, module
from .module import IRModule
from .source import SourceMap, SourceName, Span

if TYPE_CHECKING:
    from . import instrument, transform

# What lives in a higher row: loaded on first use.
_HIGHER = ("instrument", "transform")

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
    "instrument",
    "module",
    "structural_equal",
    "structural_hash",
    "transform",
]


def __getattr__(name: str) -> Any:
    if name not in _HIGHER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")
