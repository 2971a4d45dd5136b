"""`RewriteUnboundBlock`: blocks that run on no grid yet do so, such as inits of reductions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ScheduleError
from ...schedule.blocks import Schedule
from ...schedule.blocks.program import inner_statements
from ...schedule.blocks.thread_binding import BLOCKS, THREADS, bind_block, factor_sampler, is_bound
from ...tir.block import BlockRealize
from ...tir.stmt import For, Stmt
from ..schedule_rule.auto_bind import threads_of
from .blocks import roots
from .postproc import PyPostproc

if TYPE_CHECKING:
    from ..tune_context import TuneContext

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
