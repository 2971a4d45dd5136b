"""Models that learn nothing: random scores, and the prior as it is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ...errors import RecordError
from .base import FloatArray


class RandomModel:
    """Scores drawn from [0, 1): what every other model must beat. The same seed gives the same sequence."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def update(self, features: FloatArray, throughput: FloatArray, prior: FloatArray | None = None) -> None:
        """Learn nothing."""

    def predict(self, features: FloatArray, prior: FloatArray | None = None) -> FloatArray:
        """Random scores [n]."""
        return self._generator.random(len(features))

    def save(self, path: str | Path) -> None:
        """Write the model's name."""
        Path(path).write_text(json.dumps({"model": self.name}) + "\n")

    def load(self, path: str | Path) -> None:
        """Check that the file is of such a model."""
        _check_name(path, self.name)


class PriorModel:
    """The prior as it is: what serves where nothing can be trained. Without a prior all programs score alike."""

    name = "prior"

    def update(self, features: FloatArray, throughput: FloatArray, prior: FloatArray | None = None) -> None:
        """Learn nothing."""

    def predict(self, features: FloatArray, prior: FloatArray | None = None) -> FloatArray:
        """The prior [n]."""
        return np.zeros(len(features)) if prior is None else np.asarray(prior, np.float64)

    def save(self, path: str | Path) -> None:
        """Write the model's name."""
        Path(path).write_text(json.dumps({"model": self.name}) + "\n")

    def load(self, path: str | Path) -> None:
        """Check that the file is of such a model."""
        _check_name(path, self.name)


def _check_name(path: str | Path, name: str) -> None:
    try:
        found = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"{path} is no saved cost model: {str(error)[:120]}") from None
    if found != {"model": name}:
        raise RecordError(f"{path} holds no {name} model")
