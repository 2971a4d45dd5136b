"""The protocol of cost models: which of many programs are fast."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..runner.runner import RunnerResult
from ..tune_context import MeasureCandidate, TuneContext
from ..utils import Extensible


class CostModel(Extensible, what="cost model"):
    """Predicts how good programs are, and learns from those that were measured."""

    CostModelType: ClassVar[Any] = "CostModel | str"

    @property
    def is_trained(self) -> bool:
        """Whether predictions are worth searching by."""
        return True

    def load(self, path: str | Path) -> None:
        """Take up what `save` wrote."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write what was learned."""
        raise NotImplementedError

    def update(self, context: TuneContext, candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]) -> None:
        """Learn from measured programs of a task."""
        raise NotImplementedError

    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> Any:
        """Scores [n] of programs of a task, more is better."""
        raise NotImplementedError


class PyCostModel(CostModel):
    """Base of cost models that users write."""


CostModel.kinds["none"] = lambda *args, **kwargs: None
create = CostModel.create
