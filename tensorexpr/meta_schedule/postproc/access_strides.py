"""How blocks go through memory along the loops around them, for postprocessors."""

from __future__ import annotations

from collections.abc import Sequence

from ...arith import linear_form
from ...schedule.blocks.bindings import bound_values
from ...tir.arithmetic import as_int
from ...tir.block import BlockRealize
from ...tir.buffer import BufferRegion
from ...tir.expr import PrimExpr, Var
from ...tir.rewriting import substitute
from ...tir.stmt import For


def contiguous_loops(realize: BlockRealize, loops: Sequence[For]) -> int:
    """How many of the innermost loops, fused, each access of a block follows without gaps, or without moving at all."""
    values = bound_values(realize)
    count = len(loops)
    for access in (*realize.block.reads, *realize.block.writes):
        count = min(count, _contiguous(_strides(access, values, loops), loops))
    return count


def _contiguous(strides: Sequence[int], loops: Sequence[For]) -> int:
    """How many of the last strides continue each other. A stride other than 1 may be the very last loop's: it is one lane's step."""
    count, expected = 0, None
    for stride, loop in zip(reversed(strides), reversed(loops), strict=True):
        if stride:
            fits = stride == expected if expected is not None else stride == 1 or not count
            if not fits:
                break
            expected = stride * (as_int(loop.extent) or 1)
        count += 1
    return count


def _strides(access: BufferRegion, values: dict[Var, PrimExpr], loops: Sequence[For]) -> list[int]:
    """The elements by which an access moves with each loop: the factor in the last index that a loop is a term of; 0 for none."""
    found = dict.fromkeys((loop.loop_var for loop in loops), 0)
    elements = 1
    for side, extent in zip(reversed(access.region), reversed(access.buffer.shape), strict=True):
        form = linear_form(substitute(side.min, values))
        for var, factor in form.terms.items():
            if isinstance(var, Var) and found.get(var) == 0:
                found[var] = factor * elements
        elements *= as_int(extent) or 1
    return [found[loop.loop_var] for loop in loops]
