"""How much memory functions take."""

from __future__ import annotations

from ...tir.function import IRModule


def estimate_memory_usage(mod: IRModule) -> str:
    """How much memory the results of calls take in each function, all by themselves and planned, as text.

    Sizes that aren't known are left out. Calls of operators count once they are calls of tensor functions (LegalizeOps).
    """
    from ..transform.memory import estimate_memory_usage as estimate  # passes are made of analyses

    return estimate(mod)
