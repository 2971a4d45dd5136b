"""Parts of a product that don't need both sides: computed once for all, or while panels are packed, instead of for each step of the sum.

    C[i, j] += (A[i, k] * s[k]) * ((W[k, j] - z[j]) * t[j])
        A[i, k] * s[k]           has no column: a stage of its own, before the product
        (W[k, j] - z[j]) * t[j]  has no row: computed when the panels of columns are packed

Only what stands together in the definition is taken together: products of floats aren't put in another order.
"""

from __future__ import annotations

from math import prod

from ..schedule.steps.materialize import parts_of
from ..schedule.te_schedule import Schedule
from ..schedule.tree import StageNode
from ..target import Target
from ..te.operation import ComputeOp
from ..tir.dtype import parse_dtype
from ..tir.expr import Cast, PrimExpr, ProducerLoad
from ..tir.rewriting import variables
from .contraction_plan import WORTH_ONE_COMPUTATION
from .contractions import Contraction, contraction_of
from .convolutions import convolution_of
from .dot_products import dot_product_of
from .machine import operations
from .stages import is_untouched

# Reads of each element by a product from which on its arithmetic isn't done for each of them: a vector of columns.
MANY_READS = 8
# Operations in steps of a sum that are worth a loop of its own for what it reads: 64 x 256 x 128 as long either way (two cores of Zen 3).
WORTH_A_LOOP = 1 << 21


def materialize_parts(s: Schedule, target: Target) -> None:
    """Give what products compute of one side a stage of its own, inlined where panels are to be packed from it."""
    for stage in list(s.tree.in_order()):
        # each part that is taken changes the definition, and what is left to take
        while is_untouched(s.tree[stage.id]) and (found := _part(s, s.tree[stage.id], target)) is not None:
            part, is_right = found
            made = s.materialize(stage.origin.output(0), part)
            if is_right:
                s[made].compute_inline()


def _part(s: Schedule, stage: StageNode, target: Target) -> tuple[int, bool] | None:
    """The first part that is worth it, by its number, and whether it is of the operand in the lanes."""
    if not isinstance(stage.op, ComputeOp) or not stage.op.reduce_axis or convolution_of(stage.op) is not None:
        return None
    found = contraction_of(s.tree, stage)
    if not isinstance(found, Contraction) or dot_product_of(found, stage.op.output_dtype(0), target) is not None:
        return None
    for number, part in enumerate(parts_of(stage.op)):
        axes = [axis for axis in range(len(found.sizes)) if found.axis(axis).var in variables(part)]
        if _is_element(part) or not any(axis in axes for axis in found.summed):
            continue
        if not any(axis in axes for axis in found.columns):
            steps = prod(found.sizes)
            if steps >= MANY_READS * found.size(*axes) and operations([part], steps) >= WORTH_A_LOOP:
                return number, False
        elif not any(axis in axes for axis in found.rows) and found.can_be_packed and found.size(*found.rows) >= WORTH_ONE_COMPUTATION:
            return number, True
    return None


def _is_element(part: PrimExpr) -> bool:
    """True for an element as it lies, or converted by what loads it: int32(A[i, k]), but not float32(A[i, k]) of halves or integers."""
    while isinstance(part, Cast) and parse_dtype(part.dtype).is_int:
        part = part.value
    return isinstance(part, ProducerLoad)
