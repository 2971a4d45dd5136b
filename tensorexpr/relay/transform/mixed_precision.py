"""ToMixedPrecision: products and convolutions in half precision."""

from __future__ import annotations

from ...lower.passes import ModulePass
from ...relax import transform as on_graphs
from .common import on_graph


def ToMixedPrecision(mixed_precision_type: str = "float16", missing_op_mode: int = 1) -> ModulePass:
    """Products and convolutions in half precision, with float32 sums.

    Args:
        mixed_precision_type: "float16" or "bfloat16".
        missing_op_mode: accepted: operators without a rule stay in float32.
    """
    made = on_graphs.ToMixedPrecision("float32", dtype=mixed_precision_type)
    return on_graph("ToMixedPrecision", 0, made)


__all__ = ["ToMixedPrecision"]
