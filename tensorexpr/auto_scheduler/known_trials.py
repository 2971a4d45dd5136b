"""What a log holds of some tasks: how many trials, and the best of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..dataclass import dataclass
from ..target.machine import without_caches
from ..tune.records import choose_best
from .loaded import LoadedRecord
from .records import load_records
from .search_task import SearchTask


@dataclass(frozen=True)
class KnownTrials:
    """A task's trials in a log.

    Args:
        trials: how many, without those that only timed a program again.
        best_cost: seconds of the fastest correct program; None if none ran.
        best_at: after how many trials it was found.
    """

    trials: int
    best_cost: float | None = None
    best_at: int = 0


def known_of_tasks(tasks: Sequence[SearchTask], log_file: str | Path, swept_bytes: int = 0) -> list[KnownTrials]:
    """What a log holds of each task: of records of the same computation on the same target, timed with such caches."""
    # caches are left out of targets, as `Record.fits_target` does
    keys = {
        (task.workload_key, task.compute_dag.hash_key(), without_caches(str(task.target.resolved()))): number
        for number, task in enumerate(tasks)
    }
    found: list[list[LoadedRecord]] = [[] for _ in tasks]
    for record in load_records(log_file, repeats=True):
        number = keys.get((record.workload_key, record.dag_hash, without_caches(record.target)))
        if number is not None and record.swept_bytes == swept_bytes:
            found[number].append(record)
    return [_known(records) for records in found]


def _known(records: Sequence[LoadedRecord]) -> KnownTrials:
    trials = [record.trace for record in records if not record.is_timed_again]
    best = choose_best(records)[0]
    if best is None:
        return KnownTrials(len(trials))
    return KnownTrials(len(trials), best.median, trials.index(best.trace) + 1 if best.trace in trials else len(trials))
