"""Passes on quantized operators. None is needed to build: a graph has their meaning, integer arithmetic, anyway."""

from __future__ import annotations

from ...lower.passes import ModulePass
from ...lower.transform import Sequential
from ..from_graph import from_graph
from ..to_graph import to_graph
from ..transform import Legalize as _legalize


def CanonicalizeOps() -> ModulePass:
    """A pass: quantized operators as what they mean, arithmetic of integers."""
    return ModulePass(
        "QnnCanonicalizeOps", lambda func, ctx: func, 0, by_user=False, module_func=lambda mod, ctx: from_graph(to_graph(mod))
    )


def Legalize() -> Sequential:
    """What programs registered in place of quantized operators, as "FTVMQnnLegalize", and then `CanonicalizeOps`' meaning of the others."""
    return Sequential([_legalize("FTVMQnnLegalize"), CanonicalizeOps()])


__all__ = ["CanonicalizeOps", "Legalize"]
