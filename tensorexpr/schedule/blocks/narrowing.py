"""Predicates that only shorten loops, taken as shorter loops: where a block runs is then a box again.

i < 127                      for i in range(128)          ->   for i in range(127)
i * 4 + j < 10               for i, j in grid(3, 4)       ->   for t in range(10)               t stands for i * 4 + j
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...arith import linear_form
from ...arith.analyzer import Analyzer
from ...tir.arithmetic import as_int, const
from ...tir.block import BlockRealize
from ...tir.expr import LE, LT, PrimExpr, Var
from ...tir.rewriting import variables
from ...tir.stmt import For
from .bindings import conditions, conjunction, ranges_of


def narrowed(realize: BlockRealize, loops: Sequence[For]) -> tuple[BlockRealize, list[For]]:
    """A realization without the conditions that shorter loops, or fused ones, say as well, and these loops."""
    kept: list[PrimExpr] = []
    found = list(loops)
    todo = conditions(realize.predicate)
    while todo:
        condition = todo.pop(0)
        made = _shortened(realize, found, condition, [*todo, *kept])
        if made is None:
            kept.append(condition)
        else:
            realize, found = made
    return replace(realize, predicate=conjunction(kept)), found


def _shortened(
    realize: BlockRealize, loops: list[For], condition: PrimExpr, others: Sequence[PrimExpr]
) -> tuple[BlockRealize, list[For]] | None:
    """The realization in shorter loops; None if the condition isn't the end of one loop, or of a fusion of loops."""
    limit = as_int(condition.b) if isinstance(condition, (LT, LE)) else None
    if limit is None or not isinstance(condition, (LT, LE)):
        return None
    # `total <= limit` as `total < limit + 1`: loops end where they don't arrive.
    end = limit + isinstance(condition, LE)
    total = condition.a
    used = [loop for loop in loops if loop.loop_var in variables(total)]
    length = _length(total, used)
    # A variable that is no loop of these, such as a size, has no fixed end.
    if length is None or len(variables(total)) != len(used) or not end > 0:
        return None
    # a condition that always holds shortens nothing
    end = min(end, length)
    if isinstance(total, Var):
        return realize, [replace(loop, extent=const(end, loop.extent.dtype)) if loop.loop_var is total else loop for loop in loops]
    # The loops go, so nothing else may be about them one by one.
    if any(variables(other) & {loop.loop_var for loop in used} for other in others):
        return None
    fused = Var("fused", total.dtype)
    values = [_in_terms_of(fused, total, value, used) for value in realize.iter_values]
    known = [value for value in values if value is not None]
    if len(known) != len(values):
        return None
    loop = replace(used[0], loop_var=fused, min=const(0, fused.dtype), extent=const(end, fused.dtype))
    return replace(realize, iter_values=tuple(known)), [*(other for other in loops if other not in used), loop]


def _length(total: PrimExpr, used: Sequence[For]) -> int | None:
    """The number of values of a sum of loops that counts from 0 without gaps; None if it doesn't."""
    form = linear_form(total)
    if form.constant != 0 or {*form.terms} != {loop.loop_var for loop in used} or not used:
        return None
    below = 1
    for loop in sorted(used, key=lambda loop: form.terms[loop.loop_var]):
        extent = as_int(loop.extent)
        # each loop steps by no more than the smaller ones reach, so no value is left out
        if extent is None or as_int(loop.min) != 0 or not 0 < form.terms[loop.loop_var] <= below:
            return None
        below += form.terms[loop.loop_var] * (extent - 1)
    return below


def _in_terms_of(fused: Var, total: PrimExpr, value: PrimExpr, used: Sequence[For]) -> PrimExpr | None:
    """A value of an axis in terms of the fused loop; None if it isn't a multiple of that and other loops."""
    own = {loop.loop_var for loop in used}
    if not variables(value) & own:
        return value
    whole, part = linear_form(value).terms, linear_form(total).terms
    first = used[0].loop_var
    # i * 8 + j * 2 is (i * 4 + j) * 2: one loop tells the factor, and the difference may have none of the loops left
    factor, rest = divmod(int(whole.get(first, 0)), int(part[first]))
    left = Analyzer(ranges_of(used)).simplify(value - total * factor)
    return None if rest or factor == 0 or variables(left) & own else left + fused * factor
