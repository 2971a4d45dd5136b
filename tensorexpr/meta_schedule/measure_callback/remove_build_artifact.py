"""`RemoveBuildArtifact`: the files of measured programs are removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..builder.builder import BuilderResult
from ..runner.runner import RunnerResult
from ..search_strategy.search_strategy import MeasureCandidate
from ..utils import remove_build_dir
from .measure_callback import PyMeasureCallback

if TYPE_CHECKING:
    from ..task_scheduler.task_scheduler import TaskScheduler


class RemoveBuildArtifact(PyMeasureCallback, kind="remove-build-artifact"):
    """Removes what the builder made, and its folder if nothing else is in it."""

    def apply(
        self,
        task_scheduler: TaskScheduler,
        task_id: int,
        measure_candidates: Sequence[MeasureCandidate],
        builder_results: Sequence[BuilderResult],
        runner_results: Sequence[RunnerResult],
    ) -> None:
        """Remove the files of a round."""
        for result in builder_results:
            if result.artifact_path is not None:
                remove_build_dir(result.artifact_path)
