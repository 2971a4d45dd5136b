"""Cost models that look at programs and results: the base of those that users write, and chance."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import TuningError
from ...schedule.trace import Trace
from ...tune.cost_model import CostModel as TunerModel
from ...tune.cost_model import FloatArray
from ...tune.cost_model import RandomModel as RandomScores
from ...tune.measure import MeasureResult
from ...tune.trial import Trial
from ..loop_state import State
from ..measure_input import MeasureInput
from ..task import Task


class CostModel(ABC):
    """What predicts how programs of a task do."""

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:  # noqa: B027  (learning is no duty)
        """Learn from new measurements; by default nothing."""

    @abstractmethod
    def predict(self, task: Any, states: Sequence[Any]) -> Sequence[float] | FloatArray:
        """Scores of programs of a task, more is better."""


class PythonBasedModel(CostModel):
    """Base of cost models that users write: give `predict` and, to learn, `update`, and pass it to `SketchPolicy`.

    States print as loops with their ranges; `state.trace` has the steps.
    """

    def predict_stages(self, task: Task, states: Sequence[Any]) -> Sequence[float] | FloatArray:
        """Scores of the stages of programs; nothing here asks for them.

        Raises:
            NotImplementedError: unless a model gives it.
        """
        raise NotImplementedError(f"{type(self).__name__} predicts whole programs")


class RandomModel(CostModel):
    """Scores drawn from [0, 1): what every other model must beat. The same seed gives the same sequence."""

    def __init__(self, seed: int = 0) -> None:
        self._scores = RandomScores(seed)

    def predict(self, search_task: Task, states: Sequence[Any]) -> FloatArray:
        """A random score [n] for each program."""
        return self._scores.predict(np.zeros((len(states), 0)))

    def for_task(self, task: Task) -> TunerModel:
        """This model as the tuner of one task uses it."""
        return self._scores


def random_fill_float(size: int, seed: int = 0) -> FloatArray:
    """Random numbers [size] from [0, 1)."""
    return np.random.default_rng(seed).random(size)


class UserModel:
    """A user's model, for the tuner of one task: programs instead of features."""

    def __init__(self, model: PythonBasedModel, task: Task) -> None:
        self._model = model
        self._task = task

    def score(self, traces: Sequence[Trace]) -> FloatArray:
        """The user's predictions.

        Raises:
            TuningError: if they are not one number for each program.
        """
        scores = np.asarray(
            self._model.predict(self._task, [State.of_trace(trace, lambda: self._task.compute_dag) for trace in traces]), np.float64
        )
        if scores.shape != (len(traces),):
            raise TuningError(
                f"{type(self._model).__name__}.predict gave {scores.shape} numbers for {len(traces)} programs; one each is needed"
            )
        # -inf means "may not be built": a score that a user gives stays above it, however low
        return np.nan_to_num(scores, nan=-np.inf, neginf=-1e30, posinf=1e30)

    def learn(self, trials: Sequence[Trial]) -> None:
        """Hand new trials on."""
        self._model.update([MeasureInput(self._task, trial.trace) for trial in trials], [trial.result for trial in trials])


def trace_of(state: State | Trace) -> Trace:
    """The steps of a program."""
    return state if isinstance(state, Trace) else state.trace
