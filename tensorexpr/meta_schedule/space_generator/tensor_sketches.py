"""The auto-scheduler's sketches as a design space of programs of blocks: packed panels, register tiles, plans for windows and rows.

A program that computes tensors (see `te.from_prim_func`) is searched like a task of the auto-scheduler: populations as
arrays, features without lowering. A chosen candidate becomes a schedule of one instruction, `schedule_tensors`, whose decision
is the candidate's.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ...auto_scheduler.compute_dag import ComputeDAG
from ...auto_scheduler.sketch.generate import generate_sketches
from ...auto_scheduler.sketch.plans import unit_spaces
from ...auto_scheduler.sketch.rule import RuleOptions
from ...dataclass import dataclass
from ...errors import DeclarationError, TensorExprError
from ...lower.tensor_schedules import Schedule, decisions_of
from ...target import Target
from ...te.from_prim_func import tensors_of
from ...tir.function import IRModule
from ...tune.cost_model import default_model
from ...tune.evolution import Candidate
from ...tune.planned import Planned
from ...tune.space import Sketch
from ..search_strategy.search_strategy import PopulationSpace
from ..search_strategy.tuned import Tuned, asked_tuner
from ..tune_context import TuneContext
from .space_generator import FROM_TARGET, SpaceGenerator

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class TensorSketches(Tuned):
    """A design space that explores itself (`PopulationSpace`): rows are candidates of sketches.

    Args:
        mod: the program, of one function that computes tensors.
        func_name: that function.
        sketches: its spaces, which the tuner explores: tiles of matrix units where the target has some, and sketches.
    """

    mod: IRModule
    func_name: str
    sketches: Sequence[Sketch | Planned]

    @staticmethod
    def of(mod: IRModule, target: Target, seed: int = 0) -> TensorSketches | None:
        """The space of a module; None if it isn't one function that computes tensors. Where rules for sketches fail, the log says how."""
        functions = mod.get_global_vars()
        if len(functions) != 1:
            return None
        name = functions[0].name_hint
        try:
            dag = ComputeDAG(tensors_of(mod[name]))
        except DeclarationError:  # statements that are no definitions of tensors
            return None
        try:
            made = generate_sketches(dag.outputs, dag.initial_tree, RuleOptions(target))
            sketches: list[Sketch | Planned] = [*unit_spaces(dag.outputs, dag.initial_tree, target), *made]
        except TensorExprError as error:
            logger.warning("function %s is searched without sketches of tensors: %s: %s", name, type(error).__name__, str(error)[:300])
            return None
        return TensorSketches(asked_tuner(sketches, target, seed, default_model(seed)), mod, name, sketches)

    def sample(self, n: int) -> Sequence[Candidate]:
        """n programs that were not given before: as `evolve`, which mixes random ones in."""
        return self.evolve(n)

    def to_schedule(self, row: Candidate) -> Schedule | None:
        """The program of a candidate; None if it can't be lowered, which the log says."""
        sketch = self.sketches[row.sketch]
        program = sketch.program(row.row)
        # what a rule made of its choices has no open decisions
        open_trace = program if isinstance(sketch, Planned) else sketch.trace
        steps, decision = open_trace.to_json(), decisions_of(open_trace, program)
        sch = Schedule(self.mod)
        try:
            sch.run("ScheduleTensors", [], [self.func_name, sketch.name, steps], decision)
        except TensorExprError as error:
            logger.warning("a program of the sketch %s is left out: %s", sketch.name, str(error)[:300])
            return None
        return sch


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
