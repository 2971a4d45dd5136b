"""The records of one task: its trials in order, the best so far, failures, predictions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...auto_scheduler.compute_dag import ComputeDAG
from ...auto_scheduler.failures import Failures, failures_of
from ...auto_scheduler.loaded import LoadedRecord, workload_name_and_args
from ...dataclass import dataclass
from ...errors import TensorExprError
from ...tune.cost_model import Quality, quality
from ...tune.records import choose_best

_HASH = re.compile("[0-9a-f]{16,}")


def _plain(argument: Any) -> str:
    """An argument of a workload; shapes as 8x16."""
    if isinstance(argument, list):
        return "x".join(map(str, argument))
    return str(argument)


@dataclass(frozen=True, eq=False)
class Run:
    """All records of one workload on one target, in the order of the log."""

    workload_key: str
    dag_hash: str
    target: str
    num_threads: int
    records: tuple[LoadedRecord, ...]

    @property
    def title(self) -> str:
        """The workload in short: its name, or the start of its hash, and its arguments."""
        named = workload_name_and_args(self.workload_key)
        if named is None:
            return self.workload_key
        name, arguments = named
        short = f"computation {name[:8]}" if _HASH.fullmatch(name) else name
        return f"{short}({', '.join(_plain(argument) for argument in arguments)})"

    @cached_property
    def trials(self) -> tuple[LoadedRecord, ...]:
        """The records of first measurements: those of the best few, timed again at the end, are left out."""
        return tuple(record for record in self.records if not record.is_timed_again)

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
    def predicted_rounds(self) -> dict[int, list[tuple[float, float]]]:
        """Round -> (predicted, measured) logarithms of throughput of its trials that the model predicted and that ran."""
        found: dict[int, list[tuple[float, float]]] = {}
        for record in self.trials:
            predicted, number = record.policy.get("predicted"), record.policy.get("round")
            if record.is_success and isinstance(predicted, (int, float)) and not isinstance(predicted, bool):
                round_number = number if isinstance(number, int) else 0
                found.setdefault(round_number, []).append((float(predicted), -math.log(record.median)))
        return found

    @cached_property
    def predictions(self) -> list[tuple[float, float]]:
        """(predicted, measured) logarithms of throughput. A model's scores are up to a constant, another one after each training, so
        those of several rounds are moved to the mean of what their programs took."""
        rounds = list(self.predicted_rounds.values())
        if len(rounds) < 2:
            return [pair for pairs in rounds for pair in pairs]
        moves = [float(np.mean([measured - predicted for predicted, measured in pairs])) for pairs in rounds]
        return [(predicted + move, measured) for pairs, move in zip(rounds, moves, strict=True) for predicted, measured in pairs]

    @cached_property
    def qualities(self) -> dict[int, Quality]:
        """Round -> how good its predictions were; rounds of fewer than three are left out."""
        return {
            number: quality(np.array([p for p, _ in pairs]), np.exp([m for _, m in pairs]))
            for number, pairs in self.predicted_rounds.items()
            if len(pairs) >= 3
        }

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
