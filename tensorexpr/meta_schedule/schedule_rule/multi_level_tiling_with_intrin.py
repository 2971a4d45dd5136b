"""`MultiLevelTilingWithIntrin`: tiles around an instruction that computes several elements at once."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import ScheduleError
from ...schedule.blocks import BlockRV, LoopRV, Schedule
from ...schedule.blocks.thread_binding import TILED, is_root
from ...tir.arithmetic import as_int
from ...tir.block import BlockRealize
from ...tir.expr import IterVar, Var
from ...tir.rewriting import walk
from ...tir.stmt import For
from ...tir.tensor_intrin import TensorIntrin
from ..tune_context import TuneContext
from .analysis import REDUCE, SPATIAL, BoundLoop, bound_loops, needs_tiling
from .multi_level_tiling import MultiLevelTiling, ReuseType
from .schedule_rule import PyScheduleRule

AUTO_TENSORIZE = "meta_schedule.auto_tensorize"
AUTO_TENSORIZE_INIT = "meta_schedule.auto_tensorize_init"


class MultiLevelTilingWithIntrin(PyScheduleRule):
    """Tiles blocks whose innermost part an intrinsic computes; others stay for the rules after it.

    The innermost part is split off, made a block of its own and marked, and tensorised when programs are finished.

    Args:
        intrin_name: of a registered TensorIntrin.
        structure, tile_binds, max_innermost_factor, vector_load_lens, reuse_read, reuse_write: as for MultiLevelTiling.
    """

    def __init__(
        self,
        intrin_name: str,
        structure: str,
        tile_binds: Sequence[str] | None = None,
        max_innermost_factor: int | None = None,
        vector_load_lens: Sequence[int] | None = None,
        reuse_read: ReuseType | None = None,
        reuse_write: ReuseType | None = None,
    ) -> None:
        self.intrin_name = intrin_name
        self._tiling = MultiLevelTiling(structure, tile_binds, max_innermost_factor, vector_load_lens, reuse_read, reuse_write)

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take what tiling needs to know of the task's target."""
        self._tiling.initialize_with_tune_context(context)

    def apply(self, sch: Schedule, block: BlockRV) -> list[Schedule]:
        """The schedules with the intrinsic's part split off and the rest tiled; the schedule as it is where it doesn't fit."""
        tiled = is_root(sch, block) or TILED in sch.get(block).annotations
        if tiled or not needs_tiling(sch, block) or not self._fits(sch, block):
            return [sch]
        trial = sch.copy()
        trial.annotate(block, TILED, self._tiling.structure)
        try:
            outer = trial.blockize(split_off(trial, block, extents_of(self.intrin_name)))
        except ScheduleError:
            return [sch]
        trial.annotate(outer, AUTO_TENSORIZE, self.intrin_name)
        return self._tiling.tiled(trial, outer)

    def _fits(self, sch: Schedule, block: BlockRV) -> bool:
        """Whether the intrinsic computes a part of the block: it is tried on a copy."""
        trial = sch.copy()
        try:
            trial.tensorize(split_off(trial, block, extents_of(self.intrin_name)), self.intrin_name)
        except ScheduleError:
            return False
        return True


def extents_of(intrin_name: str) -> list[tuple[str, int]]:
    """The loops of an intrinsic's description: of which kind each axis is, and how long."""
    desc = TensorIntrin.get(intrin_name).desc
    realize = next(node for node in walk(desc.body) if isinstance(node, BlockRealize) and node.block.iter_vars)
    loops = {node.loop_var: as_int(node.extent) or 1 for node in walk(desc.body) if isinstance(node, For)}
    return [
        (REDUCE if axis.iter_type == IterVar.COMM_REDUCE else SPATIAL, loops[value])
        for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
        if isinstance(value, Var)
    ]


def split_off(sch: Schedule, block: BlockRV, wanted: list[tuple[str, int]]) -> LoopRV:
    """The outermost of the intrinsic's loops, split off from the last loops of each kind and moved inside.

    Raises:
        ScheduleError: if there are no such loops.
    """
    loops: list[BoundLoop] = list(bound_loops(sch, block) or [])
    inner: list[LoopRV] = []
    # from the innermost outwards; a loop that was split is taken, so two axes of an intrinsic never share one
    for kind, extent in reversed(wanted):
        place = next((n for n in range(len(loops) - 1, -1, -1) if loops[n].kind == kind and loops[n].extent % extent == 0), None)
        if place is None:
            raise ScheduleError(f"no loop of kind {kind} is a multiple of {extent}")
        loop = loops.pop(place)
        inner.insert(0, sch.split(loop.loop, [None, extent])[1])
    sch.reorder(*inner)
    around = sch.get_loops(block)
    # by their statements: `get_loops` gives loops new variables each time it is asked
    rest = [loop for loop in around if all(sch.get(loop) is not sch.get(own) for own in inner)]
    sch.reorder(*rest, *inner)
    return inner[0]
