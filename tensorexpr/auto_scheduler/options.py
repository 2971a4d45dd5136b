"""What a user may say about tuning: hardware, builder, runner, number of trials, callbacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import TuningError
from ..target import Target

if TYPE_CHECKING:
    from .callbacks import MeasureCallback


@dataclass(frozen=True)
class HardwareParams:
    """The machine that candidates are made for; None means what the target says."""

    num_cores: int | None = None
    vector_unit_bytes: int | None = None
    cache_line_bytes: int | None = None

    def apply_to(self, target: Target) -> Target:
        """The target with these numbers."""
        if self.num_cores is None or self.num_cores == target.num_cores:
            return target
        return Target({**target.export(), "num-cores": self.num_cores})


@dataclass(frozen=True)
class LocalBuilder:
    """Candidates are compiled in worker processes on this machine.

    Args:
        timeout: seconds for one candidate, from the start of its job.
        n_parallel: workers; None means one per usable core.
    """

    timeout: float = 15.0
    n_parallel: int | None = None


@dataclass(frozen=True)
class LocalRunner:
    """Candidates run in a process of their own on this machine.

    Args:
        timeout: seconds for one candidate, from the start of its run.
        number, repeat, min_repeat_ms: as `Module.time_evaluator`; None leaves it to the runner's adaptive policy.
        enable_cpu_cache_flush: measure with cold caches.
    """

    timeout: float = 10.0
    number: int | None = None
    repeat: int | None = None
    min_repeat_ms: int | None = None
    enable_cpu_cache_flush: bool = False


class TuningOptions:
    """How a task is tuned.

    Args:
        num_measure_trials: programs to build and measure; 0 or 1 takes the best predicted one without measuring.
        early_stopping: end when so many trials in a row brought nothing better.
        num_measures_per_round: programs per round at most. The model learns between rounds, so short runs use
            smaller ones: a quarter of the trials, at least 8.
        verbose: 0 says nothing, 1 the progress, 2 every program.
        builder: "local" or a LocalBuilder.
        runner: "local" or a LocalRunner.
        measure_callbacks: called with every batch of results, such as `RecordToFile`.

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
    ) -> None:
        self.num_measure_trials = _at_least("num_measure_trials", num_measure_trials, 0)
        self.early_stopping = early_stopping
        self.num_measures_per_round = _at_least("num_measures_per_round", num_measures_per_round, 1)
        self.verbose = verbose
        self.builder: LocalBuilder = _local("builder", builder, LocalBuilder)
        self.runner: LocalRunner = _local("runner", runner, LocalRunner)
        self.measure_callbacks = tuple(measure_callbacks or ())

    @property
    def round_size(self) -> int:
        """Programs per round."""
        return min(self.num_measures_per_round, max(8, -(-self.num_measure_trials // 4)))


def _at_least(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise TuningError(f"TuningOptions: {name} is {value!r}; it takes an integer of at least {least}")
    return value


def _local(name: str, value: Any, kind: type[Any]) -> Any:
    if isinstance(value, kind):
        return value
    if value == "local":
        return kind()
    raise TuningError(f'TuningOptions: {name} is {value!r}; it takes "local" or a {kind.__name__}')
