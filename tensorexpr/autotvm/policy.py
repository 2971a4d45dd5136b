"""`TemplatePolicy`: a task of the auto-scheduler whose programs a template makes, in the task scheduler and the log of all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..auto_scheduler.layout_rewrite import rewrite_layouts
from ..auto_scheduler.policy import SketchPolicy
from ..auto_scheduler.task import Task as SearchedTask
from ..errors import TensorExprError, TuningError
from ..schedule.steps import Knob
from ..schedule.trace import Trace
from ..te.identity import dag_key
from ..tune.evolution import Candidate, EvolutionOptions
from .task.task import Task
from .template_space import TemplateSpace

# Programs of a generation: a template's function is run for each, which takes milliseconds, where sketches are arrays.
_POPULATION, _SHARE = 192, 8


class RelaidSpace(TemplateSpace):
    """A template's configurations with free layouts of inputs as a task wants them: copied by the program, or passed packed."""

    def __init__(self, template: Task, searched: SearchedTask) -> None:
        super().__init__(template, "itervar")
        self._searched = searched

    def program(self, row: Sequence[int]) -> Trace:
        """The trace of a row: its knobs, then what they make.

        Raises:
            InstantiationError: if it makes none.
        """
        made = super().program(row)
        if not isinstance(made, Trace):
            raise TuningError(f"the computation of {self.task.name} depends on a knob, so that it is none of the task's programs")
        return rewrite_layouts(made, self._searched.compute_dag.initial_tree, self._searched.layout_rewrite_option)


class TemplatePolicy(SketchPolicy):
    """Search the configurations of a template for a task of the auto-scheduler.

        policies = [TemplatePolicy(task, autotvm.task.create("my_conv", args, target)) for task in tasks]
        auto_scheduler.TaskScheduler(tasks).tune(options, search_policy=policies)

    Its records begin with the knobs, and are applied as all others.

    Args:
        task: what is computed.
        template: of the same computation; its arguments are in the same order.
        program_cost_model, params, seed, verbose, init_search_callbacks: see `SketchPolicy`.

    Raises:
        TuningError: for a template of another computation; `InstantiationError` if it makes no program at all.
    """

    def __init__(
        self,
        task: SearchedTask,
        template: Task,
        program_cost_model: Any = None,
        params: Mapping[str, Any] | None = None,
        seed: int | None = None,
        verbose: int | None = None,
        init_search_callbacks: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(task, program_cost_model, params, seed, verbose, init_search_callbacks)
        self._space = RelaidSpace(template, task)
        if dag_key(self._space.example.args) != task.compute_dag.hash_key():
            raise TuningError(
                f"the template {template.name!r} computes something else of {template.args} than the task {task.workload_key}"
            )

    def spaces(self) -> Sequence[TemplateSpace]:
        """The template's."""
        return [self._space]

    def recalled(self, spaces: Sequence[Any], trace: Trace) -> Candidate | None:
        """The configuration that a program begins with; None if it is none of this template's."""
        knobs = [step for step in trace if isinstance(step, Knob)]
        if [(step.name, step.candidates) for step in knobs] != [(name, len(one)) for name, one in self._space.config.space_map.items()]:
            return None
        row = tuple(step.decision for step in knobs)
        try:
            return Candidate(0, row) if self._space.program(row) == trace else None
        except TensorExprError:  # of another version of the template
            return None

    def _evolution(self) -> EvolutionOptions:
        asked = super()._evolution()
        return replace(asked, population=min(asked.population // _SHARE, _POPULATION))
