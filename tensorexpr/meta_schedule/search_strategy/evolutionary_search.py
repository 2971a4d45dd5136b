"""`EvolutionarySearch`: the programs that a cost model takes to be fast, varied generation by generation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...dataclass import dataclass, field
from ...errors import TuningError
from ...schedule.blocks import Schedule
from ...tune.evolution import EvolutionOptions
from ..arg_info import ArgInfo
from ..cost_model.cost_model import CostModel
from ..database.database import Database
from ..runner.runner import RunnerResult
from ..tune_context import MeasureCandidate, TuneContext
from .population import Programs, trace_key
from .search_strategy import Budget, PopulationSpace, PySearchStrategy, task_of
from .trace_space import TraceSpace
from .tuned import ModelOfPrograms, Traces, asked_tuner

_MAX_EMPTY_ROUNDS = 5
# Where spaces of both kinds are there, the kind with the faster best program gets this share of a round.
_LEADING_SHARE = 0.75


@dataclass(eq=False)
class _Search:
    """What a search under way knows.

    Args:
        traces: the programs of schedules with open decisions, if there are any.
        populations: the spaces that explore themselves.
        seen: what proposed programs of populations are known by.
        proposed: spaces and rows of the programs of the round, by the identity of their schedules.
        best: seconds of the best program, of those that come from traces (False) and from populations (True).
        empty_rounds: the last rounds, if nothing new was found in them.
    """

    traces: Traces | None
    populations: Sequence[PopulationSpace]
    budget: Budget
    args_info: Sequence[ArgInfo]
    seen: set[str]
    proposed: dict[int, tuple[PopulationSpace, Any]] = field(default_factory=dict)
    best: dict[bool, float] = field(default_factory=lambda: {False: math.inf, True: math.inf})
    empty_rounds: int = 0

    def population_share(self) -> float:
        """The share of a round that comes from spaces that explore themselves."""
        # Of one kind alone there is nothing to share.
        if self.traces is None or not self.populations:
            return 1.0 if self.populations else 0.0
        traces, evolved = self.best[False], self.best[True]
        # infinite both, before any program ran
        if traces == evolved:
            return 0.5
        return _LEADING_SHARE if evolved < traces else 1 - _LEADING_SHARE

    def round(self, wanted: int) -> list[Schedule]:
        """New programs, at most so many."""
        self.proposed = {}
        share = self.population_share()
        found: list[Schedule] = []
        spaces = self.populations
        asked = round(wanted * share)
        for place, space in enumerate(spaces):
            # 8 programs of 3 spaces: 3, 3 and 2
            found += self._from(space, asked // len(spaces) + (place < asked % len(spaces)))
        if self.traces is not None:
            # The time limit of a round is shared as its programs are.
            self.traces.share = 1.0 - share
            # traces take what the others left of the round, too
            found += self._from(self.traces, wanted - len(found))
        return found

    def _from(self, space: PopulationSpace, wanted: int) -> list[Schedule]:
        """New programs of a space: what it takes to be fast, and where that is too little, random ones."""
        rows = [*space.evolve(wanted)] if wanted else []
        rows += [*space.sample(wanted - len(rows))] if len(rows) < wanted else []
        found = []
        for row in rows:
            # A row may make no program, where a decision breaks what a postprocessor asks for; and two rows may make the same one.
            sch = space.to_schedule(row)
            if sch is None or sch.trace is None or (key := trace_key(sch.trace)) in self.seen:
                continue
            self.seen.add(key)
            self.proposed[id(sch)] = space, row
            found.append(sch)
        return found

    def learn(self, candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]) -> None:
        """Hear how the programs of the round did, and tell the spaces that they came from."""
        told: dict[int, tuple[PopulationSpace, list[Any], list[float]]] = {}
        for candidate, result in zip(candidates, results, strict=True):
            # by identity: the candidates of the round keep their schedules alive, so no `id` is used again
            if id(candidate.sch) in self.proposed:
                space, row = self.proposed[id(candidate.sch)]
                evolved = space is not self.traces
                self.best[evolved] = min(self.best[evolved], result.median)
                _, rows, costs = told.setdefault(id(space), (space, [], []))
                rows.append(row)
                costs.append(result.median)
        for space, rows, costs in told.values():
            space.learn(rows, costs)


class EvolutionarySearch(PySearchStrategy, kind="evolutionary"):
    """Evolves populations of programs and proposes those that the cost model takes to be the fastest.

    Args:
        population_size: programs of a generation.
        init_measured_ratio: the share of them that are the best of those measured so far.
        init_min_unmeasured: the least number of new ones.
        max_fail_count: draws in a row that may make no program before drawing ends.
        genetic_num_iters: generations.
        genetic_mutate_prob: with which a program of a generation is a varied one of the generation before.
        genetic_max_fail_count: a tenth of the vain attempts after which varying the programs of a generation ends.
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
        self._search: _Search | None = None

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
        for space in design_spaces:
            if not isinstance(space, (Schedule, PopulationSpace)):
                raise TuningError(f"a design space is a schedule or a PopulationSpace, not a {type(space).__name__}")
        if not design_spaces:
            raise TuningError(f"the program of task {context.task_name!r} has no design space")
        workload = database.commit_workload(mod)
        seen = {trace_key(record.trace) for record in database.get_all_tuning_records() if record.workload is workload}
        model = ModelOfPrograms(cost_model, context, ArgInfo.from_entry_func(mod))
        schedules = [space for space in design_spaces if isinstance(space, Schedule)]
        recalled = int(self.population_size * self.init_measured_ratio)
        self._search = _Search(
            traces=self._traces(context, schedules, model, seen, num_trials_per_iter) if schedules else None,
            populations=[space for space in design_spaces if not isinstance(space, Schedule)],
            budget=Budget(max_trials, num_trials_per_iter),
            args_info=model.args_info,
            # a copy: what traces may not propose again is what was measured before, not what this search proposes
            seen=set(seen),
        )
        if self._search.traces is not None:
            self._search.traces.records = lambda: database.get_top_k(workload, recalled)

    def _traces(self, context: TuneContext, spaces: Sequence[Schedule], model: ModelOfPrograms, known: set[str], per_round: int) -> Traces:
        """The programs of design spaces, with the options of this search."""
        options = EvolutionOptions(
            population=self.population_size,
            generations=self.genetic_num_iters,
            mutation_prob=self.genetic_mutate_prob,
            crossover_prob=0.0,  # decisions of one trace may be out of reach for another's loops
            seeds=int(self.population_size * self.init_measured_ratio),
        )
        programs = Programs(context)
        space = TraceSpace(
            programs,
            lambda: programs.drawn_of(spaces),
            max_draw_failures=self.max_fail_count * len(spaces) + 20,
            max_variation_failures=self.genetic_max_fail_count * 10,
            least=max(self.init_min_unmeasured, per_round),
            known=known,
        )
        seed = context.rand_state
        tuner = asked_tuner([space], context.target, seed, program_model=model, eps_greedy=self.eps_greedy, evolution=options)
        return Traces(tuner, space, model, options, self.time_limit_sec)

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
        found = search.round(wanted)
        search.empty_rounds = 0 if found else search.empty_rounds + 1
        never = not search.seen  # no decisions make a program that passes: another round would fare no better
        if never and search.traces is not None:
            search.traces.space.programs.warn()
        if not found and (never or search.empty_rounds >= _MAX_EMPTY_ROUNDS):
            return None
        search.budget.spend(len(found))
        return [MeasureCandidate(sch, search.args_info) for sch in found]

    def notify_runner_results(self, measure_candidates: list[MeasureCandidate], results: list[RunnerResult]) -> None:
        """Hear how the last programs did."""
        if self._search is not None:
            self._search.learn(measure_candidates, results)

    def clone(self) -> EvolutionarySearch:
        """A strategy like this one, without a search."""
        options = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return type(self)(**options)
