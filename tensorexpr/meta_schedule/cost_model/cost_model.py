"""The protocol of cost models: which of many programs are fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..search_strategy.search_strategy import MeasureCandidate
from ..utils import Extensible, chosen

if TYPE_CHECKING:
    from ..runner.runner import RunnerResult
    from ..tune_context import TuneContext


class CostModel(Extensible):
    """Predicts how good programs are, and learns from those that were measured."""

    CostModelType: ClassVar[Any] = "CostModel | str"

    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}

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

    @staticmethod
    def create(kind: str, *args: Any, **kwargs: Any) -> CostModel | None:
        """A model by its name: "xgb", "random", or "none" for no model.

        Raises:
            TuningError: for another name, or where xgboost is not installed.
        """
        if kind == "none":
            return None
        made: CostModel = chosen(kind, CostModel.kinds, "cost model")(*args, **kwargs)
        return made


class PyCostModel(CostModel):
    """Base of cost models that users write."""


create = CostModel.create
