"""`ScheduleFn`: the design space that a function of a schedule describes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import TuningError
from ...schedule.blocks import Schedule
from ...tir.function import IRModule
from ..search_strategy.search_strategy import PopulationSpace
from ..tune_context import TuneContext
from ..utils import fork_seed
from .space_generator import FROM_TARGET, SpaceGenerator


class ScheduleFn(SpaceGenerator, kind="schedule-fn"):
    """A user's function of a schedule: what it samples is open, the rest is as it says.

    Args:
        sch_fn: takes a Schedule and transforms it; gives None, the schedule, or a list of schedules.
        sch_rules, postprocs, mutator_probs: as for every SpaceGenerator; rules aren't used.
    """

    def __init__(
        self,
        sch_fn: Callable[[Schedule], Any],
        sch_rules: Any = FROM_TARGET,
        postprocs: Any = FROM_TARGET,
        mutator_probs: Any = FROM_TARGET,
    ) -> None:
        super().__init__(sch_rules, postprocs, mutator_probs)
        self.sch_fn = sch_fn
        self._seed = -1

    @property
    def space_name(self) -> str:
        """ScheduleFn, with the name of the function."""
        return f"ScheduleFn({getattr(self.sch_fn, '__name__', type(self.sch_fn).__name__)})"

    def initialize_with_tune_context(self, context: TuneContext) -> None:
        """Take the task's seed."""
        self._seed = context.rand_state

    def generate_design_space(self, mod: IRModule) -> Sequence[Schedule | PopulationSpace]:
        """What the function makes of the program.

        Raises:
            TuningError: if the function gives something else than schedules.
        """
        # another one for each call: ReplayFunc draws every program by one
        self._seed = fork_seed(self._seed, 1)[0]
        sch = Schedule(mod, seed=self._seed)
        made = self.sch_fn(sch)
        found = [sch] if made is None else list(made) if isinstance(made, (list, tuple)) else [made]
        for one in found:
            if not isinstance(one, Schedule):
                raise TuningError(
                    f"the function of a design space gives None, a schedule or a list of schedules, not a {type(one).__name__}"
                )
        return found
