"""Passes of graphs, by their customary names: `relax.transform.LegalizeOps()(mod)`."""

from .bind import BindParams, BindSymbolicVars
from .legalize import LegalizeOps
from .passes import function_pass
from .simple import DeadCodeElimination, FoldConstant

__all__ = ["BindParams", "BindSymbolicVars", "DeadCodeElimination", "FoldConstant", "LegalizeOps", "function_pass"]
