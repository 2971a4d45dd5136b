"""The order in which a product of several factors is contracted: that of the fewest operations.

    Y[i, j, k] += G[r, s, t] * A[i, r] * B[j, s] * C[k, t]       64 * 64 * 64 * 16 * 16 * 16 steps
    T[i, s, t] += G[r, s, t] * A[i, r]                           64 * 16 * 16 * 16
    U[i, j, t] += T[i, s, t] * B[j, s]                           64 * 64 * 16 * 16
    Y[i, j, k] += U[i, j, t] * C[k, t]                           64 * 64 * 64 * 16

The best of all trees of pairs by dynamic programming over sets of factors, as Pfeifer, Haegeman and Verstraete (2014) do for networks of
tensors; no product of some is larger than the largest operand or the result, as opt_einsum has it (Smith and Gray, 2018, `max_input`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import inf, prod

from ..schedule.steps.contract import contracted, factors_of
from ..schedule.te_schedule import Schedule
from ..te.operation import ComputeOp, loads
from ..tir.arithmetic import as_int
from ..tir.expr import IterVar
from ..tir.rewriting import variables
from .stages import constant_extents, extents_of, untouched

# Steps of a sum from which on there is time for a loop more.
_WORTH_A_LOOP = 1 << 14
# Multiply-adds in vectors that take as long as storing an element and loading it again.
_STORED = 8
# All sets of them are tried: 2 ** 8, each in up to 2 ** 7 pairs of parts.
_MOST_FACTORS = 8

Factors = tuple[int, ...]
_Order = tuple[Factors, ...]
_Best = dict[Factors, tuple[float, _Order]]


def contract_in_order(s: Schedule) -> bool:
    """Contract products pair by pair where that takes less than half of the operations; False if there are none."""
    steps = len(s.trace)
    for stage in untouched(s):
        if isinstance(stage.op, ComputeOp) and stage.op.reduce_axis:
            groups: list[Factors] = [(number,) for number in range(len(factors_of(stage.op)))]
            for chosen in best_order(stage.op):
                places = [place for place, group in enumerate(groups) if set(group) <= set(chosen)]
                s.contract(stage.origin.output(0), places)
                groups[places[0]] = chosen
                groups = [group for place, group in enumerate(groups) if place not in places[1:]]
    return len(s.trace) > steps


def best_order(op: ComputeOp) -> Sequence[Factors]:
    """The sets of factors that are contracted before the others, each after its parts; none if that isn't worth it.

    Example:
        That of the module, whose factors are 0 to 3: (0, 1), (0, 1, 2).
    """
    factors, extents = factors_of(op), constant_extents((*op.axis, *op.reduce_axis))
    axes = {axis.var for axis in (*op.axis, *op.reduce_axis)}
    moving = tuple(number for number, factor in enumerate(factors) if axes & variables(factor))
    if extents is None or prod(extents) < _WORTH_A_LOOP or not 2 <= len(moving) <= _MOST_FACTORS:
        return ()
    users = {axis: {number for number in moving if axis.var in variables(factors[number])} for axis in op.reduce_axis}
    best: _Best = {(): (0, ())}
    for chosen in (some for count in range(1, len(moving) + 1) for some in combinations(moving, count)):
        found = _best_of(op, chosen, chosen == moving, best, users)
        if found is not None:
            best[chosen] = found
    operations, order = best[moving]
    return order if 2 * operations < prod(extents) else ()


def _best_of(op: ComputeOp, chosen: Factors, is_whole: bool, best: _Best, users: Mapping[IterVar, set[int]]) -> tuple[float, _Order] | None:
    """The operations and the order of a product of factors by those of its parts; None if it is too large to be stored."""

    def summed(factors: Factors) -> set[IterVar]:
        return {axis for axis, numbers in users.items() if numbers and numbers <= set(factors)}

    own = set(op.reduce_axis) if is_whole else summed(chosen)
    if len(chosen) == 1 and not own:
        return 0, ()
    size = prod(extents_of(op.axis if is_whole else contracted(op, chosen, "")[0].axis))
    if not is_whole and size > _largest(op):
        return None
    options = []
    for one, other in _halves(chosen):
        if one in best and other in best:
            steps = size * prod(extents_of([*(own - summed(one) - summed(other))]))
            options.append((best[one][0] + best[other][0] + steps, (*best[one][1], *best[other][1])))
    operations, order = min(options, default=(inf, ()))
    return (operations, order) if is_whole else (operations + _STORED * size, (*order, chosen))


def _largest(op: ComputeOp) -> int:
    """The elements of the largest of a definition's operands and its result."""
    shapes = [load.producer.shape for load in loads(op)]
    return max(prod(extents_of(op.axis)), max((prod(as_int(extent) or 0 for extent in shape) for shape in shapes), default=0))


def _halves(chosen: Factors) -> Iterator[tuple[Factors, Factors]]:
    """All ways to take a set apart, each once; a single factor is taken as it is."""
    if len(chosen) == 1:
        yield (), ()
    for count in range(1, len(chosen)):
        for one in combinations(chosen, count):
            if one[0] == chosen[0]:
                yield one, tuple(number for number in chosen if number not in one)
