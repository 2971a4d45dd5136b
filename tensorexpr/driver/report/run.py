"""The records of one task: its trials in order, the best so far, failures, predictions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...auto_scheduler.compute_dag import ComputeDAG
from ...auto_scheduler.failures import Failures, failures_of
from ...auto_scheduler.loaded import LoadedRecord
from ...errors import TensorExprError
from ...tune.cost_model import rank_correlation
from ...tune.records import choose_best


@dataclass(frozen=True, eq=False)
class Run:
    """All records of one workload on one target, in the order of the log."""

    workload_key: str
    dag_hash: str
    target: str
    num_threads: int
    records: tuple[LoadedRecord, ...]

    @cached_property
    def trials(self) -> tuple[LoadedRecord, ...]:
        """The records of first measurements: those of the best few, timed again at the end, are left out."""
        return tuple(record for record in self.records if "rounds" not in record.policy)

    @cached_property
    def best(self) -> LoadedRecord | None:
        """The fastest record that may be applied."""
        return choose_best(self.records)[0]

    @cached_property
    def plain(self) -> LoadedRecord | None:
        """The record of the unscheduled program."""
        return choose_best(record for record in self.records if not len(record.trace))[0]

    @cached_property
    def first(self) -> LoadedRecord | None:
        """The record of what was chosen before anything was measured; None if it failed."""
        first = next((record for record in self.trials if len(record.trace)), None)
        return first if first is not None and first.is_success else None

    @cached_property
    def best_so_far(self) -> list[float]:
        """The least seconds after each trial; infinite before the first success."""
        least, curve = math.inf, []
        for record in self.trials:
            least = min(least, record.median)
            curve.append(least)
        return curve

    @cached_property
    def failures(self) -> Failures:
        """What went wrong."""
        return failures_of([(record.trace, record) for record in self.trials])

    @cached_property
    def predictions(self) -> list[tuple[float, float]]:
        """(predicted, measured) logarithms of throughput of the trials that the model predicted and that ran."""
        found = []
        for record in self.trials:
            predicted = record.policy.get("predicted")
            if record.is_success and isinstance(predicted, (int, float)) and not isinstance(predicted, bool):
                found.append((float(predicted), -math.log(record.median)))
        return found

    @property
    def correlation(self) -> float | None:
        """The rank correlation of predictions and measurements; None for less than three of them."""
        if len(self.predictions) < 3:
            return None
        predicted, measured = zip(*self.predictions, strict=True)
        return rank_correlation(np.array(predicted), np.array(measured))

    @cached_property
    def dag(self) -> ComputeDAG | None:
        """The computation, if its workload is registered here and still the same."""
        try:
            made = ComputeDAG(self.workload_key)
        except TensorExprError:
            return None
        return made if made.hash_key() == self.dag_hash else None


def runs_of(records: Sequence[LoadedRecord]) -> list[Run]:
    """The runs that a log holds, in the order in which they begin."""
    found: dict[tuple[str, str, str, int], list[LoadedRecord]] = {}
    for record in records:
        found.setdefault((record.workload_key, record.dag_hash, record.target, record.num_threads), []).append(record)
    return [Run(*key, tuple(listed)) for key, listed in found.items()]
