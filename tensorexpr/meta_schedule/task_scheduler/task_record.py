"""A task of a search, and where it stands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..builder.builder import BuilderResult
from ..runner.runner import RunnerFuture, RunnerResult
from ..search_strategy.search_strategy import MeasureCandidate
from ..tune_context import TuneContext


@dataclass
class TaskRecord:
    """A task of a search, and where it stands.

    Args:
        ctx: the task.
        task_weight: how much its time counts.
        flop: operations of its program.
        best_space: the design space of the best program, if several were searched.
    """

    ctx: TuneContext
    task_weight: float = 1.0
    flop: float = 0.0
    best_space: str = ""
    is_terminated: bool = False
    build_error_count: int = 0
    run_error_count: int = 0
    latency_ms: list[float] = field(default_factory=list)
    measure_candidates: list[MeasureCandidate] | None = None
    builder_results: list[BuilderResult] | None = None
    runner_futures: list[RunnerFuture] | None = None
    runner_results: list[RunnerResult] | None = None

    @property
    def best_ms(self) -> float:
        """Milliseconds of the best program; infinite if none ran."""
        return min(self.latency_ms, default=math.inf)
