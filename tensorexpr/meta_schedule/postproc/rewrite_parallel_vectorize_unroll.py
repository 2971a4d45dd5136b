"""`RewriteParallelVectorizeUnroll`: what the root asks for is done to every block: outer loops run in parallel, inner ones as vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import ScheduleError
from ...schedule.blocks import BlockRV, LoopRV, Schedule
from ...tir.arithmetic import as_int
from ...tir.expr import IterVar
from ...tir.rewriting import variables
from ...tir.stmt import For, ForKind
from ..schedule_rule.parallelize_vectorize_unroll import PARALLEL, UNROLL_EXPLICIT, UNROLL_IMPLICIT, VECTORIZE
from .blocks import has_root
from .postproc import PyPostproc

_ASKS = (PARALLEL, VECTORIZE, UNROLL_EXPLICIT, UNROLL_IMPLICIT)


@dataclass(frozen=True)
class _Asked:
    """The most iterations of parallel loops, the most lanes, the steps to unroll and whether here; 0 for none."""

    parallel: int
    lanes: int
    unroll: int
    explicit: bool


class RewriteParallelVectorizeUnroll(PyPostproc):
    """Fuses and marks loops as the annotations of the root block ask, and takes these away."""

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
    for key in notes:
        sch.unannotate(root, key)
    if not notes:
        return None
    unroll = notes.get(UNROLL_EXPLICIT) or notes.get(UNROLL_IMPLICIT) or 0
    return _Asked(notes.get(PARALLEL, 0), notes.get(VECTORIZE, 0), unroll, bool(notes.get(UNROLL_EXPLICIT)))


def _rewrite(sch: Schedule, block: BlockRV, asked: _Asked | None) -> None:
    if asked is None:
        return
    loops = sch.get_loops(block)
    free = _independent(sch, block, loops)
    outer = _outer_count(sch, loops, free, asked.parallel)
    inner = _inner_count(sch, loops, free, asked.lanes, outer)
    if inner:
        _as_one(sch, loops[len(loops) - inner :], "vectorize")
    if outer:
        _as_one(sch, loops[:outer], "parallel")
    around = sch.get_loops(block)
    if asked.unroll and around:
        _annotate(sch, around[0], "pragma_auto_unroll_max_step", asked.unroll)
        _annotate(sch, around[0], "pragma_unroll_explicit" if asked.explicit else "pragma_unroll_implicit", 1)


def _annotate(sch: Schedule, loop: LoopRV, key: str, value: int) -> None:
    if key not in sch.get(loop).annotations:
        sch.annotate(loop, key, value)


def _as_one(sch: Schedule, loops: Sequence[LoopRV], how: str) -> None:
    """Fuse loops and run them in a way, if that is legal for all blocks inside."""
    trial = sch.copy()
    try:
        getattr(trial, how)(trial.fuse(*loops) if len(loops) > 1 else loops[0])
    except ScheduleError:
        return
    getattr(sch, how)(sch.fuse(*loops) if len(loops) > 1 else loops[0])


def _independent(sch: Schedule, block: BlockRV, loops: Sequence[LoopRV]) -> list[bool]:
    """For each loop whether it is plain, and only axes of data run over it."""
    realize = sch.realization(block)
    dependent = set().union(
        *(
            variables(value)
            for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
            if axis.iter_type != IterVar.DATA_PAR
        )
    )
    found = []
    for rv in loops:
        loop: For = sch.get(rv)
        plain = loop.kind == ForKind.SERIAL and not loop.annotations and loop.thread_binding is None
        found.append(plain and loop.loop_var not in dependent and as_int(loop.extent) is not None)
    return found


def _outer_count(sch: Schedule, loops: Sequence[LoopRV], free: Sequence[bool], limit: int) -> int:
    """How many of the outermost loops run in parallel: as many as stay within the limit, each directly in the one before."""
    total, count = 1, 0
    for loop, independent in zip(loops, free, strict=True):
        extent = as_int(sch.get(loop).extent) or 1
        if not independent or total * extent > limit:
            break
        total, count = total * extent, count + 1
        if not isinstance(sch.get(loop).body, For):
            break
    return count if total > 1 else 0


def _inner_count(sch: Schedule, loops: Sequence[LoopRV], free: Sequence[bool], limit: int, outer: int) -> int:
    """How many of the innermost loops become lanes."""
    total, count = 1, 0
    for place in range(len(loops) - 1, outer - 1, -1):
        extent = as_int(sch.get(loops[place]).extent) or 1
        alone = place == len(loops) - 1 or isinstance(sch.get(loops[place]).body, For)
        if not free[place] or not alone or total * extent > limit:
            break
        total, count = total * extent, count + 1
    return count if total > 1 else 0
