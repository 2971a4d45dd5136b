"""Builders and runners of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ...errors import RPCError, TensorExprError, TuningError
from ...fleet.plugs import FleetBuilder, FleetRunner
from ...fleet.shared import running_at
from ...rpc import tracker
from ...schedule.trace import Trace
from ...te.operation import PlaceholderOp
from ...tir.arithmetic import as_int
from ...tune.measure import MeasureErrorNo, MeasureOptions, Measurer, MeasureTask, Program, TimingPolicy
from ...tune.measure.builder import Build, Failure
from ...tune.measure.builder import Builder as BuildingHere
from ...tune.measure.compiled import DEFAULT_PLUG
from ...tune.measure.places import OpenBuilding, OpenRunning, Places
from ...tune.measure.running import RunningHere
from ...tune.space import Computed
from ..errors import InstantiationError
from ..template_space import TemplateSpace
from .measure import Builder, Measured, MeasureInput, MeasureResult, Runner


class BuildResult(NamedTuple):
    """What became of a configuration in the compile workers.

    Args:
        filename: of the code, for programs that look for one; it stays in memory.
        arg_info: shape and type of each argument.
        error: what went wrong; None if nothing did.
        time_cost: seconds it took.
    """

    filename: str
    arg_info: Any
    error: Exception | None
    time_cost: float


class _Built(BuildResult):
    """With the object code, for `LocalRunner.run`."""

    program: Program
    build: Build


class LocalBuilder(Builder):
    """Configurations are compiled in worker processes on this machine.

    Args:
        timeout: seconds for one.
        n_parallel: workers; as many as there are cores if None.
        build_kwargs, do_fork, runtime: kept for programs that pass them; workers are always processes of their own, never forked.
        build_func: "default"; others are for devices that code is uploaded to.

    Raises:
        TuningError: for another build_func.
    """

    building: OpenBuilding = staticmethod(BuildingHere)

    def __init__(
        self,
        timeout: float = 10,
        n_parallel: int | None = None,
        build_kwargs: Any = None,
        build_func: Any = "default",
        do_fork: bool = False,
        runtime: Any = None,
    ) -> None:
        super().__init__(timeout, n_parallel, build_kwargs)
        if build_func != "default":
            raise TuningError(f'LocalBuilder: build_func is {build_func!r}; code is built for this machine, by "default"')
        self._open: tuple[Any, Measurer, TemplateSpace] | None = None

    @staticmethod
    def of(given: FleetBuilder) -> LocalBuilder:
        """A fleet's builder as one of this front door."""
        made = LocalBuilder(**given.given(), build_func=given.build_func)
        made.building = given.open
        return made

    @contextmanager
    def workers(self, space: TemplateSpace) -> Iterator[tuple[Measurer, TemplateSpace]]:
        """The workers of a task, with its programs. Within `with builder.workers(space):` each `build` for it uses the same ones."""
        # not the space itself: each call of `build` makes another one of its inputs
        key = (space.task.workload, str(space.task.target))
        if self._open is not None and self._open[0] == key:
            yield self._open[1:]
            return
        with Measurer(measure_task(space), measure_options(self, LocalRunner()), places=Places(self.building)) as measurer:
            before, self._open = self._open, (key, measurer, space)
            try:
                yield measurer, space
            finally:
                self._open = before

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[Any]:
        """Compile configurations of one or several tasks; a `BuildResult` for each."""
        made: dict[int, _Built] = {}
        for space, places in _by_task(measure_inputs):
            with self.workers(space) as (measurer, kept):
                programs = [_program(kept, measure_inputs[place]) for place in places]
                sound = [program for program in programs if not program.refused]
                builds = dict(zip((program.number for program in sound), measurer.compile(sound), strict=True))
            info = tuple((tuple(as_int(size) for size in arg.shape), str(arg.dtype)) for arg in space.example.args)
            for place, program in zip(places, programs, strict=True):
                refused = Build(Failure(MeasureErrorNo.INSTANTIATION_ERROR, program.refused), 0.0)
                build = builds.get(program.number, refused)
                failure = build.made if isinstance(build.made, Failure) else None
                error = InstantiationError if program.refused else TuningError
                made[place] = _Built("", info, None if failure is None else error(failure.message), build.seconds)
                made[place].program, made[place].build = program, build
        return [made[place] for place in range(len(measure_inputs))]


class LocalRunner(Runner):
    """Configurations run in a process of their own on this machine, and what they compute is compared with the definition.

    Where random inputs don't do, such as indices of a sparse operator, `ref_input` is set to an array for each argument of the task, in
    order; those of results are ignored.

    Args:
        timeout: seconds for one.
        number, repeat: as `Module.time_evaluator`.
        min_repeat_ms: the least time of a repeat; with 0 it is long enough to tell programs apart.
        cooldown_interval: seconds to rest after each. None are needed (TVM rests for 0.1): repeats that meet a busy core are repeated.
        enable_cpu_cache_flush: measure with cold caches.
        module_loader: refused: code is loaded by our workers.

    Raises:
        TuningError: for a module_loader.
    """

    ref_input: Sequence[Any] | None = None
    running: OpenRunning = staticmethod(RunningHere)

    def __init__(
        self,
        timeout: float = 10,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        module_loader: Any = None,
    ) -> None:
        super().__init__(timeout, 1)
        if module_loader is not None:
            raise TuningError("LocalRunner: workers of this machine load code themselves; a module_loader is for devices")
        self.number, self.repeat, self.min_repeat_ms = number, repeat, min_repeat_ms
        self.cooldown_interval, self.enable_cpu_cache_flush = cooldown_interval, enable_cpu_cache_flush

    @staticmethod
    def of(given: FleetRunner) -> LocalRunner:
        """A fleet's runner as one of this front door."""
        made = LocalRunner(**given.given())
        made.running = given.open
        return made

    @property
    def is_here(self) -> bool:
        """Whether configurations run on this machine."""
        return self.running is RunningHere

    def get_build_kwargs(self) -> dict[str, Any]:
        """Nothing: programs run where they are built."""
        return {}

    def run(self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]) -> list[MeasureResult]:
        """Run what `LocalBuilder.build` compiled.

        Raises:
            TuningError: for results of another builder.
        """
        made: dict[int, MeasureResult] = {}
        for space, places in _by_task(measure_inputs):
            where = Places(running=self.running)
            with Measurer(measure_task(space, self), measure_options(LocalBuilder(), self), places=where) as measurer:
                for place in places:
                    built = build_results[place]
                    if not isinstance(built, _Built):
                        raise TuningError(f"LocalRunner runs what LocalBuilder builds, not {built!r:.100}")
                    made[place] = Measured.of(measurer.run(built.program, built.build))
        return [made[place] for place in range(len(measure_inputs))]


class RPCRunner(LocalRunner):
    """Configurations run on the devices of a tracker, all that have a key: TVM's name for `Fleet(...).runner(key)`.

    The tracker is a scheduler of Dask (`python -m tensorexpr rpc_tracker`, or `dask scheduler`), and is asked when the first task is
    measured.

    Args:
        key: of the devices.
        host, port: of the tracker; None for TVM_TRACKER_HOST and TVM_TRACKER_PORT.
        priority: jobs of higher ones are begun sooner, if several clients wait.
        n_parallel: accepted; all devices work.
        timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, module_loader: see `LocalRunner`.
    """

    def __init__(
        self,
        key: str,
        host: str | None,
        port: int | None,
        priority: int = 1,
        timeout: float = 10,
        n_parallel: int | None = None,
        number: int = 4,
        repeat: int = 3,
        min_repeat_ms: int = 0,
        cooldown_interval: float = 0.0,
        enable_cpu_cache_flush: bool = False,
        module_loader: Any = None,
    ) -> None:
        super().__init__(timeout, number, repeat, min_repeat_ms, cooldown_interval, enable_cpu_cache_flush, module_loader)
        self.key, self.host, self.port, self.priority = key, host, port, priority
        self.running = running_at(host, port, key, priority)


def _by_task(inputs: Sequence[MeasureInput]) -> Iterator[tuple[TemplateSpace, list[int]]]:
    """The spaces of some inputs, each with the places of its inputs."""
    places: dict[Any, list[int]] = {}
    for place, made in enumerate(inputs):
        places.setdefault((made.task.workload, str(made.target)), []).append(place)
    for listed in places.values():
        yield TemplateSpace(inputs[listed[0]].task), listed


def _program(space: TemplateSpace, made: MeasureInput) -> Program:
    """A configuration as workers get it; its number is its point's."""
    try:
        found = space.program(space.row(made.config.index))
    except TensorExprError as error:
        return Program(made.config.index, Trace(), refused=str(error))
    return Program(made.config.index, found.trace, found.dag) if isinstance(found, Computed) else Program(made.config.index, found)


def measure_task(space: TemplateSpace, runner: LocalRunner | None = None) -> MeasureTask:
    """A task in the form that workers get, with the inputs that a runner has for it.

    Raises:
        InstantiationError: if the template makes no program to take arguments from.
        TuningError: for inputs that don't fit.
    """
    args, given = space.example.args, None if runner is None else runner.ref_input
    here = runner is None or runner.is_here
    if given is None:
        return MeasureTask(args, space.task.target, here=here)
    if len(given) != len(args):
        raise TuningError(f"ref_input has {len(given)} arrays for the {len(args)} arguments {', '.join(arg.op.name for arg in args)}")
    arrays = {
        arg: np.asarray(array.numpy() if hasattr(array, "numpy") else array)
        for arg, array in zip(args, given, strict=True)
        if isinstance(arg.op, PlaceholderOp)
    }
    return MeasureTask(args, space.task.target, arrays, here=here)


def measure_options(builder: LocalBuilder, runner: LocalRunner) -> MeasureOptions:
    """The options of workers that a builder and a runner ask for."""
    usual = TimingPolicy()
    timing = replace(
        usual,
        number=runner.number,
        repeat=runner.repeat,
        min_repeat_ms=float(runner.min_repeat_ms) or usual.min_repeat_ms,
        flush_caches=runner.enable_cpu_cache_flush,
        cooldown_s=runner.cooldown_interval,
    )
    if timing.flush_caches:  # only the first call after a flush is a cold one
        timing = replace(timing, number=1, min_repeat_ms=0.0)
    return MeasureOptions(
        timing=timing, n_parallel=builder.n_parallel, build_timeout_s=builder.timeout, run_timeout_s=runner.timeout, compiler=DEFAULT_PLUG
    )


def run_through_rpc(*args: Any, **kwargs: Any) -> NoReturn:
    """Refuse: workers of this machine need no session.

    Raises:
        RPCError: always.
    """
    raise RPCError("programs run in workers of this machine; use LocalRunner")


def check_remote(
    target: Any, device_key: str, host: str | None = None, port: int | None = None, priority: int = 100, timeout: int = 10
) -> bool:
    """Whether a tracker has a device that is free within `timeout` seconds; see `rpc.tracker.check_remote`."""
    return tracker.check_remote(device_key, host, port, priority, timeout)


class DefaultModuleLoader:
    """Kept for programs that name it: code is loaded by our workers.

    Args:
        pre_load_function: would be called before a module is loaded.
    """

    def __init__(self, pre_load_function: Callable[..., Any] | None = None) -> None:
        self.pre_load_function = pre_load_function


def default_module_loader(pre_load_function: Callable[..., Any] | None = None) -> DefaultModuleLoader:
    """A `DefaultModuleLoader`."""
    return DefaultModuleLoader(pre_load_function)


def set_cuda_target_arch(arch: Any) -> None:
    """Refuse: code is made for CPUs.

    Raises:
        TuningError: always.
    """
    raise TuningError(f"code is made for CPUs; name the architecture {arch!r} in the target of what simulates it")
