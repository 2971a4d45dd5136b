"""`VerifyGPUCode`: programs whose kernels go beyond the limits of their GPU are rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import TensorExprError
from ...lower import transform
from ...schedule.blocks import Schedule
from ...tir.analysis.gpu_code import verify_gpu_code
from ...tir.function import PrimFunc
from .postproc import PyPostproc

if TYPE_CHECKING:
    from ..tune_context import TuneContext

# What makes the memory of kernels plain: each buffer where it is used, as small as it can be.
_PASSES = (
    "LowerInitBlock",
    "PlanAndUpdateBufferAllocationLocation",
    "ConvertBlocksToOpaque",
    "UnifyThreadBinding",
    "CompactBufferAllocation",
    "LowerMatchBuffer",
    "LowerOpaqueBlock",
    "FlattenBuffer",
    "VectorizeLoop",
    "Simplify",
)
_ATTRS = {
    "max_threads_per_block": "max_threads_per_block",
    "max_shared_memory_per_block": "max_shared_memory_per_block",
    "max_local_memory_per_block": "max_local_memory_per_block",
}
_MOST_VTHREADS, _VECTOR_BYTES = 8, 16


class VerifyGPUCode(PyPostproc):
    """Rejects programs whose kernels have too many threads or too much memory for the task's target.

    The limits are the target's attributes; those that it doesn't have don't count.
    """

    def __init__(self) -> None:
        self._limits: dict[str, int] = {}

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the limits of the task's target."""
        attrs = context.target.attrs
        self._limits = {limit: int(attrs[name]) for name, limit in _ATTRS.items() if name in attrs}
        self._limits |= {"max_vthread": _MOST_VTHREADS, "max_vector_bytes": _VECTOR_BYTES}

    def apply(self, sch: Schedule) -> bool:
        """True if all kernels keep within the limits; a program that can't be lowered has none that do."""
        try:
            mod = transform.Sequential([getattr(transform, name)() for name in _PASSES])(sch.mod)
        except TensorExprError:
            return False
        return all(verify_gpu_code(func, self._limits) for func in mod.functions.values() if isinstance(func, PrimFunc))


__all__ = ["VerifyGPUCode"]
