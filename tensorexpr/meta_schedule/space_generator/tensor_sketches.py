"""The auto-scheduler's sketches as a design space of programs of blocks: packed panels, register tiles, plans for windows and rows.

A program that computes tensors (see `te.from_prim_func`) is searched like a task of the auto-scheduler: populations as
arrays, features without lowering. A chosen candidate becomes a schedule of one instruction, `schedule_tensors`, whose decision
is the candidate's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...auto_scheduler.compute_dag import ComputeDAG
from ...auto_scheduler.sketch.generate import generate_sketches
from ...auto_scheduler.sketch.rule import RuleOptions
from ...errors import DeclarationError, TensorExprError
from ...lower.phase0.inline_stages import inline_stages
from ...lower.tensor_schedules import Schedule, decisions_of
from ...schedule.trace import Trace
from ...target import Target
from ...te.from_prim_func import tensors_of
from ...tir.function import IRModule
from ...tune.cost_model import default_model
from ...tune.evolution import Candidate
from ...tune.measure.errors import MeasureErrorNo
from ...tune.measure.results import MeasureResult
from ...tune.tuner import Trial, Tuner, TunerObserver, TunerOptions
from ..search_strategy.population_space import PopulationSpace
from .space_generator import FROM_TARGET, SpaceGenerator

if TYPE_CHECKING:
    from ..tune_context import TuneContext

# A tuner that is asked for programs neither counts trials nor rounds.
_UNLIMITED = 1 << 30


@dataclass(eq=False)
class TensorSketches:
    """A design space that explores itself (`PopulationSpace`): rows are candidates of sketches.

    Args:
        mod: the program, of one function that computes tensors.
        func_name: that function.
        tuner: proposes candidates and learns from their costs.
    """

    mod: IRModule
    func_name: str
    tuner: Tuner
    _asked: dict[Candidate, Trace] = field(default_factory=dict)

    @staticmethod
    def of(mod: IRModule, target: Target, seed: int = 0) -> TensorSketches | None:
        """The space of a module; None if it isn't one function that computes tensors, or there are no rules for it."""
        functions = mod.get_global_vars()
        if len(functions) != 1:
            return None
        name = functions[0].name_hint
        try:
            dag = ComputeDAG(tensors_of(mod[name]))
            sketches = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target))
        except (DeclarationError, TensorExprError):
            return None
        bodies = [inline_stages(sketch.tree) for sketch in sketches]
        options = TunerOptions(_UNLIMITED, _UNLIMITED, descent_share=0.0)
        tuner = Tuner(
            sketches=sketches,
            bodies=bodies,
            target=target,
            model=default_model(seed),
            measurer=None,
            options=options,
            observer=TunerObserver(),
            record=lambda batch: None,
            seed=seed,
            with_baseline=False,
        )
        return TensorSketches(mod, name, tuner)

    def sample(self, n: int) -> Sequence[Candidate]:
        """n programs that were not given before: as `evolve`, which mixes random ones in."""
        return self.evolve(n)

    def evolve(self, n: int) -> Sequence[Candidate]:
        """The n programs that are most promising, and a few at random."""
        found = {candidate: trace for candidate, trace in self.tuner.ask(n) if candidate is not None} if n > 0 else {}
        self._asked.update(found)
        return list(found)

    def to_schedule(self, row: Candidate) -> Schedule | None:
        """The program of a candidate; None if it can't be lowered."""
        sketch = self.tuner.sketches[row.sketch]
        steps, decision = sketch.trace.to_json(), decisions_of(sketch.trace, sketch.trace_of(row.row))
        sch = Schedule(self.mod)
        try:
            sch.run("ScheduleTensors", [], [self.func_name, sketch.name, steps], decision)
        except TensorExprError:
            return None
        return sch

    def learn(self, rows: Sequence[Candidate], costs: Sequence[float]) -> None:
        """Hear how many seconds programs took; infinite for those that failed."""
        self.tuner.tell([Trial(row, self._asked[row], _result(cost)) for row, cost in zip(rows, costs, strict=True)])


class TensorSketchSpace(SpaceGenerator, kind="tensor-sketches"):
    """A space generator that gives `TensorSketches` where the program computes tensors, and nothing where it doesn't.

    `EvolutionarySearch` explores it; beside another generator in a SpaceGeneratorUnion it searches both.
    """

    def __init__(self, sch_rules: Any = FROM_TARGET, postprocs: Any = FROM_TARGET, mutator_probs: Any = FROM_TARGET) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self._target: Target | None = None
        self._seed = 0

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task's target and seed."""
        self._target, self._seed = context.target, context.rand_state

    def generate_design_space(self, mod: IRModule) -> Sequence[Schedule | PopulationSpace]:
        """The space of a program, or none."""
        found = TensorSketches.of(mod, Target.target_or_current(self._target), max(0, self._seed))
        return [] if found is None else [found]


def _result(cost: float) -> MeasureResult:
    """What the tuner learns from."""
    good = math.isfinite(cost) and cost > 0
    error = MeasureErrorNo.NO_ERROR if good else MeasureErrorNo.UNKNOWN_ERROR
    options: dict[str, Any] = {"number": 0, "error_no": error, "error_msg": "", "all_cost": 0.0, "timestamp": 0.0}
    return MeasureResult(costs=(cost if good else 1e10,), verified=good, **options)
