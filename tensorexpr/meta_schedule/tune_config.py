"""`TuneConfig`: how much to search, as releases of 2022 say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


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
