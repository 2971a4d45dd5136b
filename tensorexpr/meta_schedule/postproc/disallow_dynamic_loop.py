"""`DisallowDynamicLoop`: programs whose loops have extents that only a run knows are rejected."""

from __future__ import annotations

from ...schedule.blocks import Schedule
from ...tir.expr import IntImm
from ...tir.rewriting import walk
from ...tir.stmt import For
from .postproc import PyPostproc


class DisallowDynamicLoop(PyPostproc):
    """Rejects programs with loops of symbolic extents."""

    def apply(self, sch: Schedule) -> bool:
        """True if all extents are constant."""
        bodies = (func.body for _, func in sch.mod.functions_items())
        return all(isinstance(node.extent, IntImm) for body in bodies for node in walk(body) if isinstance(node, For))
