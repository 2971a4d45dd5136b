"""What a user may say about tuning: hardware, builder, runner, number of trials, callbacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import TuningError
from ..target import Target, TargetLike
from .workers import LocalBuilder, LocalRPCMeasureContext, LocalRunner, RPCRunner

if TYPE_CHECKING:
    from .callbacks import MeasureCallback

__all__ = ["UNLIMITED", "HardwareParams", "LocalBuilder", "LocalRPCMeasureContext", "LocalRunner", "RPCRunner", "TuningOptions"]


@dataclass(frozen=True)
class HardwareParams:
    """The machine that candidates are made for. What isn't given, the target says, if one is given too; else it is None.

    Args:
        num_cores: that parallel loops may use.
        vector_unit_bytes, cache_line_bytes: sizes of a vector register and of a cache line.
        max_shared_memory_per_block, max_local_memory_per_block, max_threads_per_block, max_vthread_extent, warp_size: of GPUs;
            kept for programs that pass them, nothing here is made for GPUs.
        target, target_host: what to take the numbers from.
    """

    num_cores: int | None = None
    vector_unit_bytes: int | None = None
    cache_line_bytes: int | None = None
    max_shared_memory_per_block: int | None = None
    max_local_memory_per_block: int | None = None
    max_threads_per_block: int | None = None
    max_vthread_extent: int | None = None
    warp_size: int | None = None
    target: InitVar[TargetLike | None] = None
    target_host: InitVar[TargetLike | None] = None

    def __post_init__(self, target: TargetLike | None, target_host: TargetLike | None) -> None:
        if target is None:
            return
        made = Target(target) if target_host is None else Target(target, target_host)
        usual = {"num_cores": made.num_cores, "vector_unit_bytes": made.vector_bits // 8, "cache_line_bytes": made.cache_line_bytes}
        for name, value in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def apply_to(self, target: Target) -> Target:
        """The target with these numbers."""
        if self.num_cores is None or self.num_cores == target.num_cores:
            return target
        return Target({**target.export(), "num-cores": self.num_cores})

    def filled(self, target: Target) -> HardwareParams:
        """These numbers, and the target's for those that aren't given."""
        return replace(self, target=target, target_host=None)


UNLIMITED = 1 << 30


class TuningOptions:
    """How a task is tuned.

    Args:
        num_measure_trials: programs to build and measure; 0 takes the one that is predicted to be fastest.
        early_stopping: end when so many trials in a row brought nothing better.
        num_measures_per_round: programs per round at most. The model learns between rounds, so short runs use
            smaller ones: a quarter of the trials, at least 8.
        verbose: 0 says nothing, 1 the progress, 2 every program.
        builder: "local" or a LocalBuilder.
        runner: "local" or a LocalRunner.
        measure_callbacks: called with every batch of results, such as `RecordToFile`.
        budget_s: seconds of the whole search; the best program so far stands when they are used up. With it, 0 trials means
            as many as there is time for.

    Raises:
        TuningError: for a builder, runner or number that can't be served.
    """

    def __init__(
        self,
        num_measure_trials: int = 0,
        early_stopping: int | None = None,
        num_measures_per_round: int = 64,
        verbose: int = 1,
        builder: str | LocalBuilder = "local",
        runner: str | LocalRunner = "local",
        measure_callbacks: Sequence[MeasureCallback] | None = None,
        budget_s: float | None = None,
    ) -> None:
        self.num_measure_trials = _at_least("num_measure_trials", num_measure_trials, 0)
        self.early_stopping = None if early_stopping in (None, -1) else _at_least("early_stopping", early_stopping, 1)
        self.num_measures_per_round = _at_least("num_measures_per_round", num_measures_per_round, 1)
        self.verbose = verbose
        self.builder: LocalBuilder = _local("builder", builder, LocalBuilder)
        self.runner: LocalRunner = _local("runner", runner, LocalRunner)
        self.measure_callbacks = _callbacks(measure_callbacks or ())
        self.budget_s = _seconds("budget_s", budget_s)

    @property
    def most_trials(self) -> int:
        """Programs that are measured at most; under a time budget 0 means no limit."""
        return self.num_measure_trials or (UNLIMITED if self.budget_s is not None else 0)

    @property
    def round_size(self) -> int:
        """Programs per round."""
        if not self.num_measure_trials:
            return min(self.num_measures_per_round, 16)
        return min(self.num_measures_per_round, max(8, -(-self.num_measure_trials // 4)))


def _callbacks(given: Any) -> tuple[MeasureCallback, ...]:
    if not isinstance(given, (list, tuple)) or not all(hasattr(callback, "callback") for callback in given):
        raise TuningError(f'TuningOptions: measure_callbacks takes a list such as [auto_scheduler.RecordToFile("log.json")], not {given!r}')
    return tuple(given)


def _at_least(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise TuningError(f"TuningOptions: {name} is {value!r}; it takes an integer of at least {least}")
    return value


def _seconds(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise TuningError(f"TuningOptions: {name} is {value!r}; it takes a positive number of seconds, or None for no limit")
    return float(value)


def _local(name: str, value: Any, kind: type[Any]) -> Any:
    if isinstance(value, kind):
        return value
    if value == "local":
        return kind()
    raise TuningError(f'TuningOptions: {name} is {value!r}; it takes "local" or a {kind.__name__}')
