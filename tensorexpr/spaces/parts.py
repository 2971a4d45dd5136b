"""Definitions that are products once they are taken apart: by the terms that they add up, and by what needs one side alone.

    Re[i, j] += A[i, k] * B[k, j] - D[i, k] * E[k, j]
        each product summed by itself, one in the tiles of what adds them up: panels of all operands at once fit no cache
    C[i, j] += (A[i, k] * s[k]) * ((W[k, j] - z[j]) * t[j])
        A[i, k] * s[k]           has no column: a stage of its own, before the product
        (W[k, j] - z[j]) * t[j]  has no row: computed when the panels of columns are packed

Only what stands together in the definition is taken together: products of floats aren't put in another order.
"""

from __future__ import annotations

from math import prod

from ..schedule.steps import Distribute, Materialize
from ..schedule.steps.distribute import terms_of
from ..schedule.steps.materialize import parts_of
from ..schedule.steps.pick import only_term
from ..schedule.te_schedule import Schedule
from ..schedule.tree import ScheduleTree, StageNode
from ..target import Target
from ..te.operation import ComputeOp
from ..tir.dtype import parse_dtype
from ..tir.expr import Call, Cast, PrimExpr, ProducerLoad, Select, Var
from ..tir.rewriting import children, walk
from .contraction_plan import WORTH_ONE_COMPUTATION
from .contractions import Contraction, axis_numbers, contraction_of
from .convolutions import convolution_of
from .dot_products import dot_product_of
from .machine import operations
from .stages import constant_extents, untouched

# Reads of each element by a product from which on its arithmetic isn't done for each of them: a vector of columns.
MANY_READS = 8
# Operations in steps of a sum that are worth a loop of its own for what it reads: 64 x 256 x 128 as long either way (two cores of Zen 3).
WORTH_A_LOOP = 1 << 21
# ... of which a conversion of a half, for one element at a time, counts for so many: 192 x 128 x 31 0.031 -> 0.017 ms, 256 x 64 x 40
# 0.027 -> 0.016, 448 x 50 x 32 0.127 -> 0.031 (same CPU).
_CONVERSION = 16
# Products and terms from which on two sums cost less than one of two products (complex ones, two cores of Zen 3): 16 x 16 x 16 takes
# 0.83 of the time, 256 x 256 x 8 0.77, but 256 x 256 x 4 1.28 times as long.
_WORTH_A_PRODUCT = 1 << 12
_LONG_SUM = 8
_MOST_PRODUCTS = 8  # each is a stage with code of its own


def distribute_sums(s: Schedule) -> bool:
    """Let sums of several products in one definition be several products, without what scales all terms of one; False if there are none.

    Example:
        A[i, k] * B[k, j] - D[i, k] * E[k, j] of complex numbers; (X[k, i] - M[i]) * (X[k, j] - M[j]) / (n - 1), a covariance of 1000 x 200:
        2.8 -> 0.67 ms (two cores of Zen 3), as each term was divided.
    """
    steps = len(s.trace)
    for stage in untouched(s):
        if isinstance(stage.op, ComputeOp) and stage.op.reduce_axis and _is_sum_of_products(s.tree, stage):
            s.distribute(stage.origin.output(0))
    return len(s.trace) > steps


def pick_terms(s: Schedule) -> None:
    """Let reductions of which one step along an axis adds something be that step: gathers written as sums, diagonals.

    Example:
        sum over k of (X[k, j] if k == at[i] else 0): X[at[i], j], or 0 where there is no such row.
    """
    for stage in untouched(s):
        while only_term(s.tree[stage.id].op) is not None:
            s.pick(stage.origin.output(0))


def _is_sum_of_products(tree: ScheduleTree, stage: StageNode) -> bool:
    """True if each of the terms is worth tiles of its own; the results of all but one are stored and read once more.

    Example:
        A[i, k] * B[k, j] - D[i, k] * E[k, j] of 64 x 64 x 64. Not A[i, k] - B[i, k], whose elements are used once.
    """
    op, extents, terms = stage.compute, constant_extents((*stage.compute.axis, *stage.compute.reduce_axis)), terms_of(stage.compute)
    if (
        extents is None
        or not 2 - any(term.scales for term in terms) <= len(terms) <= _MOST_PRODUCTS
        or prod(extents) < _WORTH_A_PRODUCT
        or prod(extents[len(op.axis) :]) < _LONG_SUM
    ):
        return False
    apart = Distribute(stage.id).apply(tree)
    return all(_is_product(apart, one) for one in apart.stages[len(tree.stages) :])


def _is_product(tree: ScheduleTree, stage: StageNode) -> bool:
    """True for sums that have tiles of several rows; one row is as fast with all terms at once."""
    if convolution_of(stage.op) is not None:
        return True
    found = contraction_of(tree, stage)
    return isinstance(found, Contraction) and found.size(*found.rows) > 1


def materialize_parts(s: Schedule, target: Target) -> None:
    """Give what products compute of one side a stage of its own, inlined where panels are to be packed from it."""
    for stage in untouched(s):
        # each part that is taken changes the definition, and what is left to take
        while (found := _part(s, s.tree[stage.id], target)) is not None:
            part, is_right = found
            made = s.materialize(stage.origin.output(0), part)
            if is_right:
                s[made].compute_inline()


def _part(s: Schedule, stage: StageNode, target: Target) -> tuple[int, bool] | None:
    """The first part that is worth it, by its number, and whether it is of the operand in the lanes."""
    if not isinstance(stage.op, ComputeOp) or not stage.op.reduce_axis or convolution_of(stage.op) is not None:
        return None
    # what makes zeros of a border, or of what lies between the pixels of a transposed convolution: with it apart there are tiles of pixels
    for number, part in enumerate(parts_of(stage.op)):
        if isinstance(part, (Call, Select)) and convolution_of(Materialize(stage.id, number).apply(s.tree)[stage.id].op) is not None:
            return number, False
    found = contraction_of(s.tree, stage)
    if not isinstance(found, Contraction) or dot_product_of(found, target) is not None:
        return None
    numbers, moving = axis_numbers(stage.op), dict[int, set[int]]()
    for node in walk(stage.op.body[0]):  # operands first: the sets of a sum of thousands of terms are made once
        own = {numbers[node]} if isinstance(node, Var) and node in numbers else set()
        moving[id(node)] = own.union(*(moving[id(child)] for child in children(node)))
    for number, part in enumerate(parts_of(stage.op)):
        axes = moving[id(part)]
        if _is_element(part) or not any(axis in axes for axis in found.summed):
            continue
        if not any(axis in axes for axis in found.columns):
            steps = prod(found.sizes)
            work = operations([part], steps) * (_CONVERSION if isinstance(part, Cast) else 1)
            if steps >= MANY_READS * found.size(*axes) and work >= WORTH_A_LOOP:
                return number, False
        elif not any(axis in axes for axis in found.rows) and found.can_be_packed and found.size(*found.rows) >= WORTH_ONE_COMPUTATION:
            return number, True
    return None


def _is_element(part: PrimExpr) -> bool:
    """True for an element as it lies, or converted by what loads it: int32(A[i, k]), but not float32(A[i, k]) of halves or integers."""
    while isinstance(part, Cast) and parse_dtype(part.dtype).is_int:
        part = part.value
    return isinstance(part, ProducerLoad)
