"""Boosted trees on top of a prior: the model learns what the prior gets wrong (XGBoost; Chen and Guestrin, 2016)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import RecordError, TuningError
from ...processor import usable_cores
from .base import FloatArray, checked_samples

VERSION = 1
LOSSES = ("reg", "rank", "rank-binary")
MAX_FILE_BYTES = 256 << 20
_MAX_FEATURES = 1 << 14
# Fewer samples than this move the prior's scale and offset only: trees would learn them by heart.
_FEWEST_FOR_TREES = 16
# Trees for each sample, and at most: few samples justify few corrections of the prior.
_TREES_PER_SAMPLE = 2
_ROUNDS = 120
# The line's scale is drawn towards 1 as if so many samples had said so.
_PULL = 8
_PARAMETERS = {
    "objective": "reg:squarederror",
    "tree_method": "hist",
    "max_depth": 4,
    "max_bin": 64,
    "eta": 0.12,
    "min_child_weight": 1.0,
    "lambda": 4.0,
    "subsample": 0.8,
    "colsample_bytree": 0.7,
    "verbosity": 0,
}
# Below so many numbers one thread trains as fast as several; and barriers stall for seconds when somebody else has a core.
_SERIAL_VALUES = 2_000_000
# How arrays are written: exactly as they are trained on.
_STORED = {"features": "<f4", "labels": "<f8", "prior": "<f8"}
# A program 20 times slower than the best weighs as little as one 100 times slower: nobody will run either.
_LEAST_WEIGHT = 0.05
# How far apart programs may be: beyond, only "slow" is to be learned.
_SLOWEST_LOG = -7.0
# Where only who is among the fast is learned: those at most so much slower than the best.
_FAST_LOG = -0.5


@dataclass(frozen=True)
class _Line:
    """How the prior maps to log-throughput: `scale * prior + offset`."""

    scale: float = 1.0
    offset: float = 0.0

    def __call__(self, prior: FloatArray) -> FloatArray:
        return self.scale * prior + self.offset


@dataclass(frozen=True)
class _Samples:
    """Measured programs of one task: features, log-throughput relative to the best, prior."""

    features: FloatArray
    labels: FloatArray
    prior: FloatArray


class BoostedModel:
    """Log-throughput as the prior, rescaled, plus what boosted trees find in the features.

    Before the first update it predicts the prior; without a prior, all alike. Training starts afresh with each update and is
    deterministic for a seed.

    Args:
        seed: of sampling rows and columns.
        threads: of training; as many as there are cores if None.
        parameters: overrides of XGBoost's.
        loss: what is learned: "reg", the logarithm of throughput; "rank", the order of programs; "rank-binary", which are among the fast.
            Of orders only comparisons mean something, not differences.

    Raises:
        TuningError: if xgboost is not installed, or for another loss.
    """

    name = "boosted"

    def __init__(self, seed: int = 0, threads: int | None = None, parameters: Mapping[str, Any] | None = None, loss: str = "reg") -> None:
        if loss not in LOSSES:
            raise TuningError(f"BoostedModel: loss is {loss!r}; it is one of {', '.join(map(repr, LOSSES))}")
        self._xgboost = _import_xgboost()
        self._loss = loss
        self._seed = seed
        self._parameters = {**_PARAMETERS, **(parameters or {})}
        self._threads = threads or usable_cores()
        self._loaded: _Samples | None = None
        self._samples: _Samples | None = None
        self._line = _Line()
        self._trees: Any = None

    def update(self, features: FloatArray, throughput: FloatArray, prior: FloatArray | None = None) -> None:
        """Train on all measured programs of a task, beside those that were loaded."""
        self._samples = _Samples(*checked_samples(features, throughput, prior))
        self._train()

    def predict(self, features: FloatArray, prior: FloatArray | None = None) -> FloatArray:
        """Predicted log-throughput [n], up to a constant."""
        rows = np.asarray(features, np.float32)
        margin = self._line(np.zeros(len(rows)) if prior is None else np.asarray(prior, np.float64))
        if self._trees is None or not len(rows):
            return np.asarray(margin)
        columns = _with_prior(rows, margin)
        known = self._trees.num_features()
        if columns.shape[1] != known:
            raise TuningError(f"the cost model was trained on {known - 1} features, not {rows.shape[1]}")
        return np.asarray(self._trees.inplace_predict(columns, base_margin=margin), np.float64)

    def save(self, path: str | Path) -> None:
        """Write the samples as JSON: trees are grown again from them, which takes less than a second."""
        samples = self._samples or self._loaded
        if samples is None:
            raise TuningError("this cost model has learned nothing yet, so there is nothing to save")
        arrays = {name: _encode(getattr(samples, name), kind) for name, kind in _STORED.items()}
        data = {"model": self.name, "version": VERSION, "columns": int(samples.features.shape[1]), **arrays}
        Path(path).write_text(json.dumps(data) + "\n")

    def load(self, path: str | Path) -> None:
        """Learn from the samples of a file too, from now on."""
        self._loaded = _read_samples(Path(path))
        self._train()

    def seed_with(self, features: FloatArray, throughput: FloatArray, prior: FloatArray) -> None:
        """Learn from samples of other tasks too, from now on; throughputs are relative to the best of each task."""
        self._loaded = _Samples(*checked_samples(features, throughput, prior))
        self._train()

    def _train(self) -> None:
        parts = [part for part in (self._loaded, self._samples) if part is not None and len(part.labels)]
        if not parts:
            self._line, self._trees = _Line(), None
            return
        # a file of another release, or of another kind of features, has other columns
        if len({part.features.shape[1] for part in parts}) > 1:
            raise TuningError(f"the loaded model has {parts[0].features.shape[1]} features, these samples {parts[1].features.shape[1]}")
        features = np.concatenate([part.features for part in parts])
        labels = np.maximum(np.concatenate([part.labels for part in parts]), _SLOWEST_LOG)
        prior = np.concatenate([part.prior for part in parts])
        # Fast programs count for more: the search wants the order among the best, and how slow a slow one is doesn't matter.
        weights = np.maximum(np.exp(labels), _LEAST_WEIGHT)
        self._line = _fit_line(prior, labels, weights)
        self._trees = self._grow(features, labels, self._line(prior), weights) if len(labels) >= _FEWEST_FOR_TREES else None

    def _grow(self, features: FloatArray, labels: FloatArray, margin: FloatArray, weights: FloatArray) -> Any:
        # Starting threads takes longer than growing trees of a few samples.
        threads = self._threads if features.size > _SERIAL_VALUES else 1
        columns, parameters = _with_prior(features, margin), {**self._parameters, "nthread": threads, "seed": self._seed}
        if self._loss == "reg":
            matrix = self._xgboost.DMatrix(columns, labels, weight=weights, base_margin=margin, nthread=threads)
        else:
            matrix = self._xgboost.DMatrix(columns, _ranks(labels, self._loss), base_margin=margin, nthread=threads)
            matrix.set_group([len(labels)])
            parameters["objective"] = "rank:pairwise"
        return self._xgboost.train(parameters, matrix, num_boost_round=min(_ROUNDS, _TREES_PER_SAMPLE * len(labels)))


def _ranks(labels: FloatArray, loss: str) -> FloatArray:
    """The relevance of programs from their log-throughput, the best of which is 0."""
    if loss == "rank-binary":
        return np.asarray(labels >= _FAST_LOG, np.float64)
    return np.asarray(np.argsort(np.argsort(labels, kind="stable"), kind="stable"), np.float64)


def _import_xgboost() -> Any:
    try:
        import xgboost
    except ImportError as error:
        raise TuningError(f"the learned cost model needs xgboost: pip install 'tensorexpr[tune]' ({error})") from error
    return xgboost


def _with_prior(features: FloatArray, margin: FloatArray) -> FloatArray:
    # the margin is a column too: how far the prior is wrong may depend on what it says
    return np.concatenate([features, np.asarray(margin, np.float32)[:, None]], axis=1)


def _fit_line(prior: FloatArray, labels: FloatArray, weights: FloatArray) -> _Line:
    """Weighted least squares, drawn towards scale 1 as if a few samples had said so; never falling."""
    mean_prior, mean_label = np.average(prior, weights=weights), np.average(labels, weights=weights)
    spread = np.average((prior - mean_prior) ** 2, weights=weights)
    shared = np.average((prior - mean_prior) * (labels - mean_label), weights=weights)
    # priors that are all alike have no spread: 1e-9 makes the scale 1 then, not 0 / 0
    pull = spread * _PULL / len(labels) + 1e-9
    scale = max(0.0, float((shared + pull) / (spread + pull)))
    return _Line(scale, float(mean_label - scale * mean_prior))


def _encode(array: FloatArray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array, kind).tobytes()).decode()


def _decode(data: Any, what: str, kind: str) -> FloatArray:
    if not isinstance(data, str):
        raise RecordError(f"the saved cost model has no {what}")
    try:
        made = np.frombuffer(base64.b64decode(data, validate=True), kind)
    except ValueError as error:
        raise RecordError(f"the saved cost model's {what} can't be decoded: {error}") from None
    if not np.isfinite(made).all():
        raise RecordError(f"the saved cost model's {what} hold numbers that aren't finite")
    return made


def _read_samples(path: Path) -> _Samples:
    """The samples of a saved model.

    Raises:
        RecordError: if the file is anything else.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise RecordError(f"{path} is larger than {MAX_FILE_BYTES} bytes, too large for a cost model")
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, RecordError):
            raise
        raise RecordError(f"{path} is no saved cost model: {str(error)[:120]}") from None
    if not isinstance(data, dict) or data.get("model") != BoostedModel.name or data.get("version") != VERSION:
        raise RecordError(f"{path} holds no {BoostedModel.name} model of version {VERSION}")
    columns = data.get("columns")
    if type(columns) is not int or not 0 < columns <= _MAX_FEATURES:
        raise RecordError(f"{path}: columns is no number of features from 1 to {_MAX_FEATURES}")
    features, labels, prior = (_decode(data.get(name), name, kind) for name, kind in _STORED.items())
    if len(features) != len(labels) * columns or len(prior) != len(labels):
        raise RecordError(
            f"{path}: {len(features)} feature values, {len(labels)} labels and {len(prior)} priors don't make rows of {columns}"
        )
    return _Samples(features.reshape(len(labels), columns), labels, prior)
