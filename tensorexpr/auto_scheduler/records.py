"""Tuning logs of the auto-scheduler: one JSON line per trial, as `tune.records` defines it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..target import TargetLike
from ..tune.records import Record, append_records, best_record, make_record
from ..tune.records import load_records as _load_records
from .measure import MeasureInput, MeasureResult


def save_records(filename: str | Path, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
    """Append results to a log, one line each, flushed at once."""
    records = []
    for made, result in zip(inputs, results, strict=True):
        task = made.task
        records.append(make_record(task.workload_key, task.compute_dag.hash_key(), task.target, made.trace, result))
    append_records(filename, records)


def load_records(filename: str | Path) -> list[Record]:
    """All records of a log that can be read; a torn last line and foreign lines are skipped with a warning.

    Raises:
        RecordError: if the file can't be read.
    """
    return list(_load_records(filename))


def load_best_record(
    filename: str | Path,
    workload_key: str | None = None,
    target: TargetLike | None = None,
    include_compatible: bool = False,
    dag_hash: str | None = None,
) -> Record:
    """The fastest verified record of a workload on a target.

    Args:
        workload_key, target, dag_hash: what must agree; None accepts any.

    Raises:
        RecordError: if the log has none; the message says what it has instead.
    """
    return best_record(filename, workload_key, dag_hash, target)
