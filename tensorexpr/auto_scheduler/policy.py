"""SketchPolicy: Ansor's search on the one schedule core. It makes sketches, sets up the tuner and runs it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import TuningError, WorkloadError
from ..schedule.trace import Trace
from ..spaces.gpu import is_gpu
from ..te.extern import ExternOp
from ..tune.cost_model import CostModel, PriorModel, default_model
from ..tune.evolution import Candidate, EvolutionOptions, evolve, preferred
from ..tune.learning import Learner, ProgramModel
from ..tune.measure import Measurer, MeasureResult, Workers
from ..tune.planned import without_knobs
from ..tune.population import unique_rows
from ..tune.space import Sketch, Space
from ..tune.tuner import Trial, Tuner, TunerObserver, TunerOptions
from .console import Console
from .cost_model import PythonBasedModel, RandomModel, UserModel, XGBModel
from .custom_rule import PreloadCustomSketchRule
from .loop_state import State
from .measure_input import MeasureInput
from .options import TuningOptions
from .preload import CandidateIndex, Preloaded, PreloadMeasuredStates, fastest_candidates, recall
from .session import SearchSession
from .sketch.generate import generate_sketches
from .sketch.plans import unit_spaces
from .sketch.rule import RuleOptions
from .task import Task

if TYPE_CHECKING:
    from .measure import ProgramMeasurer

DEFAULT_PARAMS: Mapping[str, float | int | str] = {
    "eps_greedy": 0.05,
    "evolutionary_search_population": 2048,
    "evolutionary_search_num_iters": 4,
    "evolutionary_search_mutation_prob": 0.85,
    "cpu_multi_level_tiling_structure": "SSRSRS",
    "gpu_multi_level_tiling_structure": "SSSRRSRS",
    "max_innermost_split_factor": 64,
    "max_vectorize_size": 16,
    "disable_change_compute_location": 0,
    "retry_search_one_round_on_empty": 1,
    "sample_init_min_population": 50,
    "sample_init_use_measured_ratio": 0.2,
    "rules": "all",
    "descent_share": 0.2,
    "measure_unscheduled": 1,
}
# Fewer programs than this give evolution no parents to choose from, however slow a user's model is.
_LEAST_POPULATION = 128
# Sketch rules: all there are, or Ansor's only.
_RULES = ("all", "ansor")


class SketchPolicy:
    """Search one task.

    Args:
        task: what to search.
        program_cost_model: predicts throughput; by default a boosted model that starts from the analytic one. `XGBModel` may
            be shared with other tasks, a `PythonBasedModel` is your own.
        params: overrides of `DEFAULT_PARAMS`. `descent_share` of the trials (from 32 on) or of the time goes to a coordinate descent
            from the best program at the end; 0 does without, as the rules "ansor" do unless it is given. With `measure_unscheduled` 0 the
            program without a schedule isn't measured: nobody is told then what a schedule gained. Those that TVM has
            and that have no use here (of GPUs, of steps that sketches decide here) are accepted.
        seed: of all random choices; the same seed proposes the same candidates for the same results.
        verbose: overrides the tuning options' verbosity if given.
        init_search_callbacks: `PreloadMeasuredStates`, to go on with an old log, and `PreloadCustomSketchRule`.

    Raises:
        TuningError: for an unknown parameter.
    """

    DEFAULT_PARAMS = DEFAULT_PARAMS

    def __init__(
        self,
        task: Task,
        program_cost_model: CostModel | PythonBasedModel | RandomModel | None = None,
        params: Mapping[str, Any] | None = None,
        seed: int | None = None,
        verbose: int | None = None,
        init_search_callbacks: Sequence[Any] | None = None,
    ) -> None:
        if not (hasattr(task, "compute_dag") and isinstance(params or {}, Mapping) and (seed is None or hasattr(seed, "__index__"))):
            raise TuningError(
                f"SketchPolicy takes a SearchTask, a dictionary of params and a whole number as seed; got {task!r}, {params!r}, {seed!r}"
            )
        unknown = sorted(set(params or {}) - set(DEFAULT_PARAMS))
        if unknown:
            raise TuningError(f"SketchPolicy has no parameter {', '.join(unknown)}; it takes {', '.join(DEFAULT_PARAMS)}")
        if (params or {}).get("rules", "all") not in _RULES:
            raise TuningError(f"SketchPolicy: rules is {(params or {})['rules']!r}; it is one of {', '.join(map(repr, _RULES))}")
        _check_share((params or {}).get("descent_share", 0.0))
        callbacks = tuple(init_search_callbacks or ())
        for callback in callbacks:
            if not isinstance(callback, (PreloadMeasuredStates, PreloadCustomSketchRule)):
                raise TuningError(
                    f"init_search_callbacks takes PreloadMeasuredStates(log) and PreloadCustomSketchRule(...), not {callback!r}"
                )
        self._preloads = tuple(callback for callback in callbacks if isinstance(callback, PreloadMeasuredStates))
        self._rules = tuple(callback.rule(self) for callback in callbacks if isinstance(callback, PreloadCustomSketchRule))
        self._session: SearchSession | None = None
        self._deadline = math.inf
        self._index: tuple[Any, CandidateIndex] | None = None
        self.task = task
        self.params: dict[str, Any] = {**DEFAULT_PARAMS, **(params or {})}
        # Ansor's rules are there to be compared with the paper's search, which has no descent.
        if self.params["rules"] == "ansor" and "descent_share" not in (params or {}):
            self.params["descent_share"] = 0.0
        self.seed = 0 if seed is None else seed
        self.verbose = verbose
        self._model = program_cost_model
        # Those of a task scheduler, which go on with the next task; None for its own.
        self.workers: Workers | None = None

    @property
    def search_task(self) -> Task:
        """The task, by TVM's name, which rules of your own ask for."""
        return self.task

    def generate_sketches(self, print_for_debug: bool = False) -> list[Sketch]:
        """The design spaces of the task.

        Raises:
            WorkloadError: for a computation with externs, for which there are no rules.
        """
        dag = self.task.compute_dag
        externs = ", ".join(op.name for op in dag.ops if isinstance(op, ExternOp))
        if externs:
            raise WorkloadError(
                f"the computation calls code that was written by hand ({externs}), for which the search has no rules; tune what comes "
                "before and after it as tasks of their own, or schedule all of it with te.create_schedule"
            )
        rules = RuleOptions(
            self.task.target,
            str(self.params["cpu_multi_level_tiling_structure"]),
            int(self.params["max_innermost_split_factor"]),
            self.params["rules"] == "ansor",
            self.task.layout_rewrite_option,
        )
        sketches = generate_sketches(dag.outputs, dag.initial_tree, rules, self._rules)
        if print_for_debug:
            for sketch in sketches:
                print(f"{sketch.name}, {sketch.size} programs\n{sketch.tree}\n")
        return sketches

    def spaces(self) -> Sequence[Space]:
        """What is searched: tiles of matrix units where the target has them, and the sketches, without those that these hold already. A
        policy for other design spaces of the same task gives these, and `recalled`.
        """
        sketches, dag = self.generate_sketches(), self.task.compute_dag
        plans = unit_spaces(dag.outputs, dag.initial_tree, self.task.target) if sketches else []
        if not plans:
            return sketches
        known = [plan.program(row) for plan in plans if (row := plan.preferred_row) is not None]
        held = {without_knobs(trace) for trace in known}
        return [*plans, *(one for one in sketches if one.size > 1 or one.trace_of([0] * len(one.decisions)) not in held)]

    def recalled(self, spaces: Sequence[Any], trace: Trace) -> Candidate | None:
        """The candidate of the spaces that makes a program; None if none does."""
        # By identity: an index over thousands of traces is made once for the spaces of a search.
        if self._index is None or self._index[0] is not spaces:
            self._index = spaces, CandidateIndex(spaces)
        return self._index[1].find(trace)

    def search(self, options: TuningOptions) -> list[Trial]:
        """Run the search and call the callbacks with every batch of results.

        Raises:
            TuningError: if no worker can be started.
        """
        with SearchSession(self, options) as session:
            return session.run()

    def sample_initial_population(self) -> list[State]:
        """Random programs that may be built, at least `sample_init_min_population` if there are as many."""
        sketches = self.spaces()
        return [self._state(sketches, candidate) for candidate in self._drawn(sketches)]

    def evolutionary_search(self, init_populations: Sequence[State], out_size: int) -> list[State]:
        """The programs that the cost model likes best, up to `out_size`, found from some programs and random ones.

        Args:
            init_populations: programs of `sample_initial_population`, or of records; what no sketch makes is left out.
            out_size: how many to return at most.
        """
        sketches = self.spaces()
        index = CandidateIndex(sketches)
        seeds: dict[int, list[tuple[int, ...]]] = {}
        for state in init_populations:
            if (found := index.find(state.trace)) is not None:
                seeds.setdefault(found.sketch, []).append(found.row)
        user, seen = self._models(self._model if self._model is not None else default_model(self.seed))
        learner = Learner(sketches, self.task.target, seen, user)
        starts = {number: np.array(rows, np.int64) for number, rows in seeds.items()}
        random = np.random.default_rng(self.seed)
        options = self._evolution()
        if user is not None:  # a model that looks at programs takes milliseconds for each
            options = replace(options, population=min(options.population, max(_LEAST_POPULATION, 4 * out_size)))
        best = evolve(sketches, learner.score, starts, out_size, options, random, TunerObserver())
        return [self._state(sketches, candidate) for _, candidate in best[:out_size]]

    def _drawn(self, sketches: Sequence[Space]) -> list[Candidate]:
        """Random candidates of all sketches in turn."""
        random, drawn = np.random.default_rng(self.seed), []
        # four times as many as are wanted: some may not be built, and some are drawn twice
        share = max(1, 4 * int(self.params["sample_init_min_population"]) // max(1, len(sketches)))
        for number, sketch in enumerate(sketches):
            rows = unique_rows(sketch.sample(share, random))
            valid = rows[sketch.features(rows, self.task.target).valid]
            drawn.append([Candidate(number, tuple(map(int, row))) for row in valid])
        return [candidate for turn in zip_longest(*drawn) for candidate in turn if candidate is not None]

    def _state(self, sketches: Sequence[Space], candidate: Candidate) -> State:
        return State.of_trace(sketches[candidate.sketch].program(candidate.row), lambda: self.task.compute_dag)

    def best_predicted(self) -> Trace:
        """The program that the cost model likes best, of those that no record tells of; the plain one where there is none.

        On a GPU it is the schedule by rules: what the untrained model says of GPUs was never measured on one. `evolutionary_search` ranks
        programs by it.
        """
        if is_gpu(self.task.target):
            spaces = self.spaces()
            plans = preferred(spaces)
            best: Trace = spaces[plans[0].sketch].program(plans[0].row) if plans else Trace()
            return best
        found = self.evolutionary_search((), 1)
        return found[0].trace if found else Trace()

    def continue_search_one_round(self, num_measure: int, measurer: ProgramMeasurer) -> tuple[list[MeasureInput], list[MeasureResult]]:
        """Propose, measure and learn from up to `num_measure` more programs; none if all there are have been measured.

        Workers stay until `close`; what was learned stays with the policy.

        Args:
            num_measure: how many.
            measurer: says how to build and run; its callbacks are called, and it counts.

        Raises:
            TuningError: if no worker can be started.
        """
        options = TuningOptions(
            max(1, num_measure),
            verbose=measurer.verbose,
            builder=measurer.builder,
            runner=measurer.runner,
            measure_callbacks=measurer.callbacks,
        )
        trials = self.one_round(num_measure, options)
        inputs = [MeasureInput(self.task, trial.trace) for trial in trials]
        results = [trial.result for trial in trials]
        measurer.count(self.task, inputs, results)
        return inputs, results

    def one_round(self, num_measure: int, options: TuningOptions) -> list[Trial]:
        """One round as a task scheduler has it run: see `continue_search_one_round`.

        Raises:
            TuningError: if no worker can be started.
        """
        # Workers are processes that import the compiler, so that they stay from one round of a task scheduler to the next.
        if self._session is None:
            self._session = SearchSession(self, options)
        return self._session.open().round(num_measure, self._deadline)

    def descend(self) -> None:
        """From now on `one_round` measures the neighbours of the best program, as long as there are any."""
        if self._session is not None:
            self._session.descend()

    def time_again(self) -> Trial | None:
        """Time the best few programs of `one_round` again, in turn.

        Returns:
            the best of all; None if none ran.
        """
        return None if self._session is None else self._session.time_again()

    def stop_at(self, deadline: float) -> None:
        """Let `one_round` measure nothing after a moment of `time.monotonic`."""
        self._deadline = deadline

    def close(self) -> None:
        """End the workers of `one_round`."""
        if self._session is not None:
            self._session.close()

    def set_verbose(self, verbose: int) -> None:
        """Say more or less: 0 nothing, 1 the progress, 2 every program."""
        self.verbose = verbose

    def tuner(self, measurer: Measurer, options: TuningOptions, observer: TunerObserver) -> Tuner:
        """The search loop of this policy, with what `init_search_callbacks` loaded."""
        spaces = self.spaces()
        preloaded = self._preload(spaces, observer, options.runner.swept_bytes)
        model = self._model if self._model is not None else default_model(self.seed)
        user, seen = self._models(model)
        # what an old log knows races new programs from the first one on
        measurer.best_cost = min([measurer.best_cost, *(cost for _, cost in preloaded.candidates)])
        return Tuner(
            sketches=spaces,
            target=self.task.target,
            model=seen,
            measurer=measurer,
            options=self._tuner_options(options),
            observer=observer,
            record=lambda batch: self._record(batch, options),
            seed=self.seed,
            preloaded=preloaded.candidates,
            promising=preloaded.promising,
            program_model=user,
            # A log that knows the unscheduled program needn't wait for it again: it is the slowest of all trials as a rule. On a GPU
            # nothing runs that starts no threads.
            with_baseline=preloaded.baseline is None and bool(self.params["measure_unscheduled"]) and not is_gpu(self.task.target),
        )

    def _models(self, model: Any) -> tuple[ProgramModel | None, CostModel]:
        """A model as the tuner takes it: one that looks at programs, or one that looks at features."""
        if isinstance(model, (XGBModel, RandomModel)):
            return None, model.for_task(self.task)
        return (UserModel(model, self.task), PriorModel()) if isinstance(model, PythonBasedModel) else (None, model)

    def _preload(self, spaces: Sequence[Space], observer: TunerObserver, swept_bytes: int) -> Preloaded:
        """What the callbacks know of earlier runs."""
        if not self._preloads:
            return Preloaded()
        found, messages = [], []
        for callback in self._preloads:
            records = callback.records(self.task)
            found += records
            messages.append(callback.message(self.task, sum(not record.is_timed_again for record in records)))
        # What was timed with other caches can't be compared: its best are measured again.
        others = [record for record in found if record.swept_bytes != swept_bytes]
        found = [record for record in found if record.swept_bytes == swept_bytes]
        find = partial(self.recalled, spaces)
        preloaded = replace(recall(found, find), promising=fastest_candidates(others, find))
        # by program: one that was timed again has several records
        unknown = len({record.trace for record in found if len(record.trace)}) - len(preloaded.candidates)
        if unknown:
            messages.append(f"{unknown} of these programs are none that the present sketches make; they are left out")
        if isinstance(observer, Console):
            observer.say("Call init-search callbacks", messages)
            # The plain program counts too: a search that doesn't beat it found nothing.
            best = min([cost for _, cost in preloaded.candidates] + [preloaded.baseline or math.inf])
            if best < math.inf:
                observer.known(best)
        # the tuner tells models of features of what was loaded, as candidates; this one looks at programs
        if isinstance(self._model, PythonBasedModel) and not isinstance(self._model, XGBModel) and found:
            self._model.update([record.input for record in found], [record.result for record in found])
        return preloaded

    def _tuner_options(self, options: TuningOptions) -> TunerOptions:
        return TunerOptions(
            trials=options.most_trials,
            round_size=options.round_size,
            eps_greedy=float(self.params["eps_greedy"]),
            early_stopping=options.early_stopping,
            budget_s=options.budget_s,
            descent_share=float(self.params["descent_share"]),
            evolution=self._evolution(),
        )

    def _evolution(self) -> EvolutionOptions:
        return EvolutionOptions(
            population=int(self.params["evolutionary_search_population"]),
            generations=int(self.params["evolutionary_search_num_iters"]),
            mutation_prob=float(self.params["evolutionary_search_mutation_prob"]),
        )

    def _record(self, batch: Sequence[Trial], options: TuningOptions) -> None:
        inputs = [MeasureInput(self.task, trial.trace) for trial in batch]
        results = [_with_prediction(trial) for trial in batch]
        for callback in options.measure_callbacks:
            callback.callback(self, inputs, results)


def _check_share(share: Any) -> None:
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
        raise TuningError(f"SketchPolicy: descent_share is {share!r}; it takes a share of the trials from 0 to below 1")


def _with_prediction(trial: Trial) -> MeasureResult:
    """A trial's result, with its round and what the model said before in its policy: records hold them, and reports show them."""
    policy = {**trial.result.policy, "round": trial.round}
    # A program that couldn't be predicted has minus infinity, which JSON has no form for.
    if trial.predicted is not None and math.isfinite(trial.predicted):
        policy["predicted"] = round(trial.predicted, 6)
    return replace(trial.result, policy=policy)
