"""`LocalRunner`: programs run, compared with the unscheduled one and timed, in a process of their own."""

from __future__ import annotations

import math
import shutil
import weakref
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from ...errors import TargetError, TuningError
from ...fleet.plugs import FleetRunner
from ...runtime.engine import check_runs_here
from ...runtime.registry import get_global_func
from ...spaces.gpu import is_gpu
from ...target import Target
from ...tir.function import IRModule
from ...tir.serialize.module_graph import module_from_graph
from ...tir.structural_digest import structural_hash
from ...tune.measure.builder import Failure
from ...tune.measure.compiled import CompiledCandidate
from ...tune.measure.errors import MeasureErrorNo
from ...tune.measure.folder import SharedFolder
from ...tune.measure.outputs import outputs_of
from ...tune.measure.places import OpenRunning, Running
from ...tune.measure.results import MeasureOptions
from ...tune.measure.running import RunningHere
from ...tune.measure.timing import TimingPolicy
from ..arg_info import ArgInfo, entry_func, shapes_of
from ..builder.artifact import read_artifact
from ..utils import TIMED_OUT
from .config import EvaluatorConfig
from .in_process import AllocArgument, InProcess, RunEvaluator, alloc_argument_common, run_evaluator_common
from .reference import program_of
from .runner import LocalRunnerFuture, PyRunner, RunnerFuture, RunnerInput


class _Task:
    """One unscheduled program: what runs its programs, the files of its arrays, the best time so far."""

    def __init__(self, running: Running, folder: Path) -> None:
        self.running = running
        self._folder = folder
        self.best = math.inf

    def close(self) -> None:
        """End all processes and remove the files."""
        self.running.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def default_alloc_argument(device: Any, args_info: Sequence[Any], alloc_repeat: int) -> list[list[Any]]:
    """Random arguments, so many times anew: what serves where the caller gives no function."""
    return alloc_argument_common(device, args_info, alloc_repeat)


def _named(function: Callable[..., Any] | str | None) -> Any:
    return get_global_func(function) if isinstance(function, str) else function


class LocalRunner(PyRunner, kind="local"):
    """Runs programs in a process of their own, each within a limit of time; one that crashes, hangs or computes something else than the
    unscheduled program has that as its result.

    Functions of the caller run in this process, one program after another and without comparing results:
    f_alloc_argument, f_run_evaluator, f_cleanup.

    Args:
        timeout_sec: limit of each program.
        evaluator_config: how programs are timed. If None as by default, except that one is given up early that is 3 times slower
            than the best so far.
        cooldown_sec: rest after each program.
        alloc_repeat: sets of arguments, for functions of the caller.
        f_alloc_argument: takes (device, arguments as JSON, alloc_repeat) and gives sets of arguments; or a registered name.
        f_run_evaluator: takes (module, device, EvaluatorConfig, sets of arguments) and gives seconds; or a registered name.
        f_cleanup: is called after each program; or a registered name.
        initializer: called at once; it may register functions.
        max_workers: accepted; programs that ran at the same time would disturb each other.
    """

    name: ClassVar[str] = "LocalRunner"
    running: OpenRunning = staticmethod(RunningHere)

    def __init__(
        self,
        timeout_sec: float = 30,
        evaluator_config: EvaluatorConfig | None = None,
        cooldown_sec: float = 0.0,
        alloc_repeat: int = 1,
        f_alloc_argument: AllocArgument | str | None = None,
        f_run_evaluator: RunEvaluator | str | None = None,
        f_cleanup: Callable[[], Any] | str | None = None,
        initializer: Callable[[], None] | None = None,
        max_workers: int | None = None,
    ) -> None:
        self.timeout_sec = timeout_sec
        self.evaluator_config = EvaluatorConfig.normalized(evaluator_config)
        self.cooldown_sec = cooldown_sec
        self.alloc_repeat = alloc_repeat
        if initializer is not None:
            initializer()  # it may register what the names stand for
        self._here: InProcess | None = None
        if any(function is not None for function in (f_alloc_argument, f_run_evaluator, f_cleanup)):
            alloc, evaluate = _named(f_alloc_argument) or alloc_argument_common, _named(f_run_evaluator) or run_evaluator_common
            self._here = InProcess(self.evaluator_config, alloc_repeat, alloc, evaluate, _named(f_cleanup), timeout_sec, self.name)
        self._options = MeasureOptions(timing=self._policy(evaluator_config is None), run_timeout_s=timeout_sec)
        self._folder: SharedFolder | None = None
        self._tasks: dict[tuple[Any, ...], _Task] = {}
        self._numbers = count()

    @staticmethod
    def of(given: FleetRunner) -> LocalRunner:
        """A fleet's runner as one of this front door."""
        said = given.given()
        evaluator = {name: said[name] for name in ("number", "repeat", "min_repeat_ms", "enable_cpu_cache_flush") if name in said}
        limits = {"timeout_sec": said.get("timeout", 30), "cooldown_sec": said.get("cooldown_interval", 0.0)}
        made = LocalRunner(**limits, evaluator_config=EvaluatorConfig(**evaluator) if evaluator else None)
        made.running = given.open
        return made

    def _policy(self, is_default: bool) -> TimingPolicy:
        config = self.evaluator_config
        racing: dict[str, Any] = {} if is_default else {"racing_factor": 0.0, "repeat_factor": 0.0}
        return TimingPolicy(
            number=config.number,
            repeat=config.repeat,
            min_repeat_ms=float(config.min_repeat_ms),
            flush_caches=config.enable_cpu_cache_flush,
            cooldown_s=self.cooldown_sec,
            **racing,
        )

    def check(self, target: Target) -> None:
        """Refuse a GPU that isn't here, before programs are compiled for it.

        Raises:
            TuningError: with what can be had without one.
        """
        if self._here is not None or self.running is not RunningHere or not is_gpu(target):
            return
        try:
            check_runs_here(target)
        except TargetError as error:
            raise TuningError(
                f"programs for {target} are measured on a GPU, and {error}. Without one, space generators make design spaces, rules make "
                "schedules (topi.schedules.default_schedule, Schedule(mod) with the steps of a trace), testing.ptx runs their kernels and "
                "counts what they do, and the runner of a Fleet measures on machines that have one"
            ) from None

    def prepare(self, workload: IRModule, target: Target) -> None:
        """Begin to run the unscheduled program, without waiting for it."""
        if self._here is None:
            self._task(workload, ArgInfo.from_entry_func(workload), target).running.start()

    def close(self) -> None:
        """End the processes and remove the files. A later run starts new ones."""
        for task in self._tasks.values():
            task.close()
        self._tasks = {}
        if self._folder is not None:
            self._folder.close()
            self._folder = None

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Run programs, one after the other on each device; a future for each, in their order, which has its result already.

        Raises:
            TuningError: if no process can be started, or no arguments can be made.
        """
        if self._here is not None:
            return [self._here.run(given) for given in runner_inputs]
        made: dict[int, RunnerFuture] = {}
        by_task: dict[int, tuple[_Task, list[int], list[CompiledCandidate]]] = {}
        for place, given in enumerate(runner_inputs):
            try:
                artifact = read_artifact(given.artifact_path)
            except TuningError as error:
                made[place] = LocalRunnerFuture(None, str(error))
                continue
            # without the unscheduled program the scheduled one says what it writes
            outputs = outputs_of(entry_func(module_from_graph(artifact.module))) if given.workload is None else ()
            task = self._task(given.workload, given.args_info, Target(artifact.target), outputs)
            _, places, candidates = by_task.setdefault(id(task), (task, [], []))
            places.append(place)
            candidates.append(artifact.compiled)
        for task, places, candidates in by_task.values():
            # one process at a time: each holds all arrays of its task
            for other in self._tasks.values():
                if other is not task:
                    other.running.rest()
            for position, outcome, _ in task.running.run(candidates, lambda task=task: task.best):  # type: ignore[misc]
                made[places[position]] = self._future(task, outcome)
        return [made[place] for place in range(len(runner_inputs))]

    def _future(self, task: _Task, outcome: dict[str, Any] | Failure) -> RunnerFuture:
        if isinstance(outcome, Failure):
            return LocalRunnerFuture(None, self._failed(outcome))
        seconds = [float(cost) for cost in outcome["costs"]]
        task.best = min(task.best, median(seconds))
        return LocalRunnerFuture(seconds)

    def _failed(self, failure: Failure) -> str:
        """What went wrong, in the words that programs look for."""
        said = f"{failure.error_no.error_type}: {failure.message}\n{failure.detail}".strip()
        if failure.error_no == MeasureErrorNo.RUN_TIMEOUT and self.name == LocalRunner.name:
            return f"{self.name}: {TIMED_OUT.format(self.timeout_sec)}\n{said}"
        return f"{self.name}: An exception occurred\n{said}"

    def _task(self, workload: IRModule | None, args_info: Sequence[ArgInfo], target: Target, outputs: Sequence[int] = ()) -> _Task:
        shapes = tuple((info.dtype, info.shape) for info in shapes_of(args_info))
        key = (tuple(outputs) if workload is None else structural_hash(workload), shapes, str(target.resolved()))
        if key not in self._tasks:
            if self._folder is None:
                self._folder = SharedFolder()
                # of the folder, not of the runner: a method of the runner itself would keep it alive
                weakref.finalize(self, self._folder.close)
            folder = self._folder.path / f"task{next(self._numbers)}"
            folder.mkdir()
            subject = program_of(workload, args_info, target, outputs)
            task = self._tasks[key] = _Task(self.running(subject, self._options, folder, None), folder)
            weakref.finalize(self, task.close)
        return self._tasks[key]
