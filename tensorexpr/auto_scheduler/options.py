"""What a user may say about tuning: hardware, builder, runner, number of trials, callbacks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import TuningError
from ..target import Target
from ..tune.measure.compiled import DEFAULT_PLUG, MakeCompiler

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
        build_func: "default", or a compiler of your own, as a function of a module that workers can import or as
            "module:function": it takes the task as JSON and returns what makes object code of traces, as
            `tune.measure.compiled.MakeCompiler` says.

    Raises:
        TuningError: for another build_func.
    """

    timeout: float = 15.0
    n_parallel: int | None = None
    build_func: str | MakeCompiler = "default"

    def __post_init__(self) -> None:
        """Refuse at once what `plug` can't name."""
        _plug_of(self.build_func)

    @property
    def plug(self) -> str:
        """How workers find the compiler, by its module and name."""
        return _plug_of(self.build_func)


@dataclass(frozen=True)
class LocalRunner:
    """Candidates run in a process of their own on this machine.

    Args:
        timeout: seconds for one candidate, from the start of its run.
        number, repeat, min_repeat_ms: as `Module.time_evaluator`; None leaves it to the runner's adaptive policy.
        cooldown_interval: seconds to rest after each candidate.
        enable_cpu_cache_flush: measure with cold caches.
        device: 0; a CPU is one device.

    Raises:
        TuningError: for another device, or a rest of negative length.
    """

    timeout: float = 10.0
    number: int | None = None
    repeat: int | None = None
    min_repeat_ms: int | None = None
    cooldown_interval: float = 0.0
    enable_cpu_cache_flush: bool = False
    device: int = 0

    def __post_init__(self) -> None:
        if self.device != 0:
            raise TuningError(f"LocalRunner: device is {self.device!r}; a CPU is device 0")
        if not 0 <= self.cooldown_interval < float("inf"):
            raise TuningError(f"LocalRunner: cooldown_interval is {self.cooldown_interval!r}; it takes seconds from 0")


class LocalRPCMeasureContext:
    """What programs write that measure through a tracker on their own machine: `measure_ctx.runner` is a `LocalRunner`.

    Args:
        priority, n_parallel: accepted; there is no tracker, and programs that run at the same time measure each other.
        timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, device: see `LocalRunner`.
    """

    def __init__(
        self,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10.0,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        self.runner = LocalRunner(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, device)


def _plug_of(build_func: str | MakeCompiler) -> str:
    """A compiler as workers find it: `module:function`."""
    if build_func == "default":
        return DEFAULT_PLUG
    name = build_func if isinstance(build_func, str) else _importable_name(build_func)
    if not all(part.replace(".", "_").isidentifier() for part in name.split(":", 1)) or name.count(":") != 1:
        raise TuningError(
            f'LocalBuilder: build_func is {build_func!r}; it takes "default", or a function of a module that workers can '
            'import, also as "module:function"'
        )
    return name


def _importable_name(function: object) -> str:
    """`module:function` of a function at the top of a module; empty for others, such as those of the program that runs."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    found = getattr(sys.modules.get(module), name, None)
    return f"{module}:{name}" if found is function and module != "__main__" else ""


UNLIMITED = 1 << 30


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
        self.measure_callbacks = tuple(measure_callbacks or ())
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
