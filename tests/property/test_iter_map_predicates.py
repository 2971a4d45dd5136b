"""Maps under predicates: what is detected holds for each point that the predicate leaves."""

from __future__ import annotations

from itertools import product

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorexpr.arith.iter_map import detect_iter_map, inverse_affine_iter_map
from tensorexpr.tir.arithmetic import all as all_of
from tensorexpr.tir.arithmetic import as_int, const
from tensorexpr.tir.expr import PrimExpr, Range, Var
from tensorexpr.tir.rewriting import substitute
from tests.effort import share_of

i, j = Var("i"), Var("j")
INDICES = (
    lambda w: [i, j],
    lambda w: [j, i],
    lambda w: [i * w + j],
    lambda w: [i // w, i % w, j],
    lambda w: [(i * w + j) // 2, (i * w + j) % 2],
    lambda w: [i + 3, j * 2],
)
PREDICATES = (
    lambda c, w: i < c,
    lambda c, w: j <= c,
    lambda c, w: i > c,
    lambda c, w: j >= c,
    lambda c, w: i * 2 < c,
    lambda c, w: i * w + j < c,
)


@given(
    extents=st.tuples(st.integers(1, 7), st.integers(1, 5)),
    form=st.integers(0, len(INDICES) - 1),
    conditions=st.lists(st.tuples(st.integers(0, len(PREDICATES) - 1), st.integers(0, 14)), min_size=1, max_size=2),
    low=st.integers(0, 3),
    divisor=st.integers(1, 4),
)
@example(extents=(7, 1), form=0, conditions=[(0, 5)], low=0, divisor=1)
@example(extents=(2, 2), form=4, conditions=[(5, 0)], low=0, divisor=2)
@example(extents=(4, 3), form=2, conditions=[(0, 3), (5, 7)], low=0, divisor=3)
@settings(deadline=None, derandomize=True, max_examples=share_of(300))
def test_detected_maps_are_one_to_one_where_the_predicate_holds(
    extents: tuple[int, int], form: int, conditions: list[tuple[int, int]], low: int, divisor: int
) -> None:
    iters = {i: Range.from_min_extent(low, extents[0]), j: Range.from_min_extent(0, extents[1])}
    indices = INDICES[form](divisor)
    holds = [PREDICATES[kind](bound, divisor) for kind, bound in conditions]
    predicate: PrimExpr = holds[0]
    for other in holds[1:]:
        predicate = all_of(predicate, other)
    found = detect_iter_map(indices, iters, predicate)
    if not found.indices:
        return
    outputs = [Var(f"o{n}") for n in range(len(indices))]
    inverse = inverse_affine_iter_map(found, outputs)
    seen = set()
    for x, y in product(range(low, low + extents[0]), range(extents[1])):
        point: dict[Var, PrimExpr] = {i: _const(x), j: _const(y)}
        if not all(as_int(substitute(one, point)) for one in holds):
            continue
        values = tuple(as_int(substitute(index, point)) for index in indices)
        assert values not in seen
        seen.add(values)
        given_outputs: dict[Var, PrimExpr] = {out: _const(value or 0) for out, value in zip(outputs, values, strict=True)}
        assert (as_int(substitute(inverse[i], given_outputs)), as_int(substitute(inverse[j], given_outputs))) == (x, y)


def _const(value: int) -> PrimExpr:
    return const(value, "int32")
