"""Questions about functions.

    variables     which variables are undefined; whether two expressions are one
    flops         how many operations a function does
    memory        how many bytes it allocates

Regions of blocks and accesses out of bounds need index algebra: those answers live with it and load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..verify import verify_ssa, verify_well_formed
from .flops import estimate_tir_flops
from .memory import calculate_allocated_bytes
from .variables import expr_deep_equal, undefined_vars

if TYPE_CHECKING:
    from ...arith.block_access import get_block_access_region, get_block_read_write_region
    from ...lower.oob_checker import OOBChecker

__all__ = [
    "OOBChecker",
    "calculate_allocated_bytes",
    "estimate_tir_flops",
    "expr_deep_equal",
    "get_block_access_region",
    "get_block_read_write_region",
    "undefined_vars",
    "verify_ssa",
    "verify_well_formed",
]

# Names that users expect here and that live in a higher row: loaded on first use, so that nothing here depends on them.
_HIGHER = {
    "OOBChecker": "tensorexpr.lower.oob_checker",
    "get_block_access_region": "tensorexpr.arith.block_access",
    "get_block_read_write_region": "tensorexpr.arith.block_access",
}


def __getattr__(name: str) -> Any:
    if name not in _HIGHER:
        raise AttributeError(f"module 'tensorexpr.tir.analysis' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HIGHER[name]), name)
    globals()[name] = value
    return value
