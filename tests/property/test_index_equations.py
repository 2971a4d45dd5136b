"""Solved index equations against a search of all iterations."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr import te
from tensorexpr.arith.analyzer import Analyzer
from tensorexpr.te.evaluation import compile_program
from tensorexpr.te.index_equations import Equation, domain, solve
from tensorexpr.tir.arithmetic import const
from tensorexpr.tir.expr import IterVar, PrimExpr, Range, Var
from tests.effort import share_of

# An index is (coefficients, offset, divisor, remainder wanted): a sum of axes, perhaps divided.
Index = tuple[tuple[int, ...], int, int, bool]
AXES = 3
_TARGETS = range(-2, 14)

coefficients = st.tuples(*[st.sampled_from((0, 0, 1, 1, 2, 3, 4, 6, -1, -2))] * AXES)
indices = st.tuples(coefficients, st.integers(-2, 2), st.sampled_from((1, 1, 2, 3)), st.booleans())
domains = st.tuples(*[st.tuples(st.integers(-1, 1), st.integers(1, 4))] * AXES)


def expression(index: Index, axes: list[IterVar]) -> PrimExpr:
    factors, offset, divisor, remainder = index
    total: PrimExpr = const(offset, "int32")
    for factor, axis in zip(factors, axes, strict=True):
        total = total + axis.var * factor
    if divisor == 1:
        return total
    return te.floormod(total, divisor) if remainder else te.floordiv(total, divisor)


def value(expr: PrimExpr, env: dict[Var, int]) -> int:
    return int(compile_program([expr]).run({var: np.int32(number) for var, number in env.items()})[0])


@settings(deadline=None, derandomize=True, max_examples=share_of(100))
@given(st.lists(indices, min_size=1, max_size=2), domains, st.data())
@example([((1, 2, 0), 0, 1, False)], ((0, 2), (0, 4), (0, 1)), None)  # windows side by side
@example([((1, 2, 0), 0, 1, False)], ((0, 3), (0, 4), (0, 1)), None)  # overlapping ones
@example([((1, 3, 0), 0, 1, False)], ((0, 2), (0, 4), (0, 1)), None)  # with gaps between
@example([((1, 0, 0), 0, 3, False), ((1, 0, 0), 0, 3, True)], ((0, 4), (0, 1), (0, 1)), None)  # a reshape of 4 into 2 x 3
@example([((1, 0, 0), 0, 1, False), ((1, 0, 0), 0, 1, False)], ((0, 4), (0, 1), (0, 1)), None)  # a diagonal
@example([((4, 6, 0), 0, 1, False)], ((0, 3), (0, 3), (0, 1)), None)
def test_solutions_are_all_iterations_and_no_others(
    found: list[Index], bounds: tuple[tuple[int, int], ...], data: st.DataObject | None
) -> None:
    axes = [te.reduce_axis((low, low + extent), f"a{d}") for d, (low, extent) in enumerate(bounds)]
    targets = [Var(f"t{d}") for d in range(len(found))]
    expressions = [expression(index, axes) for index in found]
    equations: list[Equation] = [*zip(expressions, targets, strict=True)]
    solution = solve(equations, axes)
    points = [(1,) * len(found), (4,) * len(found), (0, 5)[: len(found)], (1, 2)[: len(found)]]
    if data is not None:
        points.append(data.draw(st.tuples(*[st.sampled_from(_TARGETS)] * len(found))))
    ranges = {target: Range.from_min_extent(const(-2, "int32"), const(16, "int32")) for target in targets}
    guard = solution.guard(Analyzer(ranges | {axis.var: domain(axis) for axis in solution.free}))
    for point in points:
        env = dict(zip(targets, point, strict=True))
        assert iterations(axes, [axis.var for axis in axes], env, expressions, point) == solved(
            solution.free, axes, env, guard, solution.values
        )


def every(axes: list[IterVar], bounds_of: dict[Var, range]) -> list[dict[Var, int]]:
    return [dict(zip((a.var for a in axes), point, strict=True)) for point in product(*(bounds_of[a.var] for a in axes))]


def span(axis: IterVar) -> range:
    low, extent = value(domain(axis).min, {}), value(domain(axis).extent, {})
    return range(low, low + extent)


def iterations(
    axes: list[IterVar], order: list[Var], env: dict[Var, int], expressions: list[PrimExpr], point: tuple[int, ...]
) -> list[tuple[int, ...]]:
    spans = {axis.var: span(axis) for axis in axes}
    hits = [at for at in every(axes, spans) if all(value(e, env | at) == t for e, t in zip(expressions, point, strict=True))]
    return sorted(tuple(at[var] for var in order) for at in hits)


def solved(free: tuple[IterVar, ...], axes: list[IterVar], env: dict[Var, int], guard: PrimExpr, values: object) -> list[tuple[int, ...]]:
    assert isinstance(values, dict)
    spans = {axis.var: span(axis) for axis in free}
    hits = [at for at in every(list(free), spans) if value(guard, env | at)]
    return sorted(tuple(at[a.var] if a.var in at else value(values[a.var], env | at) for a in axes) for at in hits)
