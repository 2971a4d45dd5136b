"""Search strategies propose different programs, as many as asked, and learn from results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tensorexpr import meta_schedule as ms
from tensorexpr import tir
from tensorexpr.errors import TuningError
from tensorexpr.meta_schedule.cost_model import PyCostModel, RandomModel
from tensorexpr.meta_schedule.database import MemoryDatabase, TuningRecord
from tensorexpr.meta_schedule.mutator import PyMutator, mutated
from tensorexpr.meta_schedule.postproc import PyPostproc
from tensorexpr.meta_schedule.runner import RunnerResult
from tensorexpr.meta_schedule.search_strategy import EvolutionarySearch, MeasureCandidate, ReplayFunc, ReplayTrace
from tensorexpr.meta_schedule.space_generator import PySpaceGenerator, ScheduleFn, SpaceGeneratorUnion
from tensorexpr.schedule.blocks import Trace
from tests.meta_schedule_programs import matmul, tiles


def keys(candidates: Sequence[MeasureCandidate] | None) -> list[str]:
    return [str(candidate.sch.trace) for candidate in candidates or ()]


def context(strategy: Any, space: Any = tiles, seed: int = 7) -> ms.TuneContext:
    return ms.TuneContext(matmul(), target="llvm", space_generator=space, search_strategy=strategy, rand_state=seed)


class Wide(PyCostModel):
    """Prefers wide vectors."""

    asked = 0

    def predict(self, context: ms.TuneContext, candidates: Sequence[MeasureCandidate]) -> Any:
        self.asked += len(candidates)
        return np.array([width(candidate) for candidate in candidates], float)

    def update(self, *args: Any) -> None:
        """Learn nothing."""


def width(candidate: MeasureCandidate) -> int:
    loops = [node.extent for node in _loops(candidate.sch) if node.kind == tir.ForKind.VECTORIZED]
    return int(loops[0])


def _loops(sch: tir.Schedule) -> list[Any]:
    found: list[Any] = []
    tir.stmt_functor.post_order_visit(sch.mod["main"].body, lambda node: found.append(node) if isinstance(node, tir.For) else None)
    return found


@pytest.mark.parametrize("kind", ["replay-trace", "replay-func", "evolutionary"])
def test_a_seed_gives_the_same_programs_and_trials_end(kind: str) -> None:
    runs = []
    for _ in range(2):
        ctx = context(kind)
        ctx.pre_tuning(5, 3)
        rounds = []
        while candidates := ctx.generate_measure_candidates():
            ctx.notify_runner_results(candidates, [RunnerResult([1.0])] * len(candidates))
            rounds.append(keys(candidates))
        ctx.post_tuning()
        runs.append(rounds)
    assert runs[0] == runs[1] and [len(part) for part in runs[0]] == [3, 2]
    assert all("enter_postproc" in key for part in runs[0] for key in part)


def test_replaying_a_function_lets_it_look_at_what_it_drew() -> None:
    def looks(sch: tir.Schedule) -> None:
        i, *_ = sch.get_loops(sch.get_block("C", "main"))
        if sch.get(sch.sample_categorical([0, 1], [0.5, 0.5])):
            sch.parallel(i)

    ctx = context(ReplayFunc(), looks)
    ctx.pre_tuning(30, 30)
    made = keys(ctx.generate_measure_candidates())
    assert {"sch.parallel" in key for key in made} == {True, False}


def test_evolution_proposes_each_program_once_and_follows_the_model() -> None:
    few = {"population_size": 24, "init_min_unmeasured": 8, "genetic_num_iters": 2, "genetic_max_fail_count": 1}
    options = {**few, "eps_greedy": 0.0, "time_limit_sec": None}
    ctx, model = context(EvolutionarySearch(**options)), Wide()  # type: ignore[arg-type]
    ctx.pre_tuning(24, 8, cost_model=model)
    seen: list[str] = []
    first: list[int] = []
    while candidates := ctx.generate_measure_candidates():
        first = first or [width(candidate) for candidate in candidates]
        seen += keys(candidates)
    assert len(seen) == len(set(seen)) == 24
    assert min(first) >= 8 and model.asked > 24  # 36 programs are there, of which 12 have vectors of 8 or 16


def test_what_was_measured_before_is_not_proposed_again() -> None:
    database, ctx = MemoryDatabase(), context("evolutionary")
    ctx.pre_tuning(6, 6, database=database, cost_model=RandomModel(seed=1))
    assert ctx.mod is not None
    workload, before = database.commit_workload(ctx.mod), ctx.generate_measure_candidates() or []
    for candidate in before:
        assert candidate.sch.trace is not None
        database.commit_tuning_record(TuningRecord(candidate.sch.trace, workload, [1.0]))
    again = context("evolutionary")
    again.pre_tuning(6, 6, database=database, cost_model=RandomModel(seed=1))
    assert not set(keys(before)) & set(keys(again.generate_measure_candidates()))


class Rows:
    """A design space of four rows that explores itself."""

    def __init__(self) -> None:
        self.left, self.learned = [1, 2, 4, 8], dict[int, float]()

    def sample(self, n: int) -> list[int]:
        return self.evolve(n)

    def evolve(self, n: int) -> list[int]:
        made, self.left = self.left[:n], self.left[n:]
        return made

    def to_schedule(self, row: int) -> tir.Schedule | None:
        sch = tir.Schedule(matmul())
        i, *_ = sch.get_loops(sch.get_block("C", "main"))
        sch.split(i, [None, row])
        return None if row == 2 else sch

    def learn(self, rows: Sequence[int], costs: Sequence[float]) -> None:
        self.learned.update(zip(rows, costs, strict=True))


class Both(PySpaceGenerator):
    """The tiles, and a space that explores itself."""

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self.rows = rows

    def generate_design_space(self, mod: tir.IRModule) -> list[Any]:
        sch = tir.Schedule(mod)
        tiles(sch)
        return [sch, self.rows]


def test_spaces_that_explore_themselves_take_part_and_learn() -> None:
    rows = Rows()
    ctx = context("evolutionary", Both(rows))
    ctx.pre_tuning(12, 6, cost_model=RandomModel(seed=1))
    while candidates := ctx.generate_measure_candidates():
        assert len(candidates) == 6
        seconds = [1e-3 if "reorder" not in key else 1.0 for key in keys(candidates)]
        ctx.notify_runner_results(candidates, [RunnerResult([s]) for s in seconds])
    assert rows.learned == {1: 1e-3, 4: 1e-3, 8: 1e-3}


def test_rounds_without_anything_new_are_empty_until_the_search_gives_up() -> None:
    ctx = context("evolutionary", ms.space_generator.ScheduleFn(lambda sch: None, [], [], {}))  # one program, without a decision
    ctx.pre_tuning(100, 10)
    rounds = []
    while (candidates := ctx.generate_measure_candidates()) is not None:
        rounds.append(len(candidates))
    assert rounds == [1, 0, 0, 0, 0]


class Rejects(PyPostproc):
    """Says no to narrow vectors."""

    def apply(self, sch: tir.Schedule) -> bool:
        return width(MeasureCandidate(sch, ())) >= 4


def test_postprocessors_may_reject_programs() -> None:
    ctx = context(ReplayTrace(), ScheduleFn(tiles, postprocs=[Rejects()]))
    ctx.pre_tuning(10, 10)
    found = ctx.generate_measure_candidates() or []
    assert len(found) == 10 and min(map(width, found)) >= 4


class Widen(PyMutator):
    """Makes vectors of 16; a mutator without the argument of a seed."""

    applied = 0

    def apply(self, trace: Trace) -> Trace | None:  # type: ignore[override]
        Widen.applied += 1
        last = [inst for inst in trace.insts if inst.primitive.is_sampling][-1]
        return trace.with_decision(last, [2, 16], remove_postproc=True)


def test_mutators_of_users_are_called() -> None:
    mutator = Widen()
    space = ScheduleFn(tiles, mutator_probs={mutator: 1.0})
    ctx = context(
        EvolutionarySearch(population_size=16, genetic_mutate_prob=1.0, genetic_max_fail_count=1, eps_greedy=0.0, time_limit_sec=None),
        space,
    )
    ctx.pre_tuning(4, 4, cost_model=Wide())
    assert {width(candidate) for candidate in ctx.generate_measure_candidates() or ()} == {16} and Widen.applied > 0
    trace = tir.Schedule(matmul()).trace
    assert trace is not None
    assert mutated(type("Seeded", (PyMutator,), {"apply": lambda self, t, seed: seed})(), trace, 5) == 5  # type: ignore[comparison-overlap]


def test_a_union_has_the_spaces_of_all() -> None:
    def other(sch: tir.Schedule) -> list[tir.Schedule]:
        return [sch, sch.copy()]

    union = SpaceGeneratorUnion([ScheduleFn(tiles), ScheduleFn(other)])
    assert len(context("replay-trace", union).generate_design_space()) == 3
    assert len(context("replay-trace", union.clone()).generate_design_space()) == 3


def test_a_clone_knows_nothing_of_a_search() -> None:
    ctx = context(EvolutionarySearch(population_size=9))
    ctx.pre_tuning(4, 4)
    clone = ctx.clone()
    assert isinstance(clone.search_strategy, EvolutionarySearch) and clone.search_strategy.population_size == 9
    with pytest.raises(TuningError, match="call pre_tuning first"):
        clone.generate_measure_candidates()


def test_the_defaults_are_those_of_the_paper() -> None:
    search = EvolutionarySearch()
    assert (search.population_size, search.init_measured_ratio, search.init_min_unmeasured, search.max_fail_count) == (512, 0.2, 50, 5)
    assert (search.genetic_num_iters, search.genetic_mutate_prob, search.genetic_max_fail_count, search.eps_greedy) == (4, 0.85, 10, 0.05)
    assert ReplayTrace().max_fail_count == 100


@pytest.mark.parametrize("kind", ["replay-trace", "evolutionary"])
def test_a_search_without_a_design_space_is_refused(kind: str) -> None:
    ctx = context(kind)
    with pytest.raises(TuningError, match="has no design space"):
        ctx.pre_tuning(4, 4, design_spaces=[])


def test_a_model_that_gives_other_numbers_than_asked_for_is_refused() -> None:
    class Odd(PyCostModel):
        def predict(self, context: ms.TuneContext, candidates: Sequence[MeasureCandidate]) -> Any:
            return np.zeros(len(candidates) + 1)

    ctx = context("evolutionary")
    ctx.pre_tuning(4, 4, cost_model=Odd())
    with pytest.raises(TuningError, match="one each is needed"):
        ctx.generate_measure_candidates()
