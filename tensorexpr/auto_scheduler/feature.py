"""The features of programs by the names that they have in TVM: one row of 164 numbers for every tensor that a program stores.

`tune.features.per_store` says what each of them is, and makes them for whole populations at once. The learned model of
this package looks at other ones, `tune.features.extract`; these are for models of your own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import WorkloadError
from ..lower.phase0.inline_stages import inline_stages
from ..schedule.trace import Trace
from ..tir.function import IRModule, PrimFunc
from ..tune.features import per_store, per_store_names
from ..tune.features.per_store import TENSORS
from ..tune.features.programs import ProgramFeatures
from ..tune.measure import MeasureResult
from ..tune.space import Sketch
from .compute_dag import ComputeDAG
from .measure_input import MeasureInput
from .records import RecordReader
from .task import Task

DEFAULT_MAX_N_BUFS = TENSORS
DEFAULT_FEATURE_VEC_LEN = 74 + 18 * TENSORS
SIZE_OF_INT32 = SIZE_OF_FLOAT32 = 4
Features = npt.NDArray[np.float32]
_NO_ROWS = np.zeros((0, 0), np.float32)


def get_per_store_feature_names(max_n_bufs: int | None = None) -> list[str]:
    """The names of the features, in order: 164 of them with 5 tensors for each store, 18 more for each further one.

    Args:
        max_n_bufs: the tensors of a store that are described, those it moves most of; 5 if None.
    """
    return list(per_store_names(TENSORS if max_n_bufs is None else max_n_bufs))


def get_per_store_features_from_states(states: Sequence[Trace | Any], task: Task, max_n_bufs: int | None = None) -> list[Features]:
    """The features [stores, 164] of programs of a task; stores are in the order of the program.

    Args:
        states: traces, or what has one, such as a `MeasureInput`.
        task: of which they are programs.
        max_n_bufs: see `get_per_store_feature_names`.

    Raises:
        ScheduleError: if a trace is none of this task.
    """
    tensors = TENSORS if max_n_bufs is None else max_n_bufs
    return [_features(task.compute_dag, state if isinstance(state, Trace) else state.trace, tensors) for state in states]


def get_per_store_features_from_measure_pairs(
    inputs: Sequence[MeasureInput],
    results: Sequence[MeasureResult],
    skip_first_n_feature_extraction: int = 0,
    max_n_bufs: int | None = None,
) -> tuple[list[Features], Features, npt.NDArray[np.int64]]:
    """Features of measured programs, their throughputs, 1 for the best of each task and 0 for failures, and a number for each task.

    Args:
        inputs, results: what was measured, and how it did.
        skip_first_n_feature_extraction: so many first programs get no rows: their features are known already.
        max_n_bufs: see `get_per_store_feature_names`.

    Raises:
        WorkloadError: if a workload isn't registered.
    """
    features, keys, costs = [], [], []
    for number, (made, result) in enumerate(zip(inputs, results, strict=True)):
        known = number < skip_first_n_feature_extraction
        features.append(_NO_ROWS if known else get_per_store_features_from_states([made], made.task, max_n_bufs)[0])
        # Times on different machines don't compare.
        keys.append((made.task.workload_key, str(made.task.target)))
        costs.append(result.mean)
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    tasks = np.array([numbers[key] for key in keys], np.int64)
    # A failure's cost is infinite, so it is the best only of a task where all failed.
    best = {task: min((cost for cost, of in zip(costs, tasks, strict=True) if of == task), default=np.inf) for task in set(tasks.tolist())}
    throughputs = [best[task] / cost if np.isfinite(cost) else 0.0 for cost, task in zip(costs, tasks.tolist(), strict=True)]
    return features, np.array(throughputs, np.float32), tasks


def get_per_store_features_from_file(
    filename: str | Path, max_lines: int, max_n_bufs: int | None = None
) -> tuple[list[Features], Features, npt.NDArray[np.int64]]:
    """The same of the first `max_lines` records of a log; those of workloads that aren't registered here are left out.

    Raises:
        RecordError: if the file can't be read.
    """
    pairs = []
    for made, result in zip(*RecordReader(filename).read_lines(max_lines), strict=True):
        with contextlib.suppress(WorkloadError):
            made.task.compute_dag  # noqa: B018  (asks for the workload)
            pairs.append((made, result))
    return get_per_store_features_from_measure_pairs([made for made, _ in pairs], [result for _, result in pairs], 0, max_n_bufs)


def features_from_primfunc(func: PrimFunc, cache_line_bytes: int = 64, max_n_bufs: int | None = None, log_scale: bool = False) -> Features:
    """The features [stores, 164] of a function of loops or blocks, lowered or not; no rows if it stores nothing.

    Args:
        cache_line_bytes: bytes that memory moves at once.
        max_n_bufs: see `get_per_store_feature_names`.
        log_scale: give log2(x + 1) of numbers.
    """
    how = ProgramFeatures(TENSORS if max_n_bufs is None else max_n_bufs, line_bytes=float(cache_line_bytes), scaled=log_scale)
    return how.rows(IRModule({"main": func})).astype(np.float32)


def named_features_from_primfunc(
    func: PrimFunc, cache_line_bytes: int = 64, max_n_bufs: int | None = None, log_scale: bool = False
) -> dict[str, Features] | None:
    """The same by the names of the features, each with a number for every store; None if there are no stores."""
    rows = features_from_primfunc(func, cache_line_bytes, max_n_bufs, log_scale)
    return dict(zip(get_per_store_feature_names(max_n_bufs), rows.T, strict=True)) if len(rows) else None


def _features(dag: ComputeDAG, trace: Trace, tensors: int) -> Features:
    sketch = Sketch("program", dag.outputs, dag.initial_tree, trace)
    made = per_store(sketch, inline_stages(sketch.tree), np.zeros((1, 0), np.int64), tensors)
    return np.asarray(made.features[0], np.float32)
