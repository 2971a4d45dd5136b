"""The learned model as users of the auto-scheduler know it: it makes features of programs, and keeps several tasks apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dataclass import dataclass, field
from ...errors import TensorExprError, TuningError
from ...lower.phase0.inline_stages import inline_stages
from ...schedule.steps import ByBlocks
from ...schedule.trace import Trace
from ...target import Target
from ...tune.cost_model import BoostedModel, CostModel, FloatArray
from ...tune.features import extract
from ...tune.measure import MeasureResult
from ...tune.space import Sketch
from ..compute_dag import ComputeDAG
from ..measure_input import MeasureInput
from ..records import load_records
from ..task import Task
from .cost_model import PythonBasedModel, trace_of
from .pack_sum import (
    XGBDMatrixContext,
    dmatrix_context,
    feature_to_pack_sum_xgbmatrix,
    max_curve,
    pack_sum_average_peak_score,
    pack_sum_rmse,
    pack_sum_square_error,
    pack_sum_xgbmatrix,
    predict_throughput_pack_sum,
)

if TYPE_CHECKING:
    from ..loop_state import State


_SHORTEST = 1e-12  # seconds: a runner of the caller's may report none at all


@dataclass
class _Programs:
    """What was measured of one task."""

    features: list[FloatArray] = field(default_factory=list)
    priors: list[float] = field(default_factory=list)
    throughputs: list[float] = field(default_factory=list)

    def add(self, features: FloatArray, priors: FloatArray, throughputs: FloatArray) -> None:
        self.features.extend(features)
        self.priors.extend(map(float, priors))
        self.throughputs.extend(map(float, throughputs))

    @property
    def offset(self) -> float:
        """The largest prior: priors of other tasks lie elsewhere, since their work is another."""
        return max(self.priors, default=0.0)


class XGBModel(PythonBasedModel):
    """Boosted trees on the features of programs, starting from the analytic model; one for all tasks it is given to.

    Args:
        verbose_eval: accepted; training takes less than a second and prints nothing.
        num_warmup_sample: accepted; without samples the analytic model chooses, never chance.
        seed: of the training; 43 if None.
        model_file: what `save` wrote, loaded at once.
        adaptive_training: train only when there are a fifth more samples than at the last time.

    Raises:
        TuningError: if xgboost is not installed.
        RecordError: if the file is no saved model.
    """

    def __init__(
        self,
        verbose_eval: int = 25,
        num_warmup_sample: int = 100,
        seed: int | None = None,
        model_file: str | Path | None = None,
        adaptive_training: bool = False,
    ) -> None:
        self._model = BoostedModel(43 if seed is None else seed)
        self._adaptive = adaptive_training
        self._tasks: dict[tuple[str, str], _Programs] = {}
        self._trained_on = 0
        if model_file is not None:
            self.load(model_file)

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Learn from new measurements, of one task or of several, beside all earlier ones."""
        by_task: dict[tuple[str, str], list[tuple[MeasureInput, MeasureResult]]] = {}
        for made, result in zip(inputs, results, strict=True):
            if any(isinstance(step, ByBlocks) for step in made.trace):
                continue  # the features are of stages' loops, which such a program has none of
            by_task.setdefault(_key(made.task), []).append((made, result))
        for key, pairs in by_task.items():
            task = pairs[0][0].task
            features, priors = features_of(task.compute_dag, task.target, [made.trace for made, _ in pairs])
            # A failed program is as good as infinitely slow.
            speeds = np.array([1.0 / max(result.median, _SHORTEST) if result.is_success else 0.0 for _, result in pairs])
            self._tasks.setdefault(key, _Programs()).add(features, priors, speeds)
        self._train()

    def predict(self, task: Task, states: Sequence[State | Trace]) -> FloatArray:
        """Predicted throughput [n] of programs of a task: 1 is that of the fastest known one, or of the most promising of these."""
        if not states:
            return np.zeros(0)
        features, priors = features_of(task.compute_dag, task.target, [trace_of(state) for state in states])
        # The model predicts logarithms; the clip keeps what it has never seen from overflowing.
        return np.asarray(np.exp(np.clip(self.scores(_key(task), features, priors), -30.0, 30.0)))

    def predict_stages(self, task: Task, states: Sequence[State | Trace]) -> FloatArray:
        """The model looks at whole programs, so it has no scores of single stages.

        Raises:
            TuningError: always; `predict` gives the scores of programs.
        """
        raise TuningError("XGBModel predicts whole programs, not their stages; use predict")

    def update_from_file(self, file_name: str | Path, n_lines: int | None = None) -> int:
        """Learn from the records of a log; those of workloads that aren't registered here are left out.

        Returns:
            the number of records that were used.

        Raises:
            RecordError: if the file can't be read.
        """
        usable = []
        for record in load_records(file_name, repeats=True)[:n_lines]:
            try:
                fits = record.input.task.compute_dag.hash_key() == record.dag_hash
            except TensorExprError:
                continue
            if fits:
                usable.append(record)
        if usable:
            self.update([record.input for record in usable], [record.result for record in usable])
        return len(usable)

    def save(self, file_name: str | Path) -> None:
        """Write what was learned as JSON."""
        self._model.save(file_name)

    def load(self, file_name: str | Path) -> None:
        """Learn from what `save` wrote too.

        Raises:
            RecordError: if the file is anything else.
        """
        self._model.load(file_name)

    def for_task(self, task: Task) -> CostModel:
        """This model as the tuner of one task uses it."""
        return _TaskView(self, _key(task))

    def scores(self, key: tuple[str, str], features: FloatArray, priors: FloatArray) -> FloatArray:
        """Predictions from features and analytic priors of programs of one task."""
        known = self._tasks.get(key)
        # relative to the best of the task, as in training; of an unknown task the best of these stands in
        offset = known.offset if known is not None else float(np.max(priors, initial=-np.inf))
        return self._model.predict(features, np.asarray(priors) - offset)

    def learn(self, key: tuple[str, str], features: FloatArray, throughput: FloatArray, priors: FloatArray) -> None:
        """Learn all measured programs of one task, in place of what was known of it."""
        # The tuner hands over everything each time, so that adding would count programs twice.
        self._tasks[key] = _Programs()
        self._tasks[key].add(features, priors, throughput)
        self._train()

    def _train(self) -> None:
        count = sum(len(task.priors) for task in self._tasks.values())
        if not count:  # an array of no rows has no width either
            return
        if self._adaptive and self._trained_on and count < 1.2 * self._trained_on:
            return
        features, priors, speeds = [], [], []
        for task in self._tasks.values():
            best = max(task.throughputs, default=0.0)
            features += task.features
            priors += [prior - task.offset for prior in task.priors]
            # relative to each task's best: how fast another task is says how much work it has
            speeds += [speed / best if best > 0 else 0.0 for speed in task.throughputs]
        self._trained_on = count
        self._model.update(np.array(features, np.float32).reshape(count, -1), np.array(speeds), np.array(priors))


class _TaskView:
    """A shared model, for the tuner of one task."""

    name = "boosted"

    def __init__(self, model: XGBModel, key: tuple[str, str]) -> None:
        self._model = model
        self._key = key

    def update(self, features: FloatArray, throughput: FloatArray, prior: FloatArray | None = None) -> None:
        self._model.learn(self._key, features, throughput, np.zeros(len(features)) if prior is None else prior)

    def predict(self, features: FloatArray, prior: FloatArray | None = None) -> FloatArray:
        return self._model.scores(self._key, features, np.zeros(len(features)) if prior is None else prior)

    def save(self, path: str | Path) -> None:
        self._model.save(path)

    def load(self, path: str | Path) -> None:
        self._model.load(path)


def features_of(dag: ComputeDAG, target: Target, traces: Sequence[Trace]) -> tuple[FloatArray, FloatArray]:
    """Features [n, f] of programs and the analytic model's log-throughput [n].

    Args:
        dag: the computation.
        target: the machine.
        traces: programs of it, all decisions made.
    """
    rows, priors = [], []
    for trace in traces:
        sketch = Sketch("program", dag.outputs, dag.initial_tree, trace)
        made = extract(sketch, inline_stages(sketch.tree), np.zeros((1, 0), np.int64), target)
        rows.append(made.features[0])
        priors.append(-float(np.log(made.cycles[0])))
    return np.array(rows), np.array(priors)


def _key(task: Any) -> tuple[str, str]:
    return task.workload_key, str(task.target.resolved())


__all__ = [
    "XGBDMatrixContext",
    "XGBModel",
    "dmatrix_context",
    "feature_to_pack_sum_xgbmatrix",
    "features_of",
    "max_curve",
    "pack_sum_average_peak_score",
    "pack_sum_rmse",
    "pack_sum_square_error",
    "pack_sum_xgbmatrix",
    "predict_throughput_pack_sum",
]
