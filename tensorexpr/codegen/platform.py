"""What code generation does otherwise for devices: one row per kind of target, over the handlers that all of them share.

A CPU has no handlers of its own. A device replaces those of loops over threads, of memory and of calls, has formulas over its own
instructions, and counts in 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..dataclass import dataclass, field
from ..target import Target
from ..target.chips import capability
from ..tir import stmt
from . import kernels, ptx_intrinsics, ptx_math, vector_math
from .context import StmtHandler
from .intrinsics import CALLS
from .types import INDEX


def _features_of_cpu(target: Target) -> frozenset[str]:
    return target.features


def _features_of_gpu(target: Target) -> frozenset[str]:
    """In the words of CPUs that have the same: fused multiply-adds, conversions of float16 and, from sm_80 on, of bfloat16."""
    return frozenset({"fma", "f16c", *(("neon", "bf16") if capability(target.arch) >= 80 else ())})


@dataclass(frozen=True)
class Platform:
    """A row.

    Args:
        calls: the handlers of calls by name of the intrinsic.
        formulas: of math functions, by LLVM type and intrinsic.
        statements: handlers in place of the shared ones.
        features: what instructions there are.
        index: the LLVM type of loop variables and indices that fit it.
        is_device: functions are kernels, which return nothing and call no library.
    """

    calls: Mapping[str, Callable[..., str]]
    formulas: Mapping[str, Mapping[str, Callable[..., Any]]]
    statements: Mapping[type, StmtHandler] = field(default_factory=dict)
    features: Callable[[Target], frozenset[str]] = _features_of_cpu
    index: str = INDEX
    is_device: bool = False


CPU = Platform(CALLS, vector_math.FORMULAS)
_HOST_CALLS = ("tir.call_extern", "tir.call_pure_extern", "tir.tvm_call_packed", "tir.tvm_call_trace_packed", "tir.prefetch", "tir.ldexp")
DEVICES: Mapping[str, Platform] = {
    "cuda": Platform(
        {**{name: call for name, call in CALLS.items() if name not in _HOST_CALLS}, **ptx_intrinsics.CALLS},
        ptx_math.FORMULAS,
        {stmt.For: kernels.emit_for, stmt.AttrStmt: kernels.emit_attr, stmt.Allocate: kernels.emit_allocate},
        _features_of_gpu,
        "i32",
        is_device=True,
    ),
}
