"""TraceSpace: programs known by numbers, drawn and varied one by one, as a space of `tune`'s search loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tensorexpr import meta_schedule as ms
from tensorexpr.meta_schedule.cost_model.analytic import log_throughput
from tensorexpr.meta_schedule.search_strategy.population import Individual, Programs
from tensorexpr.meta_schedule.search_strategy.trace_space import TraceSpace
from tensorexpr.target import Target
from tensorexpr.tune.evolution import EvolutionOptions, evolve
from tensorexpr.tune.trial import TunerObserver
from tests.meta_schedule_programs import matmul, tiles

TARGET, RNG = Target("llvm"), np.random.default_rng(0)


@pytest.fixture(scope="module")
def programs() -> Programs:
    """Of a small product; without mutators a decision is drawn anew."""
    return Programs(ms.TuneContext(matmul(8), target=TARGET, rand_state=3))


@pytest.fixture(scope="module")
def drawn(programs: Programs) -> list[Individual]:
    """Four different programs of one design space, each with two tiles."""
    space = programs._base.copy()
    tiles(space)
    found: dict[int, Individual] = {}
    while len(found) < 4:
        made = programs.drawn(space)
        assert made is not None
        found.setdefault(made.program_hash, made)
    return list(found.values())


def space_of(programs: Programs, draws: Sequence[Individual | None], **options: Any) -> TraceSpace:
    """A space that draws these programs in turn, and then the last of them again and again."""
    left = list(draws)
    return TraceSpace(programs, lambda: left.pop(0) if len(left) > 1 else left[0], **{"max_draw_failures": 3, **options})


def test_programs_are_drawn_once_and_keep_their_numbers(programs: Programs, drawn: list[Individual]) -> None:
    a, b, c, d = drawn
    space = space_of(programs, [a, b, a, c, d])
    assert space.sample(3, RNG).tolist() == [[0], [1], [2]]
    assert [space.program(row) for row in ([0], [1], [2])] == [a, b, c]
    assert space.add(b) == 1 and space.add(programs.replayed(b.trace) or d) == 1
    assert space.preferred_row is None and space.size == math.inf


def test_where_each_draw_counts_the_same_program_has_several_numbers(programs: Programs, drawn: list[Individual]) -> None:
    space = space_of(programs, drawn[:1], distinct=False)
    assert space.drawn(3, RNG, TARGET).tolist() == [[0], [1], [2]]


def test_drawing_ends_after_vain_attempts(programs: Programs, drawn: list[Individual]) -> None:
    a, b, *_ = drawn
    assert space_of(programs, [None]).sample(4, RNG).shape == (0, 1)
    assert space_of(programs, [None, a, None, a, b]).sample(4, RNG).tolist() == [[0], [1]]
    assert space_of(programs, [a, b], known={a.key}).sample(4, RNG).tolist() == [[0]]


def test_time_that_is_up_leaves_the_least(programs: Programs, drawn: list[Individual]) -> None:
    space = space_of(programs, [*drawn[:2], *drawn], least=2)
    space.begin(0.0, 2)
    rows = space.sample(4, RNG)
    assert rows.tolist() == [[0], [1]] and space.mutate(rows, RNG).tolist() == rows.tolist()
    space.begin(None, 2)
    assert len(space.sample(4, RNG)) == 4


def test_a_variation_has_another_decision(programs: Programs, drawn: list[Individual]) -> None:
    space = space_of(programs, drawn)
    rows = space.sample(4, RNG)
    children = space.mutate(rows, RNG)
    assert children.shape == rows.shape and len(space.made) > len(drawn)
    for parent, child in zip(rows, children, strict=True):
        tiles_of = [list(space.program(row).trace.decisions.values()) for row in (parent, child)]
        assert sum(a != b for a, b in zip(*tiles_of, strict=True)) <= 1


def test_variations_that_fail_leave_programs_as_they_were(programs: Programs, drawn: list[Individual], monkeypatch: Any) -> None:
    space = space_of(programs, drawn, max_variation_failures=2)
    rows, asked = space.sample(4, RNG), list[Individual]()
    monkeypatch.setattr(programs, "varied", lambda parent: asked.append(parent))
    assert space.mutate(rows, RNG).tolist() == rows.tolist() and len(asked) == 2
    assert space.neighbours((0,))[0].shape == (0, 1)


def test_neighbours_are_programs_of_the_space(programs: Programs, drawn: list[Individual]) -> None:
    space = space_of(programs, drawn)
    (first, *_) = space.sample(1, RNG).tolist()
    rows, changed = space.neighbours(first)
    assert len(rows) == len({int(row[0]) for row in rows}) > 1 and changed.tolist() == [0] * len(rows)
    assert all(isinstance(space.program(row), Individual) for row in rows)


def test_the_search_loop_ranks_them_by_their_cycles(programs: Programs, drawn: list[Individual]) -> None:
    space = space_of(programs, drawn)
    found = evolve(
        [space],
        lambda number, rows: -np.log(space.features(rows, TARGET).cycles),
        {},
        8,
        EvolutionOptions(population=16, generations=1),
        RNG,
        TunerObserver(),
    )
    scores = [score for score, _ in found]
    assert len(found) > len(drawn) and scores == sorted(scores, reverse=True)
    best = space.program(found[0][1].row)
    assert scores[0] == pytest.approx(log_throughput(best.sch.mod, TARGET))
    seen = space.features(np.array([found[0][1].row]), TARGET)
    assert seen.features.shape == (1, 0) and seen.valid.all()
