"""What a cost model is: something that learns from measured programs which unmeasured ones are fast.

All models speak of the logarithm of throughput (programs a second), up to a constant: more is better, and a difference
of log(2) means twice as fast. `prior` arrays are such numbers from a model without training.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from ...errors import TuningError

FloatArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]


@runtime_checkable
class CostModel(Protocol):
    """Predicts the throughput of programs from their features. Users may pass their own."""

    @property
    def name(self) -> str:
        """A word for logs and errors."""

    def update(self, features: FloatArray, throughput: FloatArray, prior: FloatArray | None = None) -> None:
        """Learn from the measured programs of one task: all so far, since what was given before is forgotten.

        Args:
            features: [n, f], one row a program.
            throughput: [n], calls a second; 0 for programs that failed.
            prior: [n], what an untrained model says of them.
        """

    def predict(self, features: FloatArray, prior: FloatArray | None = None) -> FloatArray:
        """Scores [n] of programs, more is better.

        Args:
            features: [n, f].
            prior: [n], as in `update`.
        """

    def save(self, path: str | Path) -> None:
        """Write what was learned as JSON."""

    def load(self, path: str | Path) -> None:
        """Take up what `save` wrote.

        Raises:
            RecordError: if the file holds anything else.
        """


def checked_samples(features: FloatArray, throughput: FloatArray, prior: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features, log-throughput (the best is 0) and prior of the samples that can be learned from.

    Programs that failed, and throughputs that are no positive finite number, teach nothing about speed and are left out;
    so are rows with features that aren't finite. Without a prior it is 0.

    Raises:
        TuningError: if the shapes don't fit.
    """
    rows = np.asarray(features, np.float32)
    speeds = np.asarray(throughput, np.float64)
    priors = np.zeros(len(speeds)) if prior is None else np.asarray(prior, np.float64)
    if rows.ndim != 2 or speeds.shape != (len(rows),) or priors.shape != (len(rows),):
        raise TuningError(
            f"a cost model takes features [n, f], throughput [n] and prior [n], not {rows.shape}, {speeds.shape} and {priors.shape}"
        )
    with np.errstate(invalid="ignore"):
        # the logarithm of a failure's 0 would be a label that no other can be compared with
        usable = np.isfinite(speeds) & (speeds > 0) & np.isfinite(priors) & np.isfinite(rows).all(axis=1)
    logs = np.log(speeds[usable])
    return rows[usable], logs - logs.max(initial=-np.inf) if len(logs) else logs, priors[usable]
