"""`tir.Schedule`: a module of blocks, transformed primitive by primitive."""

from __future__ import annotations

from ...errors import ScheduleError
from ...tir.function import IRModule, PrimFunc
from . import primitives
from .facade.layouts import Layouts
from .facade.loops import Loops
from .facade.memory import Memory
from .facade.nests import Nests
from .facade.notes import Notes
from .facade.placement import Placement
from .facade.questions import Questions
from .facade.reductions import Reductions
from .facade.samples import Samples

__all__ = ["Schedule", "ScheduleError", "primitives"]


class Schedule(Questions, Samples, Loops, Notes, Placement, Nests, Reductions, Memory, Layouts):
    """A schedule of a module: each method transforms the module and adds a line to the trace.

        sch = tir.Schedule(mod)
        block = sch.get_block("C")
        i, j, k = sch.get_loops(block)
        i0, i1 = sch.split(i, factors=[None, 16])

    Blocks and loops are handles, which stay valid while what they stand for exists; sampled numbers are variables that other
    primitives take, alone or in expressions. `mod` is the module now, `trace` what was done. An illegal primitive raises
    ScheduleError and changes nothing.

    Args:
        mod: a module, or a function, which becomes one under the name "main" (its attributes stay, the global symbol among them).
        seed: of sampling; None or -1 for a random one.
        debug_mask: "none", "all" or a number; accepted, since programs here are checked always.
        error_render_level: "detail": errors show the program with the place marked; "fast": the sentence; "none": only that there is one.
        enable_check: accepted, since programs here are checked always.
        traced: keep a trace.
    """

    def __init__(
        self,
        mod: PrimFunc | IRModule,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
        traced: bool = True,
    ) -> None:
        self._begin(mod, seed, error_render_level, traced, debug_mask)

    def copy(self) -> Schedule:
        """A schedule that goes on by itself from here; handles stand for the same in both."""
        other = object.__new__(type(self))
        other._taken_over(self)
        return other

    def _repr_html_(self) -> str:
        return self.mod._repr_html_()
