"""How good a cost model is, judged by programs that were measured: your own model's too."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ..errors import TensorExprError, TuningError
from ..tune.cost_model import CostModel as FeatureModel
from ..tune.cost_model import FloatArray, Quality, quality
from .cost_model import CostModel, features_of
from .loaded import LoadedRecord, RecordedTask
from .records import load_records

# Fewer programs than these have no order worth speaking of.
_FEWEST = 3


def evaluate_cost_model(
    model: CostModel | FeatureModel, records: str | Path | Iterable[LoadedRecord], top: int | None = None
) -> dict[str, Quality]:
    """How well a model orders the programs of a log that it should not have learned from.

        evaluate_cost_model(MyModel(), "held_out.json")

    Args:
        model: an `XGBModel`, a `PythonBasedModel` of your own, `RandomModel`, or a model of features as the tuner has them.
        records: a log, or its records. Those that failed are left out, and so are those of workloads that aren't registered here.
        top: how many programs count as the best; a quarter of them, at most 32, if None.

    Returns:
        workload key -> rank correlation, recall of the best, and a-peak of the model's best, for each task with 3 programs or more.

    Raises:
        TuningError: if no task has so many programs, or the model gives anything but one number for each.
    """
    listed = load_records(records, repeats=True) if isinstance(records, (str, Path)) else records
    tasks: dict[tuple[str, str], dict[str, LoadedRecord]] = {}
    for record in listed:
        if record.is_success and _is_known(record):  # of a program that was timed again, the later record counts
            tasks.setdefault((record.workload_key, record.target), {})[str(record.trace.to_json())] = record
    found: dict[str, Quality] = {}
    for (key, target), by_program in tasks.items():
        programs = list(by_program.values())
        if len(programs) >= _FEWEST:
            name = key if sum(other == key for other, _ in tasks) == 1 else f"{key} on {target}"
            found[name] = quality(_predictions(model, programs), np.array([1.0 / record.median for record in programs]), top)
    if not found:
        raise TuningError(f"a model is judged by {_FEWEST} programs of a task at least that ran; the log has none of a registered workload")
    return found


def _is_known(record: LoadedRecord) -> bool:
    try:
        return record.input.task.compute_dag.hash_key() == record.dag_hash
    except TensorExprError:
        return False


def _predictions(model: CostModel | FeatureModel, programs: list[LoadedRecord]) -> FloatArray:
    traces = [record.trace for record in programs]
    task = programs[0].input.task
    assert isinstance(task, RecordedTask)
    if isinstance(model, CostModel):
        scores = np.asarray(model.predict(task, [record.input.state for record in programs]), np.float64)
    else:
        scores = np.asarray(model.predict(*features_of(task.compute_dag, task.target, traces)), np.float64)
    if scores.shape != (len(programs),):
        raise TuningError(f"{type(model).__name__}.predict gave {scores.shape} numbers for {len(programs)} programs; one each is needed")
    return scores
