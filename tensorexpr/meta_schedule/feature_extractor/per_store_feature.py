"""`PerStoreFeature`: 164 numbers for each buffer that a program stores to (Zheng et al., Ansor, appendix B).

They are told of the scheduled program as it is, before it is lowered: loops that blocks leave out by their conditions count in
full. 57 on the computation, 18 for each of five buffers, 10 points of the curve of arithmetic intensity, 4 on the storage of
the result, 3 on the loops. Of a buffer that is stored to several times the last store counts, and the operations of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import TuningError
from ...tir.function import IRModule
from ...tune.features.operations import OPERATIONS
from ...tune.features.per_store import slog
from ...tune.features.programs import ProgramFeatures, workload_operations
from ...tune.features.programs.touched import Numbers
from ..tune_context import MeasureCandidate, TuneContext
from .feature_extractor import PyFeatureExtractor


class PerStoreFeature(PyFeatureExtractor, kind="per-store-feature"):
    """The features of all stores of a program.

    Args:
        buffers_per_store: of each store so many buffers are described.
        arith_intensity_curve_num_samples: points of the curve.
        cache_line_bytes: bytes that are moved at once.
        extract_workload: add the operations of the unscheduled program to each row.
    """

    def __init__(
        self,
        buffers_per_store: int = 5,
        arith_intensity_curve_num_samples: int = 10,
        cache_line_bytes: int = 64,
        extract_workload: bool = False,
    ) -> None:
        if min(buffers_per_store, arith_intensity_curve_num_samples, cache_line_bytes) < 1:
            raise TuningError("PerStoreFeature describes at least one buffer and one sample, with lines of at least one byte")
        self._features = ProgramFeatures(buffers_per_store, arith_intensity_curve_num_samples, float(cache_line_bytes))
        self.extract_workload = extract_workload

    @property
    def feature_vector_length(self) -> int:
        """The number of columns."""
        return self._features.columns + (len(OPERATIONS) if self.extract_workload else 0)

    def extract_from(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> list[Any]:
        """For each program its features [stores, columns].

        Raises:
            TuningError: for a program that stores nothing.
        """
        workload = workload_operations(context.mod) if self.extract_workload and context.mod is not None else None
        return [self._extract(candidate.sch.mod, workload) for candidate in candidates]

    def _extract(self, mod: IRModule, workload: Numbers | None) -> Numbers:
        rows = self._features.rows(mod)
        if not len(rows):
            raise TuningError("a program that stores nothing has no features")
        return rows if workload is None else np.hstack([rows, np.tile(slog(workload), (len(rows), 1))])
