"""`RandomModel`: random scores, what every other model must beat."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import RecordError
from ..runner.runner import RunnerResult
from ..tune_context import MeasureCandidate, TuneContext
from .cost_model import PyCostModel


class RandomModel(PyCostModel, kind="random"):
    """Scores drawn at random.

    Args:
        seed: the same seed gives the same scores; a random one if None.
        path: where the state of the random numbers is loaded from.
        max_range: scores are from 0 up to this.
        num_tuning_cores, tree_method: accepted, as all models are made with them.
    """

    def __init__(
        self,
        *,
        seed: int | None = None,
        path: str | None = None,
        max_range: int | None = 100,
        num_tuning_cores: int | None = None,
        tree_method: str | None = None,
    ) -> None:
        self._generator = np.random.default_rng(seed)
        self.max_range = max_range or 100
        if path is not None:
            self.load(path)

    @property
    def is_trained(self) -> bool:
        """False: there is nothing to search by."""
        return False

    def load(self, path: str | Path) -> None:
        """Go on with the random numbers of `save`.

        Raises:
            RecordError: if the file holds anything else.
        """
        try:
            state = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise RecordError(f"{path} is no saved random model: {str(error)[:120]}") from None
        if getattr(state, "shape", None) != (1,) or state.dtype != np.int64:
            raise RecordError(f"{path} is no saved random model: it holds no single integer")
        self._generator = np.random.default_rng(abs(int(state[0])))

    def save(self, path: str | Path) -> None:
        """Write where the random numbers go on."""
        seed = self._generator.integers(0, 1 << 62, 1, dtype=np.int64)
        self._generator = np.random.default_rng(int(seed[0]))
        with Path(path).open("wb") as file:
            np.save(file, seed, allow_pickle=False)

    def update(self, context: TuneContext, candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]) -> None:
        """Learn nothing."""

    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> Any:
        """Random scores [n]."""
        return self._generator.random(len(candidates)) * self.max_range
