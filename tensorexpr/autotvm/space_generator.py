"""Templates beside sketches and stochastic schedules in one search: a space generator of meta_schedule.

    union = ms.space_generator.SpaceGeneratorUnion([TemplateSpaces("conv", args), ms.space_generator.TensorSketchSpace(), ScheduleFn(f)])
    ms.tune_tir(mod, target, ..., space=union)

A configuration becomes a schedule of one instruction, `schedule_tensors`, whose steps begin with the template's decisions, so that a record
says which space a program is of (`meta_schedule.origin.space_of`) and which knobs it has.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ..dataclass import dataclass
from ..errors import TensorExprError, TuningError
from ..lower.tensor_schedules import Schedule
from ..meta_schedule.origin import TEMPLATE
from ..meta_schedule.search_strategy.search_strategy import PopulationSpace
from ..meta_schedule.search_strategy.tuned import Tuned, asked_tuner
from ..meta_schedule.space_generator.space_generator import FROM_TARGET, SpaceGenerator
from ..meta_schedule.tune_context import TuneContext
from ..schedule.trace import Trace
from ..target import Target
from ..te.from_prim_func import tensors_of
from ..te.identity import dag_key
from ..tir.function import IRModule
from ..tune.cost_model import default_model
from ..tune.evolution import Candidate, EvolutionOptions
from .task.task import create
from .template_space import TemplateSpace

logger = logging.getLogger(__name__)
# Programs of a generation: a template's function is run for each.
_POPULATION = 192


@dataclass(eq=False)
class TemplatePrograms(Tuned):
    """A template's configurations as a design space that explores itself: rows are its candidates.

    Args:
        mod: the program.
        func_name: its function.
        space: of the template's task.
    """

    mod: IRModule
    func_name: str
    space: TemplateSpace

    def sample(self, n: int) -> Sequence[Candidate]:
        """n programs that were not given before: as `evolve`, which mixes random ones in."""
        return self.evolve(n)

    def to_schedule(self, row: Candidate) -> Schedule | None:
        """The program of a candidate; None if it makes none, which the log says."""
        sch = Schedule(self.mod)
        try:
            made = self.space.program(row.row)
            if not isinstance(made, Trace):
                raise TuningError("its computation depends on a knob, so that it is none of the function's schedules")
            sch.run("ScheduleTensors", [], [self.func_name, f"{TEMPLATE}{self.space.task.name})", made.to_json()], None)
        except TensorExprError as error:
            logger.warning("a configuration of %s is left out: %s", self.space.task.name, str(error)[:300])
            return None
        return sch


class TemplateSpaces(SpaceGenerator, kind="autotvm-template"):
    """A space generator that gives the configurations of a template.

    Args:
        task_name: of the template, or the template itself.
        args: its arguments.
        sch_rules, postprocs, mutator_probs: as for every SpaceGenerator; none are used for templates.
    """

    def __init__(
        self,
        task_name: Any,
        args: Sequence[Any],
        sch_rules: Any = FROM_TARGET,
        postprocs: Any = FROM_TARGET,
        mutator_probs: Any = FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.task_name, self.args = task_name, list(args)
        self._target: Target | None = None
        self._seed = 0

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task's target and seed."""
        self._target, self._seed = context.target, context.rand_state

    def generate_design_space(self, mod: IRModule) -> Sequence[Schedule | PopulationSpace]:
        """The template's space.

        Raises:
            TuningError: if the program isn't one function that computes what the template computes, with the same arguments.
        """
        target, functions = Target.target_or_current(self._target), mod.get_global_vars()
        space = TemplateSpace(create(self.task_name, self.args, target), "itervar")
        if len(functions) != 1:
            raise TuningError(f"a template schedules one function; the module has {len(functions)}")
        name = functions[0].name_hint
        # by what is computed, not by names: the function may have been written by hand
        if dag_key(tensors_of(mod[name])) != dag_key(space.example.args):
            raise TuningError(
                f"the function {name!r} isn't what the template {space.task.name!r} computes of {space.task.args}; make it of the "
                "template's tensors with te.create_prim_func, in the order of its arguments"
            )
        options = EvolutionOptions(population=_POPULATION, seeds=32)
        seed = max(0, self._seed)
        return [TemplatePrograms(asked_tuner([space], target, seed, default_model(seed), evolution=options), mod, name, space)]
