"""What is measured and what comes of it, as callbacks and programs of TVM see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import TuningError
from ..fleet.plugs import FleetBuilder, FleetRunner
from ..te.tensor import Tensor
from ..tune.measure import FAILED_COST, MeasureErrorNo, MeasureResult
from .callbacks import MeasureCallback, PythonBasedMeasureCallback
from .loop_state import State
from .measure_input import MeasureInput
from .search_task import SearchTask
from .task import Task
from .task_input import TASK_INPUT_CHECK_FUNC_REGISTRY, Array, inputs_of_task, register_task_input_check_func
from .workers import BuildResult, LocalBuilder, LocalRPCMeasureContext, LocalRunner, RPCRunner, measure_options, measure_task

MAX_FLOAT = FAILED_COST
ProgramBuilder = LocalBuilder
ProgramRunner = LocalRunner

__all__ = [
    "FAILED_COST",
    "MAX_FLOAT",
    "TASK_INPUT_CHECK_FUNC_REGISTRY",
    "BuildResult",
    "LocalBuilder",
    "LocalRPCMeasureContext",
    "LocalRunner",
    "MeasureCallback",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "ProgramBuilder",
    "ProgramMeasurer",
    "ProgramRunner",
    "PythonBasedMeasureCallback",
    "RPCRunner",
    "local_builder_build",
    "local_run",
    "measure_options",
    "measure_task",
    "prepare_input_map",
    "recover_measure_input",
    "register_task_input_check_func",
    "rpc_runner_run",
]


def local_builder_build(
    inputs: Sequence[MeasureInput], timeout: float, n_parallel: int | None, build_func: Any = "default", verbose: int = 1
) -> list[BuildResult]:
    """`LocalBuilder(timeout, n_parallel, build_func).build(inputs, verbose)`."""
    return LocalBuilder(timeout, n_parallel, build_func).build(inputs, verbose)


def local_run(
    inputs: Sequence[MeasureInput], build_results: Sequence[BuildResult], *args: Any, verbose: int = 1, **given: Any
) -> list[MeasureResult]:
    """`LocalRunner(...).run(inputs, build_results, verbose)`; the other arguments are those of `LocalRunner`."""
    return LocalRunner(*args, **given).run(inputs, build_results, verbose)


def rpc_runner_run(
    inputs: Sequence[MeasureInput],
    build_results: Sequence[BuildResult],
    key: str,
    host: str,
    port: int,
    *args: Any,
    verbose: int = 1,
    **given: Any,
) -> list[MeasureResult]:
    """`RPCRunner(key, host, port, ...).run(inputs, build_results, verbose)`; the other arguments are those of `RPCRunner`."""
    return RPCRunner(key, host, port, *args, **given).run(inputs, build_results, verbose)


def prepare_input_map(args: Sequence[Tensor], workload_key: str | None = None) -> Mapping[Tensor, Array]:
    """The arrays that a function of `register_task_input_check_func` makes for the inputs of a workload; the others are random.

    Args:
        args: the tensors of the computation.
        workload_key: of the workload; without one nothing is known.

    Raises:
        TuningError: for arrays that don't fit.
    """
    return inputs_of_task(workload_key, args, ()) if workload_key is not None else {}


def recover_measure_input(inp: MeasureInput, rebuild_state: bool = False) -> MeasureInput:
    """A record's input with a task that can be searched and measured: what a log says, made whole again.

    Args:
        inp: as a log gives it.
        rebuild_state: make the program now; else when it is asked for.

    Raises:
        WorkloadError: if the workload isn't registered here.
        ScheduleError: if `rebuild_state` and the program is none of this computation.
    """
    made = MeasureInput(SearchTask.deserialize(inp.task.serialize()), inp.trace)
    if rebuild_state:
        str(made.state)
    return made


class ProgramMeasurer:
    """Builds and runs programs, and tells callbacks: what `SketchPolicy.continue_search_one_round` measures with.

    Args:
        builder, runner: the workers; "local" for those of this machine.
        callbacks: called with every batch of results.
        verbose: 0 says nothing, 1 the progress.
        max_continuous_error: so many errors in a row are a reason to stop; 150 if None.
    """

    def __init__(
        self,
        builder: LocalBuilder | FleetBuilder | str,
        runner: LocalRunner | FleetRunner | str,
        callbacks: Sequence[MeasureCallback] | None = None,
        verbose: int = 1,
        max_continuous_error: int | None = None,
    ) -> None:
        self.builder = LocalBuilder() if isinstance(builder, str) else LocalBuilder.of(builder)
        self.runner = LocalRunner() if isinstance(runner, str) else LocalRunner.of(runner)
        self.callbacks = tuple(callbacks or ())
        self.verbose = verbose
        self.max_continuous_error = 150 if max_continuous_error is None else max_continuous_error
        self.reset()

    def reset(self) -> None:
        """Forget what was measured."""
        self.ct, self.error_ct = 0, 0
        self.best_cost: dict[str, float] = {}
        self.best_state: dict[str, State] = {}

    def measure(self, task: Task, policy: Any, inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        """Build and run programs of a task, and hand the results to the callbacks.

        Raises:
            TuningError: if no worker can be started, or nothing but errors came for too long.
        """
        results = self.runner.run(inputs, self.builder.build(inputs, self.verbose), self.verbose)
        for callback in self.callbacks:
            callback.callback(policy, inputs, results)
        self.count(task, inputs, results)
        return results

    def count(self, task: Task, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """Take note of what was measured.

        Raises:
            TuningError: if nothing but errors came for too long.
        """
        for made, result in zip(inputs, results, strict=True):
            self.ct += 1
            self.error_ct = 0 if result.is_success else self.error_ct + 1
            if result.mean < self.best_cost.get(task.workload_key, FAILED_COST):
                self.best_cost[task.workload_key], self.best_state[task.workload_key] = result.mean, made.state
        if self.error_ct > self.max_continuous_error:
            raise TuningError(f"{self.error_ct} programs in a row failed, the last with: {results[-1].error_msg}")
