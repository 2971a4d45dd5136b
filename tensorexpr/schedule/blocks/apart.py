"""Do iterations of loops touch different elements?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...arith import Analyzer
from ...tir.arithmetic import as_int
from ...tir.buffer import BufferRegion
from ...tir.expr import IntImm, PrimExpr, Range, Var
from ...tir.rewriting import substitute
from ...tir.stmt import For


def is_apart(late: BufferRegion, early: BufferRegion, loops: Sequence[For], around: Mapping[Var, Range]) -> bool:
    """True if the box `late` of any iteration and the box `early` of any iteration before it are certainly disjoint.

    Args:
        loops: a nest, outermost first, whose variables the boxes are in terms of.
        around: ranges of other variables, which have the same values in both iterations.
    """
    ranges = {loop.loop_var: Range(loop.min, loop.extent) for loop in loops}
    for level, loop in enumerate(loops):
        var, extent = loop.loop_var, as_int(loop.extent)
        if extent == 1:
            continue
        # Iteration `var + ahead` against `var`; loops further in are anywhere.
        ahead = Var("ahead", var.dtype)
        other = {deeper.loop_var: Var(deeper.loop_var.name, var.dtype) for deeper in loops[level + 1 :]}
        analyzer = Analyzer({**around, **ranges, **{fresh: ranges[deeper] for deeper, fresh in other.items()}})
        analyzer.bind(ahead, Range(IntImm(var.dtype, 1), loop.extent - 1))
        if not _are_disjoint(analyzer, late, early, {var: var + ahead, **other}):
            return False
    return True


def _are_disjoint(analyzer: Analyzer, late: BufferRegion, early: BufferRegion, moved: Mapping[Var, PrimExpr]) -> bool:
    """True if the boxes lie beside each other along some dimension."""
    for a, b in zip(late.region, early.region, strict=True):
        low, high = substitute(a.min, moved), substitute(a.min + a.extent, moved)
        if analyzer.known_true(low >= b.min + b.extent) or analyzer.known_true(high <= b.min):
            return True
    return False
