"""The search policies of a task scheduler's tasks, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import TuningError
from ..tune.cost_model import CostModel, RandomModel, default_model
from .cost_model import PythonBasedModel, XGBModel
from .policy import SketchPolicy
from .preload import PreloadMeasuredStates
from .search_task import SearchTask

FileName = str | Path | None


def policies_of(
    tasks: Sequence[SearchTask],
    wanted: str | Sequence[SketchPolicy],
    params: Mapping[str, Any] | None = None,
    *,
    adaptive_training: bool = False,
    model_file: FileName = None,
    log_file: FileName = None,
) -> list[SketchPolicy]:
    """One policy for each task; those that are made here share one model.

    Args:
        wanted: "default", "sketch.xgb", "sketch.random", or the policies themselves.
        params: of the policies that are made here.
        adaptive_training: train the model only when there are a fifth more samples.
        model_file: a saved model to start from.
        log_file: records to go on with.

    Raises:
        TuningError: for an unknown name, or if there is not one policy for each task.
    """
    if not isinstance(wanted, str):
        if len(wanted) != len(tasks):
            raise TuningError(f"TaskScheduler got {len(wanted)} search policies for {len(tasks)} tasks; give one for each")
        return list(wanted)
    kind, _, model_name = ("sketch.xgb" if wanted == "default" else wanted).partition(".")
    if kind != "sketch" or model_name not in ("xgb", "random"):
        raise TuningError(f'no search policy is called {wanted!r}; there are "default", "sketch.xgb" and "sketch.random", or give a list')
    model = RandomModel() if model_name == "random" else learning_model(adaptive_training, model_file, log_file)
    preload = [PreloadMeasuredStates(log_file, reads_once=True)] if log_file is not None else []
    return [SketchPolicy(task, model, params, seed=number, init_search_callbacks=preload) for number, task in enumerate(tasks)]


def learning_model(adaptive_training: bool = False, model_file: FileName = None, log_file: FileName = None) -> CostModel | PythonBasedModel:
    """The model that tasks share: it learns from all of them, and from the records of a log.

    Args:
        adaptive_training: train only when there are a fifth more samples.
        model_file: a saved model to start from.
        log_file: records to learn from, where there is no saved model.
    """
    try:
        model = XGBModel(adaptive_training=adaptive_training)
    except TuningError:
        return default_model()  # says once that xgboost is missing
    if model_file is not None:
        model.load(model_file)
    elif log_file is not None and Path(log_file).exists():
        model.update_from_file(log_file)
    return model
