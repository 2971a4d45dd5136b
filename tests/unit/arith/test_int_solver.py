"""Linear systems against enumeration: the solutions are all points and no others."""

from __future__ import annotations

import random
from itertools import product

import pytest

from tensorexpr import arith, te, tir
from tensorexpr.arith.smith import smith_normal_form
from tensorexpr.tir.expr import IntImm, Range
from tensorexpr.tir.rewriting import substitute

x, y, z = te.var("x"), te.var("y"), te.var("z")


@pytest.mark.parametrize("seed", range(40))
def test_smith_normal_form(seed: int) -> None:
    rng = random.Random(seed)
    rows, columns = rng.randint(1, 4), rng.randint(1, 4)
    matrix = [[rng.randint(-4, 4) for _ in range(columns)] for _ in range(rows)]
    form = smith_normal_form(matrix, columns)

    def times(a: list[list[int]], b: list[list[int]]) -> list[list[int]]:
        return [[sum(p * q for p, q in zip(row, column, strict=True)) for column in zip(*b, strict=True)] for row in a]

    diagonal = times(times(form.left, matrix), form.right)
    expected = [[form.diagonal[i] if i == j < len(form.diagonal) else 0 for j in range(columns)] for i in range(rows)]
    assert diagonal == expected
    assert times(form.right, form.right_inverse) == [[int(i == j) for j in range(columns)] for i in range(columns)]


def _value(expr: tir.PrimExpr, point: dict[tir.Var, int]) -> int:
    found = arith.Analyzer().simplify(substitute(expr, {var: IntImm("int32", value) for var, value in point.items()}))
    assert isinstance(found, IntImm)
    return found.value


@pytest.mark.parametrize("seed", range(12))
def test_equations_have_the_solutions_that_points_have(seed: int) -> None:
    rng = random.Random(seed)
    variables, dom = (x, y, z)[: rng.randint(1, 3)], range(-3, 4)
    relations = [tir.EQ(sum((v * rng.randint(-2, 2) for v in variables), IntImm("int32", 0)), IntImm("int32", rng.randint(-3, 3)))]
    found = arith.solve_linear_equations(relations, variables, {v: Range(-3, 4) for v in variables})
    solutions = {point for point in product(dom, repeat=len(variables)) if _value(relations[0], dict(zip(variables, point, strict=True)))}
    reached = set()
    doms = [found.dst.ranges[v] for v in found.dst.variables]
    spans = [range(_value(d.min, {}), _value(d.min, {}) + _value(d.extent, {})) for d in doms]
    for point in product(*spans):
        inner = dict(zip(found.dst.variables, point, strict=True))
        if all(_value(relation, inner) for relation in found.dst.relations):
            reached.add(tuple(_value(found.src_to_dst[v], inner) for v in variables))
    assert reached == solutions


def test_inequalities() -> None:
    ranges = {x: Range(-100, 100), y: Range(0, 10)}
    found = arith.solve_linear_inequalities([x + y <= 20, x - y >= 10], [x, y], ranges)
    assert isinstance(found, arith.IntConstraints)
    assert [str(found.ranges[y].min), str(found.ranges[y].extent)] == ["0", "6"]
    assert [str(found.ranges[x].min), str(found.ranges[x].extent)] == ["y + 10", "11"]
    moved = arith.solve_linear_inequalities([x + y <= 20, x - y >= 10], [x, y], ranges, deskew_range=True)
    assert isinstance(moved, arith.IntConstraintsTransform)
    assert [str(moved.dst.ranges[v].min) for v in moved.dst.variables] == ["0", "0"]


def test_contradictions() -> None:
    found = arith.solve_linear_inequalities([x <= 1, x >= 5], [x])
    assert isinstance(found, arith.IntConstraints)
    assert [str(relation) for relation in found.relations] == ["T.bool(False)"]
    odd = arith.solve_linear_equations([tir.EQ(x * 2, IntImm("int32", 3))], [x])
    assert [str(relation) for relation in odd.dst.relations] == ["T.bool(False)"]


def test_the_best_range_of_a_group() -> None:
    group = arith.IntGroupBounds(2, [3], [], [9])
    dom = group.find_best_range()
    assert dom is not None
    assert (str(dom.min), str(dom.extent)) == ("2", "3")
    assert arith.IntGroupBounds.from_range(Range(2, 6)).find_best_range() is not None
