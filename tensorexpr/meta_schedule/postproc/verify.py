"""Postprocessors that reject: loops that only a run knows the extents of, and what a GPU has no room for."""

from __future__ import annotations

from math import prod

from ...errors import TensorExprError
from ...lower import transform
from ...schedule.blocks import Schedule
from ...schedule.blocks.program import inner_statements
from ...schedule.blocks.thread_binding import THREADS, is_bound
from ...target import Target
from ...tir.analysis.gpu_code import verify_gpu_code
from ...tir.arithmetic import as_int
from ...tir.block import Block
from ...tir.expr import IntImm
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import For, Stmt
from ...tir.thread import bound_tag
from ..schedule_rule.cooperative import WARP_EXECUTION
from ..schedule_rule.multi_level_tiling import FEWEST_THREADS, MOST_THREADS
from ..tune_context import TuneContext
from .blocks import roots
from .postproc import PyPostproc


class DisallowDynamicLoop(PyPostproc):
    """Rejects programs with loops of symbolic extents."""

    def apply(self, sch: Schedule) -> bool:
        """True if all extents are constant."""
        bodies = (func.body for _, func in sch.mod.functions_items())
        return all(isinstance(node.extent, IntImm) for body in bodies for node in walk(body) if isinstance(node, For))


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
MOST_VTHREADS, _VECTOR_BYTES = 8, 16


def limits_of(target: Target) -> dict[str, int]:
    """The limits that a target's attributes state, by the names of `verify_gpu_code`."""
    return {limit: int(target.attrs[name]) for name, limit in _ATTRS.items() if name in target.attrs}


class VerifyGPUCode(PyPostproc):
    """Rejects programs whose kernels have too many threads or too much memory for the task's target, or others than their blocks ask for.

    The limits are the target's attributes; those that it doesn't have don't count.
    """

    def __init__(self) -> None:
        self._limits: dict[str, int] = {}
        self._warp = 1

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the limits of the task's target."""
        self._warp = int(context.target.attrs.get("thread_warp_size", 1))
        self._limits = limits_of(context.target) | {"max_vthread": MOST_VTHREADS, "max_vector_bytes": _VECTOR_BYTES}

    def apply(self, sch: Schedule) -> bool:
        """True if all kernels keep within the limits; a program that can't be lowered has none that do."""
        try:
            mod = transform.Sequential([getattr(transform, name)() for name in _PASSES])(sch.mod)
        except TensorExprError:
            return False
        threads = all(threads_fit(root, self._warp) for _, root in roots(sch))
        return threads and all(verify_gpu_code(func, self._limits) for func in mod.functions.values() if isinstance(func, PrimFunc))


def threads_fit(root: Block, warp: int) -> bool:
    """Whether each block that says between which numbers of threads it runs does so.

    Args:
        warp: the threads in which a block runs that a warp computes together, whatever its loops say.
    """
    stack: list[tuple[Stmt, dict[str, int]]] = [(root, {})]
    while stack:
        stmt, threads = stack.pop()
        if isinstance(stmt, For) and is_bound(stmt, THREADS):
            threads = threads | {bound_tag(stmt) or "": as_int(stmt.extent) or 1}
        elif isinstance(stmt, Block):
            threads = threads | ({f"{THREADS}.x": warp} if WARP_EXECUTION in stmt.annotations else {})
            fewest, most = (as_int(stmt.annotations.get(key)) for key in (FEWEST_THREADS, MOST_THREADS))
            if fewest is not None and most is not None and not fewest <= prod(threads.values()) <= most:
                return False
        stack += [(inner, threads) for inner in inner_statements(stmt)]
    return True
