"""`RewriteCooperativeFetch`: marked loads are shared by the threads of a block, each of which loads vectors."""

from __future__ import annotations

from typing import Any

from ...schedule.blocks import BlockRV, Schedule
from ...schedule.blocks.thread_binding import THREADS
from ...tir.arithmetic import as_int
from ..schedule_rule.cooperative import COOPERATIVE_FETCH, WARP_EXECUTION
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
