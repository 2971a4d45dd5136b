"""What a user may say about tuning: hardware, builder, runner, number of trials, callbacks; and tasks as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dataclass import InitVar, dataclass, replace
from ..errors import RecordError, TuningError
from ..fleet.plugs import FleetBuilder, FleetRunner
from ..spaces.gpu import is_gpu
from ..spaces.gpu.block import limits_of
from ..target import Target, TargetLike
from .workers import LocalBuilder, LocalRPCMeasureContext, LocalRunner, RPCRunner

if TYPE_CHECKING:
    from .callbacks import MeasureCallback

__all__ = [
    "HARDWARE",
    "UNLIMITED",
    "HardwareParams",
    "LocalBuilder",
    "LocalRPCMeasureContext",
    "LocalRunner",
    "RPCRunner",
    "TuningOptions",
    "checked_task",
]

HARDWARE = (
    "num_cores",
    "vector_unit_bytes",
    "cache_line_bytes",
    "max_shared_memory_per_block",
    "max_local_memory_per_block",
    "max_threads_per_block",
    "max_vthread_extent",
    "warp_size",
)
_TYPES = (str, str, list, str, int, list, str, str)
_USUAL: tuple[Any, ...] = ("", "", [], "", None, [], "", "")
_LEAST = 2


def checked_task(data: Any) -> tuple[Any, ...]:
    """Key, target, hardware numbers, host, layout option, names of inputs, computation and description of such values.

    Raises:
        RecordError: saying which value is wrong.
    """
    if not isinstance(data, Sequence) or isinstance(data, str) or not _LEAST <= len(data) <= len(_TYPES):
        raise RecordError(f"a task is a list of {_LEAST} to {len(_TYPES)} values: its key, its target, ...")
    for place, (value, kind) in enumerate(zip(data, _TYPES, strict=False)):
        if not isinstance(value, kind):
            raise RecordError(f"value {place} of a task is {value!r:.60}; it is of type {kind.__name__}")
    if not all(type(number) is int for number in (data[2] if len(data) > _LEAST else ())):
        raise RecordError("the hardware parameters of a task are integers")
    return (*data, *_USUAL[len(data) :])


_VECTOR_BYTES = (16, 32, 64)
_OF_CPUS = ("num_cores", "vector_unit_bytes", "cache_line_bytes")
# Of GPUs, with the options of targets that say the same.
_OF_GPUS = {
    "max_shared_memory_per_block": "max_shared_memory_per_block",
    "max_local_memory_per_block": "max_local_memory_per_block",
    "max_threads_per_block": "max_threads_per_block",
    "max_vthread_extent": "max_vthread_extent",
    "warp_size": "thread_warp_size",
}
# What TVM has for a GPU: as many cores as there are, the widest access of a thread, and lines that nothing depends on.
_USUAL_OF_GPUS = {"num_cores": -1, "vector_unit_bytes": 16, "cache_line_bytes": 64}
_NO_LIMIT = (1 << 31) - 1


@dataclass(frozen=True)
class HardwareParams:
    """The machine that candidates are made for. What isn't given, the target says, if one is given too; else it is None.

    A task's target follows these numbers, and refuses those that it can't: `SearchTask(hardware_params=...)`.

    Args:
        num_cores: that parallel loops may use.
        vector_unit_bytes: of the vector registers that code uses: 16, 32 or 64, and no more than the target's CPU has.
        cache_line_bytes: of a cache line; only what the target's CPU has.
        max_shared_memory_per_block, max_local_memory_per_block: bytes that the threads of a block share, and that each of them has; of
            GPUs. A CPU has none of these and the next ones, so there they are 0 or left out; on a GPU of the first three only those
            that TVM writes for one are taken (-1, 16 and 64).
        max_threads_per_block, max_vthread_extent, warp_size: threads of a block, virtual threads along an axis, threads of a warp.
        target, target_host: what to take the numbers from.

    Raises:
        TuningError: for what is no whole number.
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
        for name in HARDWARE:
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
                raise TuningError(f"HardwareParams: {name} is {value!r}; it takes a whole number, or None for the target's")
        if target is None:
            return
        made = Target(target) if target_host is None else Target(target, target_host)
        usual = _of_gpu(made) if is_gpu(made) else _of_cpu(made)
        for name, value in usual.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)

    def apply_to(self, target: Target) -> Target:
        """The target with these numbers.

        Raises:
            TuningError: for a number that the target's code can't follow.
        """
        if is_gpu(target):
            options = self._gpu_options(target)
            return Target({**target.export(), **options}) if options else target
        options = {}
        if target.kind == "llvm":
            self._check_cpu(target)
            # 0 is what programs of TVM write for "not given".
            if self.vector_unit_bytes and self.vector_unit_bytes * 8 != target.vector_bits:
                options["vector-width"] = self.vector_unit_bytes * 8
        if self.num_cores and self.num_cores != target.num_cores:
            options["num-cores"] = self.num_cores
        return Target({**target.export(), **options}) if options else target

    def _check_cpu(self, target: Target) -> None:
        """Refuse what code for a CPU can't follow: fewer cores than one, wider vectors or other lines than it has, what only GPUs have."""
        widest, line = target.vector_bits // 8, target.cache_line_bytes
        if self.num_cores is not None and self.num_cores < 0:
            raise TuningError(f"HardwareParams: num_cores is {self.num_cores}; parallel loops use at least one core of {target}")
        if self.vector_unit_bytes and self.vector_unit_bytes not in _VECTOR_BYTES:
            raise TuningError(f"HardwareParams: vector_unit_bytes is {self.vector_unit_bytes}; vector registers have 16, 32 or 64 bytes")
        if self.vector_unit_bytes and self.vector_unit_bytes > widest:
            raise TuningError(
                f"HardwareParams: vector_unit_bytes is {self.vector_unit_bytes}, but code for {target} has vectors of {widest} bytes; "
                "leave it out, or name a CPU with wider ones by -mcpu"
            )
        if self.cache_line_bytes and self.cache_line_bytes != line:
            raise TuningError(
                f"HardwareParams: cache_line_bytes is {self.cache_line_bytes}, but the lines of {target.mcpu} have {line} bytes; leave it "
                "out, or name another CPU by -mcpu"
            )
        foreign = [name for name in HARDWARE if name not in _OF_CPUS and getattr(self, name)]
        if foreign:
            raise TuningError(f"HardwareParams: {', '.join(foreign)} tell of GPUs, but the target is a CPU, {target}; leave them out")

    def _gpu_options(self, target: Target) -> dict[str, int]:
        """The options of a target for a GPU that say what is given; refuses more than its chip has, and what no program depends on."""
        for name, usual in _USUAL_OF_GPUS.items():
            value = getattr(self, name)
            if value not in (None, 0, usual):
                raise TuningError(
                    f"HardwareParams: {name} is {value}, but programs for {target.kind.name} don't depend on it; leave it out. "
                    f"Of GPUs there are {', '.join(_OF_GPUS)}"
                )
        known, options = _of_gpu(target), {}
        for name, option in _OF_GPUS.items():
            value = getattr(self, name)
            if value is None or value == 0 or value == known[name]:
                continue
            # virtual threads are made by the compiler, and memory of a thread is what it is given
            if (
                value < 1
                or (name not in ("max_vthread_extent", "max_local_memory_per_block") and value > known[name])
                or name == "warp_size"
            ):
                raise TuningError(
                    f"HardwareParams: {name} is {value}, but {target} has {known[name]}; leave it out, or name another chip by -arch"
                )
            options[option] = value
        return options

    def filled(self, target: Target) -> HardwareParams:
        """These numbers, and the target's for those that aren't given."""
        return replace(self, target=target, target_host=None)


def _of_cpu(target: Target) -> dict[str, int]:
    return {"num_cores": target.num_cores, "vector_unit_bytes": target.vector_bits // 8, "cache_line_bytes": target.cache_line_bytes}


def _of_gpu(target: Target) -> dict[str, int]:
    limits = limits_of(target)
    local = _NO_LIMIT if limits.local is None else limits.local
    given = (limits.shared, local, limits.threads, limits.virtual, limits.warp)
    return {**_USUAL_OF_GPUS, **dict(zip(_OF_GPUS, given, strict=True))}


UNLIMITED = 1 << 30


class TuningOptions:
    """How a task is tuned.

    Args:
        num_measure_trials: programs to build and measure; 0 takes the one that is predicted to be fastest.
        early_stopping: end when so many trials in a row brought nothing better.
        num_measures_per_round: programs per round at most. The model learns between rounds, so short runs use
            smaller ones: a quarter of the trials, at least 8.
        verbose: 0 says nothing, 1 the progress, 2 every program.
        builder: "local", a LocalBuilder or `Fleet.builder()`.
        runner: "local", a LocalRunner or `Fleet.runner(key)`.
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
        builder: str | LocalBuilder | FleetBuilder = "local",
        runner: str | LocalRunner | FleetRunner = "local",
        measure_callbacks: Sequence[MeasureCallback] | None = None,
        budget_s: float | None = None,
    ) -> None:
        self.num_measure_trials = _at_least("num_measure_trials", num_measure_trials, 0)
        # -1 is what programs of TVM write for "never"
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
            # under a time budget alone nobody knows how many rounds there will be: small ones let the model learn soon
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
    if isinstance(value, (kind, FleetBuilder if kind is LocalBuilder else FleetRunner)):
        return kind.of(value)
    if value == "local":
        return kind()
    raise TuningError(f'TuningOptions: {name} is {value!r}; it takes "local", a {kind.__name__} or what a Fleet gives')
