"""Spaces and populations: candidates, moves, sampling."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from tensorexpr import te, tir
from tensorexpr.auto_scheduler.compute_dag import ComputeDAG
from tensorexpr.auto_scheduler.default import default_schedule
from tensorexpr.auto_scheduler.sketch.generate import generate_sketches
from tensorexpr.auto_scheduler.sketch.rule import RuleOptions
from tensorexpr.schedule.tilings import divisors, factorizations
from tensorexpr.target import Target
from tensorexpr.testing.check import assert_schedule_correct
from tensorexpr.tune.population import crossover, mutate, sample, unique_rows
from tensorexpr.tune.space import Sketch
from tests.programs import matmul_add


@pytest.fixture
def sketch() -> Sketch:
    """A tiled matrix multiplication."""
    dag = ComputeDAG(matmul_add(16, 24, 12))
    return next(s for s in generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(Target("llvm"))) if "MultiLevel" in s.name)


@pytest.mark.parametrize("extent", [1, 2, 7, 12, 64, 97])
def test_divisors(extent: int) -> None:
    assert divisors(extent) == tuple(d for d in range(1, extent + 1) if extent % d == 0)


@pytest.mark.parametrize(("extent", "parts", "limit"), [(12, 2, 64), (12, 3, 4), (7, 4, 64), (128, 2, 64), (1, 4, 64)])
def test_factorizations_are_all_and_only_those(extent: int, parts: int, limit: int) -> None:
    wanted = {f for f in product(range(1, extent + 1), repeat=parts) if prod(f) == extent and f[-1] <= limit}
    found = factorizations(extent, parts, limit)
    assert set(found) == wanted
    assert len(found) == len(wanted)


def test_what_has_no_iterations_is_searched_as_one() -> None:
    """A product over no terms was refused by the search, whose decisions had no candidates; so was one of no rows by rules for blocks."""
    assert factorizations(0, 3, 64) == ((0, 1, 1),)
    a, b, k = te.placeholder((6, 0), name="A"), te.placeholder((0, 7), name="B"), te.reduce_axis((0, 0), "k")
    dots = te.compute((6, 7), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    out = te.compute((6, 7), lambda i, j: dots[i, j] + 1.0)
    with np.errstate(all="raise"):
        s = default_schedule([a, b, out], "llvm")
    assert_schedule_correct(s, [a, b, out])
    sch = tir.Schedule(te.create_prim_func([a, b, dots]))
    *_, term = sch.get_loops(sch.get_block("C"))
    assert [int(sch.get(factor)) for factor in sch.sample_perfect_tile(term, 2)] == [0, 1]


def test_a_move_keeps_the_product_and_changes_two_levels(sketch: Sketch) -> None:
    decision = sketch.decisions[0]
    table, counts = decision.neighbours
    for own, (row, count) in enumerate(zip(table, counts, strict=True)):
        for other in row[:count]:
            before, after = decision.values[own], decision.values[other]
            assert prod(before.tolist()) == prod(after.tolist())
            assert (before != after).sum() == 2


def test_rows_choose_candidates_that_exist(sketch: Sketch) -> None:
    rng = np.random.default_rng(0)
    rows = sample(sketch, 200, rng)
    children = crossover(rows, mutate(sketch, rows, rng), rng)
    limits = np.array([decision.count for decision in sketch.decisions])
    for population in (rows, children):
        assert population.shape == (200, len(limits))
        assert (population >= 0).all()
        assert (population < limits).all()


def test_mutation_changes_one_decision(sketch: Sketch) -> None:
    rng = np.random.default_rng(1)
    rows = sample(sketch, 300, rng)
    changed = (mutate(sketch, rows, rng) != rows).sum(axis=1)
    assert changed.max() == 1
    assert changed.mean() > 0.9


def test_the_same_seed_draws_the_same_rows(sketch: Sketch) -> None:
    first, second = (sample(sketch, 50, np.random.default_rng(3)) for _ in range(2))
    assert (first == second).all()
    assert not (first == sample(sketch, 50, np.random.default_rng(4))).all()


def test_unique_rows_keep_their_order() -> None:
    rows = np.array([[2, 1], [1, 1], [2, 1], [0, 5]])
    assert unique_rows(rows).tolist() == [[2, 1], [1, 1], [0, 5]]


def test_a_trace_of_a_row_has_no_open_decision(sketch: Sketch) -> None:
    assert len(sketch.trace.open_decisions) == len(sketch.decisions)
    trace = sketch.trace_of(sample(sketch, 1, np.random.default_rng(0))[0])
    assert trace.open_decisions == ()
