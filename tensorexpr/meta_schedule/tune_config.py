"""`TuneConfig`: how much to search, as releases of 2022 say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .search_strategy.search_strategy import SearchStrategy
from .task_scheduler.task_scheduler import TaskScheduler


class TuneConfig(NamedTuple):
    """How much to search, and how.

    `max_trials_global`: programs to measure. `num_trials_per_iter`: programs of a round. `max_trials_per_task`: of each task.
    `task_scheduler`, `strategy`: names; with their arguments in `task_scheduler_config`, `search_strategy_config`.
    `logger_config`, `adaptive_training`: accepted.
    """

    max_trials_global: int
    num_trials_per_iter: int = 64
    max_trials_per_task: int | None = None
    task_scheduler: str = "gradient"
    strategy: str = "evolutionary"
    task_scheduler_config: Mapping[str, Any] | None = None
    search_strategy_config: Mapping[str, Any] | None = None
    logger_config: Mapping[str, Any] | None = None
    adaptive_training: bool | None = None

    def options(self) -> dict[str, Any]:
        """What says the same to the functions of later releases.

        Raises:
            TuningError: for names that aren't known.
        """
        return {
            "max_trials_global": self.max_trials_global,
            "num_trials_per_iter": self.num_trials_per_iter,
            "max_trials_per_task": self.max_trials_per_task,
            "task_scheduler": TaskScheduler.create(self.task_scheduler, **(self.task_scheduler_config or {})),
            "strategy": SearchStrategy.create(self.strategy, **(self.search_strategy_config or {})),
        }


def _by_strategy(strategy: str, **options: Any) -> TuneConfig:
    """How the first releases of 2022 say it: a class for each strategy, with `num_trials_total` for the programs to measure."""
    total, each = options.pop("num_trials_total"), options.pop("num_trials_per_iter")
    return TuneConfig(total, each, strategy=strategy, search_strategy_config=options)


def ReplayTraceConfig(num_trials_per_iter: int, num_trials_total: int, max_fail_count: int = 100) -> TuneConfig:
    """A `TuneConfig` whose strategy replays traces with other decisions."""
    return _by_strategy(
        "replay-trace", num_trials_per_iter=num_trials_per_iter, num_trials_total=num_trials_total, max_fail_count=max_fail_count
    )


def ReplayFuncConfig(num_trials_per_iter: int, num_trials_total: int) -> TuneConfig:
    """A `TuneConfig` whose strategy calls the schedule function again and again."""
    return _by_strategy("replay-func", num_trials_per_iter=num_trials_per_iter, num_trials_total=num_trials_total)


def EvolutionarySearchConfig(num_trials_per_iter: int, num_trials_total: int, **options: Any) -> TuneConfig:
    """A `TuneConfig` of the evolutionary search; `options` are those of `search_strategy.EvolutionarySearch`."""
    return _by_strategy("evolutionary", num_trials_per_iter=num_trials_per_iter, num_trials_total=num_trials_total, **options)
