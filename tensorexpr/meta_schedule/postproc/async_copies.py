"""`DisallowAsyncStridedMemCopy`: copies that don't wait are runs of memory, which is what engines for copies move."""

from __future__ import annotations

from ...arith import linear_form
from ...errors import TensorExprError
from ...lower import transform
from ...schedule.blocks import Schedule
from ...tir.arithmetic import as_int
from ...tir.expr import BufferLoad, PrimExpr, Var
from ...tir.function import PrimFunc
from ...tir.rewriting import walk
from ...tir.stmt import AttrStmt, BufferStore, For, Stmt
from .postproc import PyPostproc

# What makes flat buffers of a program, and of its pipelines copies that don't wait.
_PASSES = (
    "LowerInitBlock",
    "PlanAndUpdateBufferAllocationLocation",
    "ConvertBlocksToOpaque",
    "CompactBufferAllocation",
    "LowerMatchBuffer",
    "InjectSoftwarePipeline",
    "LowerOpaqueBlock",
    "FlattenBuffer",
    "Simplify",
)


class DisallowAsyncStridedMemCopy(PyPostproc):
    """Rejects programs with asynchronous copies that leave out elements between those that they move.

    Args:
        merge_async_commit_queue_scope: accepted; copies are looked at one by one.
    """

    def __init__(self, merge_async_commit_queue_scope: bool = True) -> None:
        self.merge_async_commit_queue_scope = merge_async_commit_queue_scope

    def apply(self, sch: Schedule) -> bool:
        """True if there are none; a program that can't be lowered is rejected."""
        try:
            mod = transform.Sequential([getattr(transform, name)() for name in _PASSES])(sch.mod)
        except TensorExprError:
            return False
        bodies = [func.body for func in mod.functions.values() if isinstance(func, PrimFunc)]
        marked = (node for body in bodies for node in walk(body) if isinstance(node, AttrStmt) and node.attr_key == "async_scope")
        return not any(is_strided(node.body) for node in marked)


def is_strided(copy: Stmt) -> bool:
    """Whether loops around the one store of a copy move its two sides by other steps than one element after the other.

    Example:
        for i, j in T.grid(4, 8): S[i * 8 + j] = A[i * 64 + j] moves 4 runs of 8.
    """
    loops: list[For] = []
    while isinstance(copy, (For, AttrStmt)):
        if isinstance(copy, For):
            loops.append(copy)
        copy = copy.body
    if not isinstance(copy, BufferStore) or not isinstance(copy.value, BufferLoad):
        return False
    return any(not _is_run(index, loops) for index in (copy.indices[-1], copy.value.indices[-1]))


def _is_run(index: PrimExpr, loops: list[For]) -> bool:
    terms = linear_form(index).terms
    step = 1
    for loop in reversed(loops):
        extent = as_int(loop.extent)
        factor = next((factor for atom, factor in terms.items() if isinstance(atom, Var) and atom is loop.loop_var), 0)
        if extent is None or (extent > 1 and factor != step):
            return False
        step *= extent
    return True
