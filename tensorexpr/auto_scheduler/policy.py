"""SketchPolicy: Ansor's search on the one schedule core. It makes sketches, sets up the tuner and runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import TuningError
from ..lower.phase0.inline_stages import inline_stages
from ..tune.cost_model import CostModel, default_model
from ..tune.evolution import EvolutionOptions
from ..tune.measure import Measurer
from ..tune.space import Sketch
from ..tune.tuner import Trial, Tuner, TunerOptions
from .console import Console, MeasureMarks
from .measure import MeasureInput, measure_options, measure_task
from .options import TuningOptions
from .sketch.generate import generate_sketches
from .sketch.rule import RuleOptions

if TYPE_CHECKING:
    from .search_task import SearchTask

DEFAULT_PARAMS: Mapping[str, float | int | str] = {
    "eps_greedy": 0.05,
    "evolutionary_search_population": 2048,
    "evolutionary_search_num_iters": 4,
    "evolutionary_search_mutation_prob": 0.85,
    "cpu_multi_level_tiling_structure": "SSRSRS",
    "max_innermost_split_factor": 64,
}


class SketchPolicy:
    """Search one task.

    Args:
        task: what to search.
        program_cost_model: predicts throughput; by default a boosted model that starts from the analytic one.
        params: overrides of `DEFAULT_PARAMS`.
        seed: of all random choices; the same seed proposes the same candidates for the same results.
        verbose: overrides the tuning options' verbosity if given.

    Raises:
        TuningError: for an unknown parameter.
    """

    DEFAULT_PARAMS = DEFAULT_PARAMS

    def __init__(
        self,
        task: SearchTask,
        program_cost_model: CostModel | None = None,
        params: Mapping[str, Any] | None = None,
        seed: int | None = None,
        verbose: int | None = None,
        init_search_callbacks: Sequence[Any] | None = None,
    ) -> None:
        unknown = sorted(set(params or {}) - set(DEFAULT_PARAMS))
        if unknown:
            raise TuningError(f"SketchPolicy has no parameter {', '.join(unknown)}; it takes {', '.join(DEFAULT_PARAMS)}")
        if init_search_callbacks:
            raise TuningError("init_search_callbacks are not served yet; leave them out and the search starts afresh")
        self.task = task
        self.params: dict[str, Any] = {**DEFAULT_PARAMS, **(params or {})}
        self.seed = 0 if seed is None else seed
        self.verbose = verbose
        self._model = program_cost_model

    def generate_sketches(self, print_for_debug: bool = False) -> list[Sketch]:
        """The design spaces of the task."""
        dag = self.task.compute_dag
        rules = RuleOptions(
            self.task.target, str(self.params["cpu_multi_level_tiling_structure"]), int(self.params["max_innermost_split_factor"])
        )
        sketches = generate_sketches(dag.outputs, dag.initial_tree, rules)
        if print_for_debug:
            for sketch in sketches:
                print(f"{sketch.name}, {sketch.size} programs\n{sketch.tree}\n")
        return sketches

    def search(self, options: TuningOptions) -> list[Trial]:
        """Run the search and call the callbacks with every batch of results.

        Raises:
            TuningError: if no worker can be started.
        """
        sketches = self.generate_sketches()
        dag = self.task.compute_dag
        console = Console(
            options.verbose if self.verbose is None else self.verbose, dag.flop_ct, int(self.params["evolutionary_search_num_iters"])
        )
        console.searching(len(sketches))
        with Measurer(measure_task(self.task, self.seed), measure_options(options), MeasureMarks(console)) as measurer:
            tuner = Tuner(
                sketches=sketches,
                bodies=[inline_stages(sketch.tree) for sketch in sketches],
                target=self.task.target,
                model=self._model or default_model(self.seed),
                measurer=measurer,
                options=self._tuner_options(options),
                observer=console,
                record=lambda batch: self._record(batch, options),
                seed=self.seed,
            )
            return tuner.run()

    def _tuner_options(self, options: TuningOptions) -> TunerOptions:
        evolution = EvolutionOptions(
            population=int(self.params["evolutionary_search_population"]),
            generations=int(self.params["evolutionary_search_num_iters"]),
            mutation_prob=float(self.params["evolutionary_search_mutation_prob"]),
        )
        return TunerOptions(
            trials=options.num_measure_trials,
            round_size=options.round_size,
            eps_greedy=float(self.params["eps_greedy"]),
            early_stopping=options.early_stopping,
            evolution=evolution,
        )

    def _record(self, batch: Sequence[Trial], options: TuningOptions) -> None:
        inputs = [MeasureInput(self.task, trial.trace) for trial in batch]
        results = [trial.result for trial in batch]
        for callback in options.measure_callbacks:
            callback.callback(self, inputs, results)
