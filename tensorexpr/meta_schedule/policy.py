"""`BlocksPolicy`: a task of the auto-scheduler whose programs are schedules of blocks, in the task scheduler and the log of all others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..auto_scheduler.policy import SketchPolicy
from ..auto_scheduler.task import Task
from ..dataclass import dataclass, field
from ..errors import RecordError, TuningError
from ..lower.phase0.by_blocks import function_of_blocks
from ..schedule.blocks import Schedule
from ..schedule.blocks import Trace as BlockTrace
from ..schedule.steps import ByBlocks
from ..schedule.trace import Trace
from ..tir.function import IRModule
from ..tune.cost_model import CostModel as FeatureModel
from ..tune.cost_model import PriorModel
from ..tune.evolution import Candidate
from ..tune.features.nest import Array
from ..tune.learning import ProgramModel
from ..tune.space import IntArray, Rng
from ..tune.trial import Trial
from .arg_info import ArgInfo
from .cost_model.cost_model import CostModel
from .cost_model.xgb_model import XGBModel
from .runner.runner import RunnerResult
from .search_strategy.population import Individual, Programs
from .search_strategy.trace_space import TraceSpace
from .search_strategy.tuned import ModelOfPrograms
from .tune_context import MeasureCandidate, TuneContext

_DRAW_FAILURES = 20  # in a row
_LEAST = 12  # programs of a population, however long it takes
# An attribute by which a postprocessor would pack inputs: what is measured reads them as they lie, as the build does.
_LAYOUT_FREE = "layout_free_buffers"


@dataclass(eq=False)
class _BlockSpace(TraceSpace):
    """Programs of blocks as the search measures them: traces of one step.

    Args:
        seconds: for a round's programs, of which making one takes milliseconds.
        generations: of the evolution.
    """

    seconds: float = 2.5
    generations: int = 4
    _steps: dict[int, Trace] = field(default_factory=dict)

    def sample(self, count: int, rng: Rng) -> IntArray:
        """Up to `count` programs at random. With them a round begins."""
        self.begin(self.seconds, self.generations)
        return super().sample(count, rng)

    def program(self, row: Sequence[int]) -> Any:
        """The step of a number, postprocessing included."""
        number = int(row[0])
        if number not in self._steps:
            text = json.dumps(self.made[number].trace.as_json(), separators=(",", ":"))
            self._steps[number] = Trace((ByBlocks(text),))
        return self._steps[number]

    def individual(self, trace: Trace) -> Individual | None:
        """The program of a step; None if it isn't one of this space's, such as the unscheduled one."""
        instructions = next((step.instructions for step in trace if isinstance(step, ByBlocks)), None)
        if instructions is None:
            return None
        known = next((number for number, made in self._steps.items() if made == trace), None)
        if known is not None:
            return self.made[known]
        try:
            return self.programs.replayed(BlockTrace.from_json(json.loads(instructions)))
        except (ValueError, RecordError):  # a log may hold anything
            return None


@dataclass(eq=False)
class _Model(ModelOfPrograms):
    """A cost model that hears of trials, as no measure callback tells it."""

    space: _BlockSpace | None = None

    def of(self, programs: Sequence[Trace]) -> list[Individual]:
        """The programs of steps, those that there are."""
        found = [self.space.individual(one) for one in programs] if self.space is not None else []
        return [one for one in found if one is not None]

    def score(self, programs: Sequence[Any]) -> Array:
        """The model's predictions."""
        return super().score(self.of(programs))

    def learn(self, trials: Sequence[Trial]) -> None:
        """Tell the model how programs did."""
        made = [(one, trial.result) for trial in trials for one in self.of([trial.trace])]
        candidates = [MeasureCandidate(one.sch, self.args_info) for one, _ in made]
        results = [RunnerResult(r.costs) if r.is_success else RunnerResult(None, r.error_msg or "failed") for _, r in made]
        self.model.update(self.context, candidates, results)
        self.scores.clear()


class BlocksPolicy(SketchPolicy):
    """Search schedules of blocks for a task of the auto-scheduler: what schedule rules make, or a stochastic schedule of yours.

        policies = [BlocksPolicy(task, space=ms.space_generator.ScheduleFn(schedule)) for task in tasks]
        auto_scheduler.TaskScheduler(tasks).tune(options, search_policy=policies)

    Its records are traces of one step, `ByBlocks`, and are applied as all others. Inputs are read as they were declared.

    Args:
        task: what is computed. Its function of blocks has blocks of the names block0, block1, ... in the order of computation.
        space: a space generator that gives schedules, its name, or a function of a schedule.
        program_cost_model: of meta_schedule; one may serve several tasks.
        params, seed, verbose, init_search_callbacks: see `SketchPolicy`.
        seconds: for making a round's programs, each of which takes milliseconds; some are made however long it takes.

    Raises:
        TuningError: for a cost model that learns of features of stages.
    """

    def __init__(
        self,
        task: Task,
        space: Any = "post-order-apply",
        program_cost_model: CostModel | None = None,
        params: Mapping[str, Any] | None = None,
        seed: int | None = None,
        verbose: int | None = None,
        init_search_callbacks: Sequence[Any] | None = None,
        seconds: float = 2.5,
    ) -> None:
        super().__init__(task, None, params, seed, verbose, init_search_callbacks)
        if program_cost_model is not None and not isinstance(program_cost_model, CostModel):
            raise TuningError(f"programs of blocks are predicted by a cost model of meta_schedule, not by {program_cost_model!r}")
        self._of_programs = program_cost_model or XGBModel()
        func = function_of_blocks(task.compute_dag.tensors)
        mod = IRModule({"main": func.without_attr(_LAYOUT_FREE) if _LAYOUT_FREE in func.attrs else func})
        self._mod = mod
        self._context = TuneContext(mod, target=task.target, space_generator=space, task_name=task.desc or "main", rand_state=self.seed)
        self._space: _BlockSpace | None = None
        self._seconds = seconds

    def spaces(self) -> Sequence[_BlockSpace]:
        """The programs of the design spaces.

        Raises:
            TuningError: if the generator gives spaces that explore themselves, or none.
        """
        if self._space is None:
            found = self._context.generate_design_space()
            drawn = [one for one in found if isinstance(one, Schedule)]
            if len(drawn) < len(found) or not drawn:
                kinds = ", ".join(sorted({type(one).__name__ for one in found})) or "nothing"
                raise TuningError(f"a policy for programs of blocks takes a generator that gives schedules; this one gives {kinds}")
            programs = Programs(self._context)
            generations = int(self.params["evolutionary_search_num_iters"])
            self._space = _BlockSpace(
                programs,
                lambda: programs.drawn_of(drawn),
                max_draw_failures=_DRAW_FAILURES,
                least=_LEAST,
                seconds=self._seconds,
                generations=generations,
            )
        return [self._space]

    def recalled(self, spaces: Sequence[Any], trace: Trace) -> Candidate | None:
        """The candidate of a program; None if it isn't one of blocks, or makes none here."""
        space: _BlockSpace = spaces[0]
        made = space.individual(trace)
        return None if made is None else Candidate(0, (space.add(made),))

    def _models(self, model: Any) -> tuple[ProgramModel, FeatureModel]:
        args_info = ArgInfo.from_entry_func(self._mod)
        return _Model(self._of_programs, self._context, args_info, space=self.spaces()[0]), PriorModel()
