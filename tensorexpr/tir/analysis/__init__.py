"""Questions about functions.

    variables     which variables are undefined; whether two expressions are one
    flops         how many operations a function does
    memory        how many bytes it allocates
    purity        whether a function only computes a value
    access_scope  the innermost loop or block around all accesses of each buffer
    gpu_code      whether a kernel keeps within the limits of a device; which code touches a device's memory
    blocks        the block that most of a function is about

Regions of blocks and accesses out of bounds need index algebra: those answers live with it and load on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..verify import verify_ssa, verify_well_formed
from .variables import expr_deep_equal, undefined_vars

if TYPE_CHECKING:
    from ...arith.block_access import get_block_access_region, get_block_read_write_region
    from ...arith.memory_copy import identify_memcpy
    from ...lower.oob_checker import OOBChecker
    from . import _ffi_api as _ffi_api
    from .access_scope import detect_buffer_access_lca
    from .blocks import find_anchor_block
    from .flops import estimate_tir_flops
    from .gpu_code import verify_gpu_code, verify_memory
    from .memory import calculate_allocated_bytes, calculate_constant_bytes, calculate_workspace_bytes
    from .purity import assert_pure_function, is_pure_function

__all__ = [
    "OOBChecker",
    "assert_pure_function",
    "calculate_allocated_bytes",
    "calculate_constant_bytes",
    "calculate_workspace_bytes",
    "detect_buffer_access_lca",
    "estimate_tir_flops",
    "expr_deep_equal",
    "find_anchor_block",
    "get_block_access_region",
    "get_block_read_write_region",
    "identify_memcpy",
    "is_pure_function",
    "undefined_vars",
    "verify_gpu_code",
    "verify_memory",
    "verify_ssa",
    "verify_well_formed",
]

# Public name -> where it lives; loaded when it is first asked for. Some live in a higher row, so that nothing here depends on them.
_PLACES = {
    "OOBChecker": "tensorexpr.lower.oob_checker",
    "assert_pure_function": "tensorexpr.tir.analysis.purity",
    "calculate_allocated_bytes": "tensorexpr.tir.analysis.memory",
    "calculate_constant_bytes": "tensorexpr.tir.analysis.memory",
    "calculate_workspace_bytes": "tensorexpr.tir.analysis.memory",
    "detect_buffer_access_lca": "tensorexpr.tir.analysis.access_scope",
    "estimate_tir_flops": "tensorexpr.tir.analysis.flops",
    "find_anchor_block": "tensorexpr.tir.analysis.blocks",
    "get_block_access_region": "tensorexpr.arith.block_access",
    "get_block_read_write_region": "tensorexpr.arith.block_access",
    "identify_memcpy": "tensorexpr.arith.memory_copy",
    "is_pure_function": "tensorexpr.tir.analysis.purity",
    "verify_gpu_code": "tensorexpr.tir.analysis.gpu_code",
    "verify_memory": "tensorexpr.tir.analysis.gpu_code",
}


def __getattr__(name: str) -> Any:
    if name == "_ffi_api":
        return importlib.import_module("tensorexpr.tir.analysis._ffi_api")
    if name not in _PLACES:
        raise AttributeError(f"module 'tensorexpr.tir.analysis' has no attribute {name!r}")
    value = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
