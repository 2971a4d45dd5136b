"""`EvolutionarySearch`: the programs that a cost model takes to be fast, varied generation by generation."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ...errors import TuningError
from ...schedule.blocks import Schedule
from ..arg_info import ArgInfo
from .population import Individual, Programs, trace_key
from .population_space import PopulationSpace
from .search_state import Budget, Search, task_of
from .search_strategy import MeasureCandidate, PySearchStrategy

if TYPE_CHECKING:
    from ..cost_model.cost_model import CostModel
    from ..database.database import Database
    from ..runner.runner import RunnerResult
    from ..tune_context import TuneContext

_MAX_EMPTY_ROUNDS = 5


class EvolutionarySearch(PySearchStrategy, kind="evolutionary"):
    """Evolves populations of programs and proposes those that the cost model takes to be the fastest.

    Args:
        population_size: programs of a generation.
        init_measured_ratio: the share of them that are the best of those measured so far.
        init_min_unmeasured: the least number of new ones.
        max_fail_count: draws in a row that may make no program before drawing ends.
        genetic_num_iters: generations.
        genetic_mutate_prob: with which a program of a generation is a varied one of the generation before.
        genetic_max_fail_count: how often varying a program is tried.
        eps_greedy: the share of a round that is proposed at random.
        time_limit_sec: of the search for one round's programs, of which traces get the share that they have of the round; None
            for none. A generation in Python that is cut short costs less than the measuring time that it would take.
    """

    def __init__(
        self,
        *,
        population_size: int = 512,
        init_measured_ratio: float = 0.2,
        init_min_unmeasured: int = 50,
        max_fail_count: int = 5,
        genetic_num_iters: int = 4,
        genetic_mutate_prob: float = 0.85,
        genetic_max_fail_count: int = 10,
        eps_greedy: float = 0.05,
        time_limit_sec: float | None = 2.5,
    ) -> None:
        self.population_size = population_size
        self.init_measured_ratio = init_measured_ratio
        self.init_min_unmeasured = init_min_unmeasured
        self.max_fail_count = max_fail_count
        self.genetic_num_iters = genetic_num_iters
        self.genetic_mutate_prob = genetic_mutate_prob
        self.genetic_max_fail_count = genetic_max_fail_count
        self.eps_greedy = eps_greedy
        self.time_limit_sec = time_limit_sec
        self._context: TuneContext | None = None
        self._search: Search | None = None

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task."""
        self._context = context

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int,
        design_spaces: Sequence[Schedule | PopulationSpace],
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Begin a search.

        Raises:
            TuningError: without a task, a design space, a database or a cost model.
        """
        context, mod = task_of(self._context)
        if database is None or cost_model is None:
            raise TuningError("an evolutionary search needs a database and a cost model; pass both to pre_tuning")
        populations: list[PopulationSpace] = []
        for space in design_spaces:
            if isinstance(space, PopulationSpace):
                populations.append(space)
            elif not isinstance(space, Schedule):
                raise TuningError(f"a design space is a schedule or a PopulationSpace, not a {type(space).__name__}")
        if not design_spaces:
            raise TuningError(f"the program of task {context.task_name!r} has no design space")
        workload = database.commit_workload(mod)
        self._search = Search(
            context=context,
            programs=Programs(context),
            spaces=[space for space in design_spaces if isinstance(space, Schedule)],
            populations=populations,
            database=database,
            workload=workload,
            model=cost_model,
            budget=Budget(max_trials, num_trials_per_iter),
            args_info=ArgInfo.from_entry_func(mod),
            seen={trace_key(record.trace) for record in database.get_all_tuning_records() if record.workload is workload},
        )

    def post_tuning(self) -> None:
        """End a search."""
        self._search = None

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next programs, which are none if nothing new was found; None if the search is over, as after several such rounds in a row.

        Raises:
            TuningError: if no search was begun.
        """
        search = self._search
        if search is None:
            raise TuningError("this search has not begun; call pre_tuning first")
        wanted = search.budget.next_round
        if not wanted:
            return None
        found = self._round(search, wanted)
        search.empty_rounds = 0 if found else search.empty_rounds + 1
        never = not search.seen  # no decisions make a program that passes: another round would fare no better
        if not found and (never or search.empty_rounds >= _MAX_EMPTY_ROUNDS):
            return None
        search.budget.spend(len(found))
        search.proposed = {id(individual.sch): individual for individual in found}
        return [MeasureCandidate(individual.sch, search.args_info) for individual in found]

    def notify_runner_results(self, measure_candidates: list[MeasureCandidate], results: list[RunnerResult]) -> None:
        """Hear how the last programs did."""
        search = self._search
        if search is not None:
            search.learn(measure_candidates, results)

    def clone(self) -> EvolutionarySearch:
        """A strategy like this one, without a search."""
        options = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return type(self)(**options)

    def _round(self, search: Search, wanted: int) -> list[Individual]:
        """New programs, at most so many."""
        share = search.population_share() if search.populations else 0.0
        found = list(self._from_populations(search, round(wanted * share)))
        if search.spaces:
            found += self._from_traces(search, wanted - len(found), 1.0 - share)
        elif len(found) < wanted:
            found += self._from_populations(search, wanted - len(found))
        return found

    def _from_populations(self, search: Search, wanted: int) -> Iterable[Individual]:
        """Programs of the spaces that explore themselves."""
        spaces = search.populations
        for place, space in enumerate(spaces):
            count = wanted // len(spaces) + (place < wanted % len(spaces))
            rows = [*space.evolve(count)] if count else []
            rows += [*space.sample(count - len(rows))] if len(rows) < count else []
            for row in rows:
                sch = space.to_schedule(row)
                if sch is not None and search.is_new(individual := Individual(sch, (space, row))):
                    yield individual

    def _from_traces(self, search: Search, wanted: int, share: float) -> list[Individual]:
        """Programs of traces, found within their share of the time."""
        deadline = math.inf if self.time_limit_sec is None else time.monotonic() + share * self.time_limit_sec
        learned = search.model.is_trained
        measured = self._best_measured(search) if learned else []
        least = max(self.init_min_unmeasured, wanted)
        fresh = self._drawn(search, max(least, self.population_size - len(measured)) if learned else least, deadline, least)
        best = self._evolved(search, measured + fresh, deadline) if learned and self.genetic_num_iters else fresh
        return self._picked(search, best, fresh, wanted)

    def _best_measured(self, search: Search) -> list[Individual]:
        count = int(self.population_size * self.init_measured_ratio)
        made = (search.programs.replayed(record.trace) for record in search.database.get_top_k(search.workload, count))
        return [individual for individual in made if individual is not None]

    def _drawn(self, search: Search, count: int, deadline: float, least: int) -> list[Individual]:
        """Different programs at random: up to `count` within a third of the time, `least` in any case, as far as there are so many."""
        now = time.monotonic()
        soon = now + (deadline - now) / 3 if math.isfinite(deadline) else deadline
        found: dict[str, Individual] = {}
        failed = 0
        limit = self.max_fail_count * max(1, len(search.spaces)) + 20
        while len(found) < count and failed < limit and (len(found) < least or time.monotonic() < soon):
            made = search.programs.drawn(search.programs.rng.choice(search.spaces))
            if made is None or made.key in found or made.key in search.seen:
                failed += 1
                continue
            failed = 0
            found[made.key] = made
        return list(found.values())

    def _evolved(self, search: Search, population: list[Individual], deadline: float) -> list[Individual]:
        """All different programs that generations went through, the most promising first."""
        everyone: dict[str, Individual] = {}
        search.scores = {}
        for generation in range(self.genetic_num_iters + 1):
            before = len(everyone)
            population = [everyone.setdefault(individual.key, individual) for individual in population]
            self._score(search, list(everyone.values())[before:])
            now = time.monotonic()
            if generation == self.genetic_num_iters or now >= deadline or not population:
                break
            left = self.genetic_num_iters - generation
            population = self._next_generation(search, population, now + (deadline - now) / left)
        return sorted(everyone.values(), key=lambda individual: -search.scores[individual])

    def _score(self, search: Search, individuals: list[Individual]) -> None:
        if not individuals:
            return
        candidates = [MeasureCandidate(individual.sch, search.args_info) for individual in individuals]
        scores = np.asarray(search.model.predict(search.context, candidates), np.float64)
        if scores.shape != (len(individuals),):
            raise TuningError(f"the cost model gave {scores.shape} scores for {len(individuals)} programs; one each is needed")
        known = np.nan_to_num(scores, nan=-1e30, posinf=1e30, neginf=-1e30)
        search.scores.update(zip(individuals, known.tolist(), strict=True))

    def _next_generation(self, search: Search, population: list[Individual], deadline: float) -> list[Individual]:
        """As many programs again, mostly varied ones, of parents that are the likelier the better they are."""
        rng, known = search.programs.rng, {individual.key for individual in population}
        weights = [max(search.scores[individual], 0.0) for individual in population]
        if not any(weights):
            weights = [1.0] * len(population)
        children: list[Individual] = []
        failed = 0
        while len(children) < self.population_size and failed < self.genetic_max_fail_count * 10 and time.monotonic() < deadline:
            parent = rng.choices(population, weights)[0]
            child = search.programs.varied(parent) if rng.random() < self.genetic_mutate_prob else parent
            if child is None or (child is not parent and child.key in known):
                failed += 1
                continue
            known.add(child.key)
            children.append(child)
        return children

    def _picked(self, search: Search, best: list[Individual], fresh: list[Individual], wanted: int) -> list[Individual]:
        """The most promising new programs, and a few at random."""
        at_random = round(wanted * self.eps_greedy) if best is not fresh else 0
        found: list[Individual] = []
        for individual in best:
            if len(found) >= wanted - at_random:
                break
            if search.is_new(individual):
                found.append(individual)
        others = list(fresh)
        search.programs.rng.shuffle(others)
        for individual in [*others, *best]:
            if len(found) >= wanted:
                break
            if search.is_new(individual):
                found.append(individual)
        return found
