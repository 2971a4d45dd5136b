"""`RandomComputeLocation`: where blocks are computed that no other rule placed."""

from __future__ import annotations

from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.thread_binding import TILED, is_root
from ...tir.block import Block
from .add_rfactor import RANDOM_PRODUCER
from .schedule_rule import PyScheduleRule


class RandomComputeLocation(PyScheduleRule):
    """Samples a place for each block that has consumers, is not tiled and stands alone in its loops."""

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedule with the block, and a producer that asked for it, at sampled places."""
        if not _may_move(sch, block):
            return [sch]
        producers: list[BlockRV] = []
        if RANDOM_PRODUCER in sch.get(block).annotations:
            producers = sch.get_producers(block)  # asked before: the block itself may be inlined
            sch.unannotate(block, RANDOM_PRODUCER)
        for moved in (block, *producers):
            sch.compute_at(moved, sch.sample_compute_location(moved), preserve_unit_loops=True)
        return [sch]


def _may_move(sch: Schedule, block: BlockRV) -> bool:
    stmt: Block = sch.get(block)
    if is_root(sch, block) or TILED in stmt.annotations or not sch.get_consumers(block):
        return False
    loops = sch.get_loops(block)
    return bool(loops) and len(sch.get_child_blocks(loops[0])) == 1
