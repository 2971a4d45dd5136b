"""Sums over pairs: each operand is of a result or of a term, none of both, so that results are lanes and all of them share terms.

    F[i, c] = sum over k of M[k] * f(|X[k] - X[i]|) * (X[k, c] - X[i, c])        forces between points, of three components c

    for vectors of i in parallel:  for k:  for c:  F[i, c] += ...                 what doesn't depend on c is computed once for all

With the components in the lanes, as neighbours in memory, each lane would compute the distance again, and most lanes would be empty.
"""

from __future__ import annotations

from math import prod

from ..schedule.te_schedule import Schedule
from ..schedule.tree import ScheduleTree, StageNode
from ..target import Target
from .access import stage_reads
from .machine import accumulators, is_parallel, lanes_of, operations, vector_factor
from .nests import accumulators_of, as_tasks, in_vectors
from .stages import compute_of, constant_extents, extents_of, is_plain_sum, tiled_result

# Components of a result that are written out, each with sums of its own.
_COMPONENTS = 4
# Terms from which on sums in registers are worth the scattered stores of components.
_LEAST_TERMS = 8


def rows_of_pairs(tree: ScheduleTree, stage: StageNode, target: Target) -> list[int]:
    """The axis of results that go into the lanes, the last one but for components; none for what is no sum over pairs.

    Example:
        0 of F[i, c] in the forces above. None of Y[i] = sum over k of A[i, k] * X[k], where A is of the result and of the term.
    """
    op = stage.op
    if not is_plain_sum(op):
        return []
    extents = constant_extents((*op.axis, *op.reduce_axis))
    if extents is None or prod(extents[len(op.axis) :]) < _LEAST_TERMS:
        return []
    place = len(op.axis) - 1
    while place > 0 and prod(extents[place : len(op.axis)]) <= _COMPONENTS:
        place -= 1
    reads, summed = stage_reads(tree, stage).accesses, [axis.var for axis in op.reduce_axis]
    of_result = [access.moves_with(op.axis[place].var) for access in reads]
    of_term = [any(access.moves_with(var) for var in summed) for access in reads]
    components, lanes = prod(extents[place + 1 : len(op.axis)]), lanes_of(target, stage.origin.output_dtype(0))
    # Y[i] = sum over k of X[k] * A[i, k]: A is of both.
    is_apart = any(of_result) and any(of_term) and not any(one and other for one, other in zip(of_result, of_term, strict=True))
    # Terms that are neighbours in memory may be the lanes as well; with few results they have to be.
    across = components > 1 or any(access.stride(summed[-1]) > 1 for access in reads)
    enough = extents[place] >= 2 * lanes * (target.num_cores if place == 0 else 1) and components <= _COMPONENTS
    return [place] if is_apart and across and enough else []


def build_pairs(s: Schedule, stage: StageNode, place: int, target: Target) -> None:
    """Schedule a sum over pairs with the stage that makes the result of it element by element."""
    tensor, result = stage.origin.output(0), tiled_result(s, stage)
    op = compute_of(s, tensor)
    work = operations(op.body, prod(extents_of((*op.axis, *op.reduce_axis))))
    (extent,), lanes = extents_of(op.axis[place : place + 1]), lanes_of(target, tensor.dtype)
    components = prod(extents_of(op.axis[place + 1 :]))
    sums = accumulators_of(s, tensor, result)
    *outer, row = s[result].op.axis[: place + 1]
    some, lane = s[result].split(row, factor=vector_factor(extent, lanes, max(1, accumulators(target) // (2 * components))))
    inner = list(s[result].op.axis[place + 1 :])
    in_vectors(s[result], [*outer, some], inner, lane)
    tasks = as_tasks(s[result], [*outer, some], is_parallel(target, work))
    axes = s[sums].transform_layout(lambda *i: [*i[:place], *i[place + 1 :], i[place]])
    s[sums].compute_at(s[result], tasks)
    in_vectors(s[sums], [*axes[:place], *s[sums].op.reduce_axis], axes[place:-1], axes[-1])
