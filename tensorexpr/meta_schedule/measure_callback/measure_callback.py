"""The protocol of measure callbacks: what is done with every round's results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ...errors import TuningError
from ..builder.builder import BuilderResult
from ..runner.runner import RunnerResult
from ..search_strategy.search_strategy import MeasureCandidate
from ..utils import Extensible

if TYPE_CHECKING:
    from ..task_scheduler.task_scheduler import TaskScheduler


class MeasureCallback(Extensible):
    """Is called after each round, once its programs were measured."""

    CallbackListType: ClassVar[Any] = "MeasureCallback | list[Any] | str"

    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Look at a round's results.

        Args:
            task_scheduler: whose `database_`, `cost_model_` and `tasks_` may be used.
            task_id: the task.
            measure_candidates: the programs.
            builder_results: what the builder made of each.
            runner_results: how each did.
        """
        raise NotImplementedError

    @staticmethod
    def create(kind: str = "default") -> list[MeasureCallback]:
        """What is done by default: records are added to the database, files removed, the cost model updated.

        Raises:
            TuningError: for another name.
        """
        if kind != "default":
            raise TuningError(f'measure callbacks are given as a list, or as "default", not as {kind!r}')
        names = ("add-to-database", "remove-build-artifact", "update-cost-model")
        return [MeasureCallback.kinds[name]() for name in names]


class PyMeasureCallback(MeasureCallback):
    """Base of measure callbacks that users write."""


create = MeasureCallback.create
