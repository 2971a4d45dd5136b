"""`TuneContext`: one task of a search, with the parts that make its programs; `Contextual`, what parts that know their task share."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from ..dataclass import dataclass
from ..errors import TuningError
from ..schedule.blocks import Schedule
from ..target import Target, TargetLike
from ..tir.function import IRModule, PrimFunc
from .arg_info import ArgInfo
from .utils import Extensible, fork_seed, part, thread_count

if TYPE_CHECKING:  # parts know their task; the task makes its parts by name
    from .cost_model.cost_model import CostModel
    from .database.database import Database
    from .runner.runner import RunnerResult
    from .search_strategy.search_strategy import PopulationSpace, SearchStrategy
    from .space_generator.space_generator import SpaceGenerator

_logger = logging.getLogger(__name__)
Part = TypeVar("Part", bound="Contextual")


@dataclass(frozen=True, eq=False)
class MeasureCandidate:
    """A program to measure.

    Args:
        sch: its schedule, all decisions made.
        args_info: the arguments to measure it with.
    """

    sch: Schedule
    args_info: Sequence[ArgInfo]


class Contextual(Extensible):
    """Base of the parts of a search that are told for which task they work."""

    def _initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task; older programs call it `initialize_with_tune_context`."""
        self.initialize_with_tune_context(context)

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task. Nothing is remembered here."""

    def clone(self: Part) -> Part:
        """A part like this one that belongs to no task yet."""
        return copy(self)


def normalize_mod(mod: PrimFunc | IRModule) -> IRModule:
    """A module with the function to tune, called "main", without aliases among its arguments.

    Raises:
        TuningError: if it is neither a function nor a module.
    """
    if isinstance(mod, PrimFunc):
        named = mod if mod.attrs.get("global_symbol") else mod.with_attr("global_symbol", "main")
        return IRModule({"main": named.with_attr("tir.noalias", True)})
    if not isinstance(mod, IRModule):
        raise TuningError(f"a PrimFunc or an IRModule is tuned, not {type(mod).__name__}")
    functions = list(mod.functions.items())
    if len(functions) == 1 and functions[0][0].name_hint != "main":
        return IRModule({"main": functions[0][1]}, mod.attrs)
    return mod


class TuneContext:
    """A task: a program, a target, and how its design space is made and explored.

    Args:
        mod: the program; a function becomes the function "main" of a module.
        target: what it is for; the current target, or this machine.
        space_generator: a SpaceGenerator, its name, or a function of a schedule.
        search_strategy: a SearchStrategy or its name.
        task_name: for messages.
        rand_state: the seed; -1 or None for a random one.
        num_threads: of the search: a number, "physical" or "logical".
        logger: where messages of this task go.
    """

    def __init__(
        self,
        mod: PrimFunc | IRModule | None = None,
        *,
        target: TargetLike | None = None,
        space_generator: Any = None,
        search_strategy: Any = None,
        task_name: str = "main",
        rand_state: int | None = -1,
        num_threads: int | str = "physical",
        logger: logging.Logger | None = None,
    ) -> None:
        self.mod = None if mod is None else normalize_mod(mod)
        self.target = Target.target_or_current(target)
        self.space_generator: SpaceGenerator | None = part("space generator", space_generator)
        self.search_strategy: SearchStrategy | None = part("search strategy", search_strategy)
        self.task_name = task_name
        self.num_threads = thread_count(num_threads)
        self.rand_state = fork_seed(None, 1)[0] if rand_state is None or rand_state < 0 else int(rand_state)
        self.logger = logger or _logger
        if self.space_generator is not None:
            self.space_generator.adopt(self)
        if self.search_strategy is not None:
            self.search_strategy._initialize_with_tune_context(self)

    def _module(self) -> IRModule:
        if self.mod is None:
            raise TuningError("this TuneContext has no program; pass mod=")
        return self.mod

    def _strategy(self) -> SearchStrategy:
        if self.search_strategy is None:
            raise TuningError('this TuneContext has no search strategy; pass search_strategy="evolutionary", or another one')
        return self.search_strategy

    def generate_design_space(self) -> list[Schedule | PopulationSpace]:
        """The design spaces of the program: schedules with open decisions.

        Raises:
            TuningError: if there is no program or no space generator.
        """
        mod = self._module()
        if self.space_generator is None:
            raise TuningError('this TuneContext has no space generator; pass space_generator="post-order-apply", or a function')
        return list(self.space_generator.generate_design_space(mod))

    def pre_tuning(
        self,
        max_trials: int,
        num_trials_per_iter: int = 64,
        design_spaces: Sequence[Schedule | PopulationSpace] | None = None,
        database: Database | None = None,
        cost_model: CostModel | None = None,
    ) -> None:
        """Begin a search.

        Args:
            max_trials: programs that will be measured at most.
            num_trials_per_iter: programs of a round.
            design_spaces: what `generate_design_space` gives if None.
            database: holds what was measured before; an empty one in memory if None.
            cost_model: predicts; random numbers if None.
        """
        spaces = self.generate_design_space() if design_spaces is None else list(design_spaces)
        known = part("database", "memory") if database is None else database
        model = part("cost model", "random") if cost_model is None else cost_model
        self._strategy().pre_tuning(max_trials, num_trials_per_iter, spaces, known, model)

    def post_tuning(self) -> None:
        """End a search."""
        self._strategy().post_tuning()

    def generate_measure_candidates(self) -> list[MeasureCandidate] | None:
        """The next programs to measure; None if the search is over."""
        return self._strategy().generate_measure_candidates()

    def notify_runner_results(self, measure_candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]) -> None:
        """Tell the strategy how the last programs did."""
        self._strategy().notify_runner_results(list(measure_candidates), list(results))

    def clone(self) -> TuneContext:
        """A task like this one, whose parts know nothing of this one's search."""
        return TuneContext(
            self.mod,
            target=self.target,
            space_generator=None if self.space_generator is None else self.space_generator.clone(),
            search_strategy=None if self.search_strategy is None else self.search_strategy.clone(),
            task_name=self.task_name,
            rand_state=fork_seed(self.rand_state, 1)[0],
            num_threads=self.num_threads,
            logger=self.logger,
        )
