"""Rules by which blocks disappear into others: `AutoInline` and `InlineConstantScalars`."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ScheduleError
from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.thread_binding import is_root
from ...tir.arithmetic import as_int
from ...tir.block import Block
from ...tir.expr import BufferLoad
from ...tir.rewriting import variables, walk
from ...tir.stmt import BufferStore
from .analysis import has_branch, has_call, is_constant, is_injective, is_ordered, is_spatial
from .schedule_rule import PyScheduleRule


class AutoInline(PyScheduleRule):
    """Inlines blocks without reductions. Where nothing in the function reduces, the conditions below aren't asked.

    Args:
        into_producer: move a block into the one that makes what it reads (reverse_compute_inline).
        into_consumer: move a block into all that read what it makes (compute_inline).
        inline_const_tensor: inline blocks that read nothing.
        disallow_if_then_else: leave blocks with conditions.
        require_injective: leave blocks that read at other places than at different axes.
        require_ordered: leave blocks that read at axes out of order.
        disallow_op: leave blocks with calls of these names.
    """

    def __init__(
        self,
        into_producer: bool,
        into_consumer: bool,
        inline_const_tensor: bool,
        disallow_if_then_else: bool,
        require_injective: bool,
        require_ordered: bool,
        disallow_op: Sequence[str] | None = None,
    ) -> None:
        self.into_producer = into_producer
        self.into_consumer = into_consumer
        self.inline_const_tensor = inline_const_tensor
        self.disallow_if_then_else = disallow_if_then_else
        self.require_injective = require_injective
        self.require_ordered = require_ordered
        self.disallow_op = frozenset(disallow_op or ())

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedule with the block inlined, if that is asked for and legal."""
        stmt: Block = sch.get(block)
        if is_root(sch, block) or not is_spatial(stmt) or not isinstance(stmt.body, BufferStore):
            return [sch]
        constant = self.inline_const_tensor and is_constant(stmt)
        if not constant and not _in_spatial_function(sch, block) and not self._suits(stmt):
            return [sch]
        # an output has no reader that it could move into
        if (self.into_consumer or constant) and sch.get_consumers(block):
            try:
                sch.compute_inline(block)
                return [sch]
            except ScheduleError:
                pass
        if self.into_producer and len(sch.get_producers(block)) == 1:
            try:
                sch.reverse_compute_inline(block)
            except ScheduleError:
                return [sch]
        return [sch]

    def _suits(self, block: Block) -> bool:
        if self.disallow_if_then_else and has_branch(block):
            return False
        if self.disallow_op and has_call(block, lambda call: call.op in self.disallow_op):
            return False
        order = {axis.var: place for place, axis in enumerate(block.iter_vars)}
        loads = [node for node in walk(block.body) if isinstance(node, BufferLoad)]
        if self.require_injective and not all(is_injective(load.indices) for load in loads):
            return False
        return not self.require_ordered or all(is_ordered(load.indices, order) for load in loads)


def _in_spatial_function(sch: Schedule, block: BlockRV) -> bool:
    """Whether no block of the function reduces."""
    functions = [func.body for _, func in sch.mod.functions_items()]
    inside = [[node for node in walk(body) if isinstance(node, Block)] for body in functions]
    stmt = sch.get(block)
    return all(is_spatial(one) for blocks in inside if any(one is stmt for one in blocks) for one in blocks)


class InlineConstantScalars(PyScheduleRule):
    """Inlines blocks that write one element with a constant."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedule without the block, if it is one of these."""
        stmt: Block = sch.get(block)
        if is_root(sch, block) or not is_constant(stmt) or not isinstance(stmt.body, BufferStore) or variables(stmt.body.value):
            return [sch]
        if all(as_int(extent) == 1 for extent in stmt.body.buffer.shape):
            try:
                sch.compute_inline(block)
            except ScheduleError:
                return [sch]
        return [sch]
