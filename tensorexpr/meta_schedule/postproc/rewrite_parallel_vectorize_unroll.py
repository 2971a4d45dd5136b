"""`RewriteParallelVectorizeUnroll`: what the root asks for is done to every block: outer loops run in parallel, inner ones as vectors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul
from typing import Any

from ...dataclass import dataclass
from ...errors import ScheduleError
from ...schedule.blocks import BlockRV, LoopRV, Schedule
from ...schedule.blocks.thread_binding import dependent_loops
from ...tir.arithmetic import as_int
from ...tir.stmt import For, ForKind
from ..schedule_rule.analysis import is_spatial
from ..schedule_rule.parallelize_vectorize_unroll import PARALLEL, UNROLL_EXPLICIT, UNROLL_IMPLICIT, VECTORIZE
from .blocks import contiguous_loops, has_root
from .postproc import PyPostproc

_ASKS = (PARALLEL, VECTORIZE, UNROLL_EXPLICIT, UNROLL_IMPLICIT)
_ANY = 1 << 62  # iterations, where all loops count


@dataclass(frozen=True)
class _Asked:
    """The iterations of parallel loops after which no more are fused, the most lanes, the steps to unroll and whether here; 0 for none."""

    parallel: int
    lanes: int
    unroll: int
    explicit: bool


class RewriteParallelVectorizeUnroll(PyPostproc):
    """Fuses and marks loops as the annotations of the root block ask, and takes these away.

    Inner loops become lanes as far as each access of the block goes through memory without gaps, or stays where it is.
    """

    def apply(self, sch: Schedule) -> bool:
        """Rewrite all functions of blocks; always True."""
        for var in sch.mod.get_global_vars():
            if has_root(sch, var.name_hint):
                root = sch.get_block("root", var.name_hint)
                asked = _taken(sch, root)
                for block in sch.get_child_blocks(root) if asked is not None else ():
                    _rewrite(sch, block, asked)
        return True


def _taken(sch: Schedule, root: BlockRV) -> _Asked | None:
    """What the root asks for, which is taken away from it; None if that is nothing."""
    notes: dict[str, Any] = {key: as_int(value) or 0 for key, value in sch.get(root).annotations.items() if key in _ASKS}
    for key in [key for key in _ASKS if key in notes]:
        sch.unannotate(root, key)
    if not notes:
        return None
    unroll = notes.get(UNROLL_EXPLICIT) or notes.get(UNROLL_IMPLICIT) or 0
    return _Asked(notes.get(PARALLEL, 0), notes.get(VECTORIZE, 0), unroll, bool(notes.get(UNROLL_EXPLICIT)))


def _rewrite(sch: Schedule, block: BlockRV, asked: _Asked | None) -> None:
    loops = sch.get_loops(block)
    if asked is None or not loops:
        return
    statements: list[For] = [sch.get(loop) for loop in loops]
    free = _free(statements)
    most = contiguous_loops(sch.realization(block), statements)
    first = loops[0]
    both = asked.parallel and asked.lanes and all(free) and most == len(loops)
    # tried on a copy: a step that is refused half way would leave the loops fused
    if both and _both(sch.copy(), loops, asked.lanes) is not None:
        first = _both(sch, loops, asked.lanes) or first
    else:
        inner = _inner_count(statements, free, asked.lanes, most) if asked.lanes else 0
        # a loop is either; lanes are chosen first
        outer = min(_outer_count(statements, free, asked.parallel), len(loops) - inner)
        first = _as_one(sch, loops[:outer], "parallel") if outer else first
        last = _as_one(sch, loops[len(loops) - inner :], "vectorize") if inner else first
        # lanes took all loops, so that their one loop is the outermost
        first = last if inner == len(loops) else first
    if asked.unroll and not is_spatial(sch.get(block)):
        _annotate(sch, first, "pragma_auto_unroll_max_step", asked.unroll)
        _annotate(sch, first, "pragma_unroll_explicit" if asked.explicit else "pragma_unroll_implicit", 1)


def _annotate(sch: Schedule, loop: LoopRV, key: str, value: int) -> None:
    if key not in sch.get(loop).annotations:
        sch.annotate(loop, key, value)


def _as_one(sch: Schedule, loops: Sequence[LoopRV], how: str) -> LoopRV:
    """Fuse loops and run them in a way, as far as that is legal for all blocks inside."""
    try:
        loop = sch.fuse(*loops)
    except ScheduleError:  # they stay plain loops: slower, and right
        return loops[0]
    _marked(sch, loop, how)
    return loop


def _both(sch: Schedule, loops: Sequence[LoopRV], lanes: int) -> LoopRV | None:
    """All loops of an elementwise block as vectors that run in parallel: the outer loop; None if that isn't legal."""
    try:
        outer, inner = sch.split(sch.fuse(*loops), [None, lanes])
        sch.parallel(outer)
        sch.vectorize(inner)
    except ScheduleError:  # such as lanes that don't divide the last dimension: the axes would be no splits of these loops
        return None
    return outer


def _marked(sch: Schedule, loop: LoopRV, how: str) -> None:
    """Run a loop in a way, if that is legal."""
    try:
        getattr(sch, how)(loop)
    except ScheduleError:
        return


def _free(loops: Sequence[For]) -> list[bool]:
    """Which of the loops around a block may run in any order."""
    dependent = dependent_loops(loops[0])
    return [_is_plain(loop) and loop.loop_var not in dependent for loop in loops]


def parallel_products(sch: Schedule, block: BlockRV) -> list[int]:
    """The iterations of the outermost loop of a block that may run in parallel, of the two outermost fused, and so on."""
    loops: list[For] = [sch.get(loop) for loop in sch.get_loops(block)]
    count = _outer_count(loops, _free(loops), _ANY) if loops else 0
    return list(accumulate((as_int(loop.extent) or 1 for loop in loops[:count]), mul))


def _is_plain(loop: For) -> bool:
    return loop.kind == ForKind.SERIAL and not loop.annotations and loop.thread_binding is None and as_int(loop.extent) is not None


def _outer_count(loops: Sequence[For], free: Sequence[bool], limit: int) -> int:
    """How many outer loops run in parallel: up to the one that makes more iterations than asked, each directly in the one before."""
    total, count = 1, 0
    for loop, independent in zip(loops, free, strict=True):
        if not independent or total > limit:
            break
        total, count = total * (as_int(loop.extent) or 1), count + 1
        if not isinstance(loop.body, For):
            break
    # loops of one iteration in all have nothing to share among threads
    return count if total > 1 and limit else 0


def _inner_count(loops: Sequence[For], free: Sequence[bool], limit: int, most: int) -> int:
    """How many of the innermost loops become lanes, at most `most`."""
    total, count = 1, 0
    for place in range(len(loops) - 1, max(-1, len(loops) - 1 - most), -1):
        alone = place == len(loops) - 1 or isinstance(loops[place].body, For)
        extent = as_int(loops[place].extent) or 1
        if not free[place] or not alone or total * extent > limit:
            break
        total, count = total * extent, count + 1
    return count if total > 1 else 0
