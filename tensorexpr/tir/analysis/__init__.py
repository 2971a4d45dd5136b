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

from typing import TYPE_CHECKING

from ...later import later
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

# Where public names live; some in a higher row, so that nothing here depends on them.
_HOMES = {
    "tensorexpr.arith.block_access": "get_block_access_region get_block_read_write_region",
    "tensorexpr.arith.memory_copy": "identify_memcpy",
    "tensorexpr.lower.oob_checker": "OOBChecker",
    ".access_scope": "detect_buffer_access_lca",
    ".blocks": "find_anchor_block",
    ".flops": "estimate_tir_flops",
    ".gpu_code": "verify_gpu_code verify_memory",
    ".memory": "calculate_allocated_bytes calculate_constant_bytes calculate_workspace_bytes",
    ".purity": "assert_pure_function is_pure_function",
}

__getattr__, __dir__ = later(__name__, _HOMES, submodules="_ffi_api")
