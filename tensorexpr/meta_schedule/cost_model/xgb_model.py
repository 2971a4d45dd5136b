"""`XGBModel`: boosted trees on the features of programs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ...dataclass import dataclass, field
from ...errors import TuningError
from ...schedule.blocks import Schedule
from ...tir.function import IRModule
from ...tir.structural_digest import structural_hash
from ...tune.cost_model import BoostedModel, FloatArray, quality
from ..feature_extractor.feature_extractor import FeatureExtractor
from ..runner.runner import RunnerResult
from ..tune_context import MeasureCandidate, TuneContext
from .analytic import log_throughput
from .cost_model import PyCostModel

logger = logging.getLogger(__name__)
_GROWTH = 1.2  # samples, until an adaptive model learns anew
_SHORTEST = 1e-12  # seconds: a runner of the caller's may report none at all


class XGBConfig(NamedTuple):
    """How trees are grown, in XGBoost's words."""

    max_depth: int = 10
    gamma: float = 0.001
    min_child_weight: float = 0
    eta: float = 0.2
    seed: int = 43
    nthread: int | None = None
    tree_method: str = "auto"

    def to_dict(self) -> dict[str, Any]:
        """The parameters by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}


@dataclass
class _Task:
    """What was measured of one program: rows of features and seconds."""

    rows: list[FloatArray] = field(default_factory=list)
    priors: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def relative(self, priors: Sequence[float] | FloatArray) -> FloatArray:
        """What the analytic model says, relative to the best of these programs: other programs lie elsewhere."""
        return np.asarray(priors) - max(self.priors, default=float(np.max(priors, initial=-np.inf)))

    def throughput(self) -> FloatArray:
        """Relative to the fastest one."""
        seconds = np.maximum(np.array(self.seconds, np.float64), _SHORTEST)
        best = seconds.min(initial=np.inf)
        return np.where(np.isfinite(seconds), best / seconds, 0.0) if np.isfinite(best) else np.zeros(len(seconds))


class XGBModel(PyCostModel, kind="xgb"):
    """Boosted trees, trained on all programs of all tasks after each round; tasks are told apart by their programs.

    A program's features are those of its stores, added up and the largest of each; what the trees learn is where the analytic model
    (`analytic`) is wrong, so that there are predictions before the first program was measured.

    Args:
        extractor: a FeatureExtractor or its name.
        config: how trees are grown; if None as `tune.cost_model.BoostedModel` does, which fits a few hundred samples.
        num_warmup_samples: accepted; without samples the analytic model predicts.
        early_stopping_rounds, verbose_eval, average_peak_n, num_tuning_cores, tree_method: accepted; training takes less than a second.
        adaptive_training: learn anew only when there are a fifth more samples than at the last time.

    Raises:
        TuningError: if xgboost is not installed.
    """

    def __init__(
        self,
        *,
        extractor: Any = "per-store-feature",
        config: XGBConfig | None = None,
        num_warmup_samples: int = 100,
        early_stopping_rounds: int = 50,
        verbose_eval: int = 25,
        average_peak_n: int = 32,
        adaptive_training: bool = True,
        num_tuning_cores: int | None = None,
        tree_method: str | None = None,
    ) -> None:
        self.extractor = extractor if isinstance(extractor, FeatureExtractor) else FeatureExtractor.create(extractor)
        self.config = XGBConfig() if config is None else config
        self._model = BoostedModel(self.config.seed, self.config.nthread, None if config is None else config.to_dict())
        self.num_warmup_samples = num_warmup_samples
        self.adaptive_training = adaptive_training
        self._tasks: dict[int, _Task] = {}
        self._keys: WeakKeyDictionary[IRModule, int] = WeakKeyDictionary()
        self._rows: WeakKeyDictionary[Schedule, tuple[FloatArray, float]] = WeakKeyDictionary()
        self._trained_on = 0

    def _key(self, context: TuneContext) -> int:
        mod = context.mod
        if mod is None:
            raise TuningError("a cost model predicts for a TuneContext with a program; pass mod=")
        # a hash walks through the whole module, and each prediction asks for it
        if mod not in self._keys:
            self._keys[mod] = structural_hash(mod)
        return self._keys[mod]

    def _features(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> tuple[FloatArray, FloatArray]:
        """A row for each program, and what the analytic model says; both are remembered while its schedule lives."""
        missing = [candidate for candidate in candidates if candidate.sch not in self._rows]
        for candidate, stores in zip(missing, self.extractor.extract_from(context, missing) if missing else (), strict=True):
            self._rows[candidate.sch] = _row(np.asarray(stores, np.float64)), log_throughput(candidate.sch.mod, context.target)
        known = [self._rows[candidate.sch] for candidate in candidates]
        return np.array([row for row, _ in known]), np.array([prior for _, prior in known])

    def update(self, context: TuneContext, candidates: Sequence[MeasureCandidate], results: Sequence[RunnerResult]) -> None:
        """Learn from measured programs, besides all earlier ones; those that failed count as infinitely slow."""
        if not candidates:
            return
        task = self._tasks.setdefault(self._key(context), _Task())
        (rows, priors), seconds = self._features(context, candidates), [result.median for result in results]
        # predicted before it learns from them: afterwards it would only remember
        finite = np.isfinite(seconds)
        if finite.sum() > 1:
            found = quality(self.predict(context, candidates)[finite], 1.0 / np.maximum(np.array(seconds)[finite], _SHORTEST))
            logger.debug("XGBModel on new programs: %s", found)
        task.rows += list(rows)
        task.priors += priors.tolist()
        task.seconds += seconds
        count = sum(len(task.rows) for task in self._tasks.values())
        if self.adaptive_training and self._trained_on and count < _GROWTH * self._trained_on:
            return
        self._train(count)

    def _train(self, count: int) -> None:
        rows = np.array([row for task in self._tasks.values() for row in task.rows])
        speeds = np.concatenate([task.throughput() for task in self._tasks.values()])
        # nothing ran yet, so nothing says what is faster
        if not (speeds > 0).any():
            return
        self._model.update(rows, speeds, np.concatenate([task.relative(task.priors) for task in self._tasks.values()]))
        self._trained_on = count

    def predict(self, context: TuneContext, candidates: Sequence[MeasureCandidate]) -> FloatArray:
        """Predicted throughput [n] relative to the best program's."""
        if not candidates:
            return np.zeros(0)
        rows, priors = self._features(context, candidates)
        task = self._tasks.get(self._key(context), _Task())
        return np.asarray(np.exp(np.clip(self._model.predict(rows, task.relative(priors)), -30.0, 30.0)))

    def save(self, path: str | Path) -> None:
        """Write what was learned as JSON; nothing if that is nothing."""
        if self._trained_on:
            self._model.save(path)
            logger.info("Saved XGBModel to %s", path)

    def load(self, path: str | Path) -> None:
        """Learn from what `save` wrote too.

        Raises:
            RecordError: if the file holds anything else.
        """
        self._model.load(path)
        self._trained_on = max(self._trained_on, 1)


def _row(stores: FloatArray) -> FloatArray:
    """One row of the rows of a program's stores."""
    if stores.ndim != 2 or not len(stores):
        raise TuningError(f"a feature extractor gives a matrix with a row for each store, not {stores.shape}")
    return np.concatenate([stores.sum(axis=0), stores.max(axis=0), [float(len(stores))]])
