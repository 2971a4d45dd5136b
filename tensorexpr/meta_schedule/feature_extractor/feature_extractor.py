"""The protocol of feature extractors: programs as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..search_strategy.search_strategy import MeasureCandidate
from ..utils import Extensible, chosen

if TYPE_CHECKING:
    from ..tune_context import TuneContext


class FeatureExtractor(Extensible):
    """Makes a matrix of each program, with a row for each of its stores."""

    FeatureExtractorType: ClassVar[Any] = "FeatureExtractor | str"

    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}

    def extract_from(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> list[Any]:
        """For each program its features [stores, columns]."""
        raise NotImplementedError

    @staticmethod
    def create(kind: str = "per-store-feature", *args: Any, **kwargs: Any) -> FeatureExtractor:
        """An extractor by its name.

        Raises:
            TuningError: for another name.
        """
        made: FeatureExtractor = chosen(kind, FeatureExtractor.kinds, "feature extractor")(*args, **kwargs)
        return made


class PyFeatureExtractor(FeatureExtractor):
    """Base of feature extractors that users write."""


create = FeatureExtractor.create
