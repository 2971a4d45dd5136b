"""The protocol of feature extractors, and random features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..tune_context import MeasureCandidate, TuneContext
from ..utils import Extensible


class FeatureExtractor(Extensible, what="feature extractor", default="per-store-feature"):
    """Makes a matrix of each program, with a row for each of its stores."""

    FeatureExtractorType: ClassVar[Any] = "FeatureExtractor | str"

    def extract_from(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> list[Any]:
        """For each program its features [stores, columns]."""
        raise NotImplementedError


class PyFeatureExtractor(FeatureExtractor):
    """Base of feature extractors that users write."""


create = FeatureExtractor.create


class RandomFeatureExtractor(PyFeatureExtractor, kind="random"):
    """Random features of a random number of stores.

    Args:
        feature_size: columns.
        max_block_num: rows, at most.
        seed: the same seed gives the same numbers.
    """

    def __init__(self, *, feature_size: int = 30, max_block_num: int = 5, seed: int = 0) -> None:
        self.feature_size = feature_size
        self.max_block_num = max_block_num
        self._generator = np.random.default_rng(seed)

    def extract_from(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> list[Any]:
        """For each program a random matrix."""
        counts = self._generator.integers(1, self.max_block_num + 1, len(candidates))
        return [self._generator.random((int(count), self.feature_size)) for count in counts]
