"""`UpdateCostModel`: the cost model learns from every round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..builder.builder import BuilderResult
from ..runner.runner import RunnerResult
from ..search_strategy.search_strategy import MeasureCandidate
from .measure_callback import PyMeasureCallback

if TYPE_CHECKING:
    from ..task_scheduler.task_scheduler import TaskScheduler


class UpdateCostModel(PyMeasureCallback, kind="update-cost-model"):
    """Tells the cost model, if there is one, how programs did; those that weren't built say nothing about speed."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Let the model learn from a round."""
        model = task_scheduler.cost_model_
        if model is None:
            return
        built = [n for n, result in enumerate(builder_results) if result.error_msg is None]
        context = task_scheduler.tasks_[task_id].ctx
        model.update(context, [measure_candidates[n] for n in built], [runner_results[n] for n in built])
