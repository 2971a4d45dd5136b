"""The workers that build and run programs on this machine, and what programs of TVM call to have a few built and run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..dataclass import dataclass, field, replace
from ..errors import TargetError, TuningError
from ..fleet.plugs import FleetBuilder, FleetRunner
from ..fleet.shared import running_at
from ..runtime.engine import check_runs_here
from ..spaces.gpu import is_gpu
from ..tune.measure import MeasureErrorNo, MeasureOptions, Measurer, MeasureResult, MeasureTask, Program, TimingPolicy
from ..tune.measure.builder import Build, Builder, Failure
from ..tune.measure.compiled import DEFAULT_PLUG, MakeCompiler
from ..tune.measure.places import OpenBuilding, OpenRunning, Places
from ..tune.measure.running import RunningHere
from .task_input import inputs_of_task

if TYPE_CHECKING:
    from .measure_input import MeasureInput


@dataclass(frozen=True)
class LocalBuilder:
    """Candidates are compiled in worker processes on this machine.

    Args:
        timeout: seconds for one candidate, from the start of its job.
        n_parallel: workers; None means one per usable core.
        build_func: "default", or a compiler of your own, as a function of a module that workers can import or as
            "module:function": it takes the task as JSON and returns what makes object code of traces, as
            `tune.measure.compiled.MakeCompiler` says.
        building: opens the place where they are compiled instead; a fleet's builder has one.

    Raises:
        TuningError: for another build_func.
    """

    timeout: float = 15.0
    n_parallel: int | None = None
    build_func: str | MakeCompiler = "default"
    building: OpenBuilding = field(default=Builder, repr=False)

    def __post_init__(self) -> None:
        """Refuse at once what `plug` can't name."""
        _plug_of(self.build_func)

    @staticmethod
    def of(given: LocalBuilder | FleetBuilder) -> LocalBuilder:
        """A fleet's builder as one of this front door."""
        if isinstance(given, LocalBuilder):
            return given
        return LocalBuilder(**given.given(), build_func=given.build_func, building=given.open)

    @property
    def plug(self) -> str:
        """How workers find the compiler, by its module and name."""
        return _plug_of(self.build_func)

    def build(self, measure_inputs: Sequence[MeasureInput], verbose: int = 1) -> list[BuildResult]:
        """Compile programs, a task's together; results come in the order of the inputs.

        Args:
            measure_inputs: what to compile.
            verbose: 1 prints a dot for each program.

        Raises:
            TuningError: if no worker can be started.
        """
        made: dict[int, BuildResult] = {}
        for task, places in _by_task(measure_inputs, self.building is Builder):
            # nothing runs here, so any runner will do
            with Measurer(task, measure_options(self, LocalRunner()), places=Places(self.building)) as measurer:
                for place, build in zip(places, measurer.compile([_program(measure_inputs[place]) for place in places]), strict=True):
                    made[place] = _build_result(task, build)
                    _say("." if not made[place].error_no else _FAILED_MARKS.get(made[place].error_no, ".E"), verbose)
        _say("\n", verbose)
        return [made[place] for place in range(len(measure_inputs))]


@dataclass(frozen=True)
class LocalRunner:
    """Candidates run in a process of their own on this machine.

    Args:
        timeout: seconds for one candidate, from the start of its run.
        number, repeat, min_repeat_ms: as `Module.time_evaluator`; None leaves it to the runner's adaptive policy.
        cooldown_interval: seconds to rest after each candidate.
        enable_cpu_cache_flush: measure with cold caches.
        device: the number of the GPU, for programs for GPUs; a CPU is device 0.
        swept_bytes: read so much else on each core before each call, which then finds its arrays where other kernels of a network would
            have left them; 0 calls in a row.
        running: opens the place where they run instead; a fleet's runner has one.

    Raises:
        TuningError: for a device that is no number, or a rest of negative length.
    """

    timeout: float = 10.0
    number: int | None = None
    repeat: int | None = None
    min_repeat_ms: int | None = None
    cooldown_interval: float = 0.0
    enable_cpu_cache_flush: bool = False
    device: int = 0
    swept_bytes: int = 0
    running: OpenRunning = field(default=RunningHere, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.device, bool) or not isinstance(self.device, int) or self.device < 0:
            raise TuningError(f"LocalRunner: device is {self.device!r}; it takes the number of a GPU, and 0 for a CPU")
        if not 0 <= self.cooldown_interval < float("inf"):
            raise TuningError(f"LocalRunner: cooldown_interval is {self.cooldown_interval!r}; it takes seconds from 0")

    @staticmethod
    def of(given: LocalRunner | FleetRunner) -> LocalRunner:
        """A fleet's runner as one of this front door."""
        return given if isinstance(given, LocalRunner) else LocalRunner(**given.given(), running=given.open)

    @property
    def is_here(self) -> bool:
        """Whether candidates run on this machine."""
        return self.running is RunningHere

    def run(self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult], verbose: int = 1) -> list[MeasureResult]:
        """Run programs that `LocalBuilder.build` compiled, and compare what they compute with the definition.

        Args:
            measure_inputs: what was compiled.
            build_results: what came of it. Programs that weren't compiled keep their error.
            verbose: 1 prints a star for each program.

        Raises:
            TuningError: if no worker can be started, or the lists differ in length.
        """
        if len(measure_inputs) != len(build_results):
            raise TuningError(f"run takes a build result for each input; got {len(build_results)} for {len(measure_inputs)}")
        made: dict[int, MeasureResult] = {}
        for task, places in _by_task(measure_inputs, self.is_here):
            # Nothing is compiled here, so any builder will do.
            with Measurer(task, measure_options(LocalBuilder(), self), places=Places(running=self.running)) as measurer:
                for place in places:
                    made[place] = measurer.run(_program(measure_inputs[place]), build_results[place].build)
                    _say("*" if made[place].is_success else "*E", verbose)
        _say("\n", verbose)
        return [made[place] for place in range(len(measure_inputs))]


class RPCRunner(LocalRunner):
    """Candidates run on the devices of a tracker, all that have a key: TVM's name for `Fleet(...).runner(key)`.

    The tracker is a scheduler of Dask (`python -m tensorexpr rpc_tracker`, or `dask scheduler`), and is asked when the first task is
    measured.

    Args:
        key: of the devices.
        host, port: of the tracker.
        priority: jobs of higher ones are begun sooner, if several clients wait.
        n_parallel: accepted; all devices work.
        timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, device: see `LocalRunner`.
    """

    def __init__(
        self,
        key: str,
        host: str,
        port: int,
        priority: int = 1,
        n_parallel: int = 1,
        timeout: float = 10.0,
        number: int = 3,
        repeat: int = 1,
        min_repeat_ms: int = 100,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        device: int = 0,
    ) -> None:
        running = running_at(host, port, key, priority)
        super().__init__(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, device, running=running)
        # The class is frozen.
        for name, value in (("key", key), ("host", host), ("port", port)):
            object.__setattr__(self, name, value)


class LocalRPCMeasureContext:
    """What programs write that measure through a tracker on their own machine: `measure_ctx.runner` measures here, without one.

    Args:
        priority, n_parallel: accepted; programs that run at the same time measure each other.
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


@dataclass(frozen=True)
class BuildResult:
    """What became of a program in the compile workers.

    Args:
        filename: of the object code; empty, since it stays in memory.
        args: the arguments of the function: placeholders and computed tensors.
        error_no: what went wrong; 0 if nothing did.
        error_msg: the error.
        time_cost: seconds it took.
        build: the object code, for `LocalRunner.run`.
    """

    filename: str
    args: tuple[Any, ...]
    error_no: MeasureErrorNo
    error_msg: str | None
    time_cost: float
    build: Build = field(repr=False)


def measure_options(builder: LocalBuilder, runner: LocalRunner) -> MeasureOptions:
    """The options of workers that a user's builder and runner ask for."""
    usual = TimingPolicy()
    timing = replace(
        usual,
        number=usual.number if runner.number is None else runner.number,
        repeat=usual.repeat if runner.repeat is None else runner.repeat,
        min_repeat_ms=usual.min_repeat_ms if runner.min_repeat_ms is None else runner.min_repeat_ms,
        flush_caches=runner.enable_cpu_cache_flush,
        cooldown_s=runner.cooldown_interval,
        swept_bytes=runner.swept_bytes,
    )
    if timing.flush_caches:  # only the first call after a flush is a cold one
        timing = replace(timing, number=1, min_repeat_ms=0.0)
    made = MeasureOptions(
        timing=timing, build_timeout_s=builder.timeout, run_timeout_s=runner.timeout, compiler=builder.plug, device=runner.device
    )
    return made if builder.n_parallel is None else replace(made, n_parallel=builder.n_parallel)


def measure_task(task: Any, seed: int, here: bool = True) -> MeasureTask:
    """A task in the form that workers get; `here` says whether its programs run on this machine.

    Raises:
        TuningError: for a GPU that isn't here, with what can be had without one.
    """
    tensors = tuple(task.compute_dag.tensors)
    if here and is_gpu(task.target):
        try:
            check_runs_here(task.target)
        except TargetError as error:
            raise TuningError(
                f"programs for {task.target} are measured on a GPU, and {error}. Without one, 0 trials take the schedule by rules "
                "(TuningOptions(0), then apply_best), SketchPolicy(task).evolutionary_search((), 16) ranks programs by what is counted of "
                "them, and a Fleet measures on machines that have one"
            ) from None
    return MeasureTask(tensors, task.target, inputs_of_task(task.workload_key, tensors, task.task_input_names), seed, here=here)


_FAILED_MARKS = {MeasureErrorNo.BUILD_TIMEOUT: ".T"}


def _by_task(inputs: Sequence[MeasureInput], here: bool) -> Iterator[tuple[MeasureTask, list[int]]]:
    """The tasks of some inputs, each with the places of its inputs."""
    places: dict[int, list[int]] = {}
    for place, made in enumerate(inputs):
        # by identity: the inputs keep their tasks alive, so that no number is used twice
        places.setdefault(id(made.task), []).append(place)
    for listed in places.values():
        yield measure_task(inputs[listed[0]].task, 0, here), listed


def _program(made: MeasureInput) -> Program:
    return Program(0, made.trace)


def _build_result(task: MeasureTask, build: Build) -> BuildResult:
    failure = build.made if isinstance(build.made, Failure) else None
    error = MeasureErrorNo.NO_ERROR if failure is None else failure.error_no
    return BuildResult("", task.args, error, None if failure is None else failure.message, build.seconds, build)


def _say(mark: str, verbose: int) -> None:
    if verbose >= 1:
        print(mark, end="", flush=True)


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
