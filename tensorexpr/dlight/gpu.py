"""The rules for GPUs. They differ by name alone: which plan a function gets, one table of rules knows (`spaces`), whoever asks."""

from __future__ import annotations

from ..lower.transform import DefaultGPUSchedule
from ..relax.kernel_schedules import kernel_of
from ..schedule.blocks import Schedule
from ..target import Target
from ..tir.function import IRModule, PrimFunc
from .rule import ScheduleRule


class GPUScheduleRule(ScheduleRule):
    """A rule for targets of GPUs, which leaves functions for others alone."""

    def is_target_available(self, target: Target) -> bool:
        """Whether the target is a GPU."""
        return "gpu" in target.keys

    def apply(self, func: PrimFunc, target: Target, tunable: bool) -> Schedule | None:
        """The function's blocks on a grid of threads, as a schedule that can be gone on with.

        Raises:
            LoweringError: where the target doesn't say how many threads a block may have.
        """
        if not self.is_target_available(target):
            return None
        with target:
            return Schedule(DefaultGPUSchedule()(IRModule({"main": func})))

    def scheduled(self, func: PrimFunc, target: Target) -> PrimFunc | None:
        """The function as a kernel by rules, lowered; where its computation isn't known, as `apply` has it."""
        kernel = kernel_of(func, "main", target) if self.is_target_available(target) else None
        return kernel.func if kernel is not None and kernel.origin == "rule" else super().scheduled(func, target)


class Fallback(GPUScheduleRule):
    """For whatever no other rule took."""


class GEMV(GPUScheduleRule):
    """For products of a matrix and a vector."""


class GeneralReduction(GPUScheduleRule):
    """For reductions and what follows them."""


class LowBatchGEMV(GPUScheduleRule):
    """For products of a matrix and a few vectors."""


class Matmul(GPUScheduleRule):
    """For products of matrices."""


class RMSNorm(GPUScheduleRule):
    """For norms of rows."""


class Reduction(GPUScheduleRule):
    """For reductions."""


class Transpose(GPUScheduleRule):
    """For transposes."""


__all__ = ["GEMV", "Fallback", "GPUScheduleRule", "GeneralReduction", "LowBatchGEMV", "Matmul", "RMSNorm", "Reduction", "Transpose"]
