"""Postprocessors for GPUs: loads and blocks are shared by threads."""

from __future__ import annotations

from typing import Any

from ...errors import ScheduleError
from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.program import inner_statements
from ...schedule.blocks.thread_binding import BLOCKS, THREADS, bind_block, factor_sampler, is_bound
from ...tir.arithmetic import as_int
from ...tir.block import BlockRealize
from ...tir.stmt import For, Stmt
from ..schedule_rule.auto_bind import threads_of
from ..schedule_rule.cooperative import COOPERATIVE_FETCH, WARP_EXECUTION
from ..tune_context import TuneContext
from .blocks import roots
from .postproc import PyPostproc

_WARP = 32


class RewriteCooperativeFetch(PyPostproc):
    """Splits the fused loop of each marked load among the threads that the program's trace bound before it was marked.

    Where a vector doesn't divide the loop, each thread loads one element at once.
    """

    def apply(self, sch: Schedule) -> bool:
        """Rewrite all marked loads; always True."""
        extents: dict[str, int] = {}
        marked: list[tuple[BlockRV, int, dict[str, int]]] = []
        for inst in sch.trace.insts if sch.trace is not None else ():
            if inst.kind == "Bind" and str(inst.attrs[0]).startswith(THREADS):
                extents[str(inst.attrs[0])] = as_int(sch.get(inst.inputs[0]).extent) or 1
            elif inst.kind == "Annotate" and inst.attrs[0] == WARP_EXECUTION:
                extents[f"{THREADS}.x"] = _WARP
            elif inst.kind == "Annotate" and inst.attrs[0] == COOPERATIVE_FETCH:
                marked.append((inst.inputs[0], _number(sch, inst.inputs[1]), dict(extents)))
        for block, lanes, threads in marked:
            _share(sch, block, lanes, threads)
        return True


def _number(sch: Schedule, value: Any) -> int:
    """A number, or what was sampled for it."""
    number = as_int(value)
    return int(sch.get(value)) if number is None else number


def _share(sch: Schedule, block: BlockRV, lanes: int, threads: dict[str, int]) -> None:
    """Split the innermost loop around a block among threads, y outside of x, and into vectors."""
    sch.unannotate(block, COOPERATIVE_FETCH)
    loop = sch.get_loops(block)[-1]
    extent = as_int(sch.get(loop).extent)
    if extent is None:
        return
    vector = [lanes] if lanes > 1 and extent % lanes == 0 else []
    axes = [axis for axis in (f"{THREADS}.y", f"{THREADS}.x") if axis in threads]
    parts = sch.split(loop, [None, *(threads[axis] for axis in axes), *vector])
    if vector:
        sch.vectorize(parts[-1])
    for axis, part in zip(axes, parts[1:], strict=False):
        sch.bind(part, axis)


_AXES = (BLOCKS, THREADS)


class RewriteUnboundBlock(PyPostproc):
    """Binds the loops around each block that runs over no blocks, or no threads, of a grid.

    Args:
        max_threadblocks: blocks of the grid, at most.
    """

    def __init__(self, max_threadblocks: int = 256) -> None:
        self.max_threadblocks = max_threadblocks
        self._max_threads = 0

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the most threads of the task's target.

        Raises:
            TuningError: if the target has none.
        """
        self._max_threads = threads_of(context, type(self).__name__)

    def apply(self, sch: Schedule) -> bool:
        """Bind all blocks; False if one can't be bound."""
        try:
            for name, func_name in _unbound_names(sch):
                bind_block(sch, sch.get_block(name, func_name), self.max_threadblocks, self._max_threads, factor_sampler(sch))
        except ScheduleError:
            return False
        return True


def _unbound_names(sch: Schedule) -> list[tuple[str, str]]:
    """The outermost blocks that run over no blocks or no threads of a grid, and their functions; those inside run with them."""
    found: list[tuple[str, str]] = []
    for func_name, root in roots(sch):
        stack: list[tuple[Stmt, frozenset[str]]] = [(root.body, frozenset())]
        while stack:
            stmt, bound = stack.pop()
            if isinstance(stmt, BlockRealize) and len(bound) < len(_AXES):
                found.append((stmt.block.name_hint, func_name))
                continue
            inside = bound | {axis for axis in _AXES if isinstance(stmt, For) and is_bound(stmt, axis)}
            stack += [(inner, inside) for inner in reversed(inner_statements(stmt))]
    return found
