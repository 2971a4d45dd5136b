"""What is measured, what comes of it, and the protocols of builders and runners."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...errors import TuningError
from ...fleet.plugs import FleetBuilder, FleetRunner
from ...processor import usable_cores
from ...tune.measure import MeasureErrorNo
from ...tune.measure import MeasureResult as TimedResult
from ...tune.measure.results import TIMED_AGAIN
from ..errors import InstantiationError

__all__ = ["Builder", "MeasureErrorNo", "MeasureInput", "MeasureResult", "Runner", "create_measure_batch", "measure_option"]


class MeasureInput(NamedTuple):
    """A configuration of a task on a target."""

    target: Any
    task: Any
    config: Any


class MeasureResult(NamedTuple):
    """How a configuration did.

    Args:
        costs: seconds per call of each repeat; the error, if it failed.
        error_no: what went wrong; 0 if nothing did.
        all_cost: seconds spent on it.
        timestamp: seconds since 1970.
    """

    costs: Any
    error_no: Any
    all_cost: float
    timestamp: float


class Measured(MeasureResult):
    """A result of our workers, which know more: whether it was verified, and whether it was timed again, in turn with others."""

    verified: bool
    timed_again: bool

    @staticmethod
    def of(result: TimedResult) -> Measured:
        """The result in AutoTVM's form: where a program failed, its error stands in place of the costs."""
        error: Exception = TuningError(result.error_msg)
        if result.error_no == MeasureErrorNo.INSTANTIATION_ERROR:
            error = InstantiationError(result.error_msg)
        costs = tuple(map(float, result.costs)) if result.is_success else (error,)
        made = Measured(costs, result.error_no, result.all_cost, result.timestamp)
        made.verified, made.timed_again = result.verified, TIMED_AGAIN in result.policy
        return made


class Builder:
    """Base of builders: `build(measure_inputs)` gives a result for each, which the runner gets.

    Args:
        timeout: seconds for one configuration.
        n_parallel: how many are built at once; as many as there are cores if None.
        build_kwargs: options of the build.
    """

    def __init__(self, timeout: float = 10, n_parallel: int | None = None, build_kwargs: Any = None) -> None:
        self.timeout = timeout
        self.n_parallel = n_parallel or usable_cores()
        self.user_build_kwargs = dict(build_kwargs or {})
        self.runner_build_kwargs: Any = None
        self.task: Any = None

    def set_task(self, task: Any, build_kwargs: Any = None) -> None:
        """Work for a task, with the options that its runner needs."""
        self.task = task
        self.build_kwargs = {**(build_kwargs or {}), **self.user_build_kwargs}

    def build(self, measure_inputs: Sequence[MeasureInput]) -> list[Any]:
        """Build configurations of the task."""
        raise NotImplementedError


class Runner:
    """Base of runners: `run(measure_inputs, build_results)` gives a `MeasureResult` for each.

    Args:
        timeout: seconds for one configuration.
        n_parallel: how many run at once.
    """

    def __init__(self, timeout: float = 5, n_parallel: int | None = None) -> None:
        self.timeout = timeout
        self.n_parallel = n_parallel or usable_cores()
        self.task: Any = None

    def set_task(self, task: Any) -> None:
        """Work for a task."""
        self.task = task

    def get_build_kwargs(self) -> dict[str, Any]:
        """What builds must know of where programs will run."""
        raise NotImplementedError

    def run(self, measure_inputs: Sequence[MeasureInput], build_results: Sequence[Any]) -> list[MeasureResult]:
        """Run what was built."""
        raise NotImplementedError


def measure_option(builder: Any, runner: Any) -> dict[str, Any]:
    """How a tuner measures.

    Args:
        builder: "local", a Builder or `Fleet.builder()`.
        runner: "local", a Runner or `Fleet.runner(key)`.

    Raises:
        TuningError: for another word.
    """
    from .measure_methods import LocalBuilder, LocalRunner

    builder = LocalBuilder.of(builder) if isinstance(builder, FleetBuilder) else builder
    runner = LocalRunner.of(runner) if isinstance(runner, FleetRunner) else runner
    return {"builder": _named("builder", builder, LocalBuilder), "runner": _named("runner", runner, LocalRunner)}


def _named(what: str, given: Any, local: Callable[[], Any]) -> Any:
    if isinstance(given, str):
        if given != "local":
            raise TuningError(f'measure_option: {what} is "local" or an object, not {given!r}')
        return local()
    return given


def create_measure_batch(task: Any, option: dict[str, Any]) -> Callable[[Sequence[MeasureInput]], list[MeasureResult]]:
    """A function that measures inputs of a task: `results = measure_batch(inputs)`.

    Args:
        task: the task.
        option: from `measure_option`.
    """
    builder, runner = option["builder"], option["runner"]
    runner.set_task(task)
    builder.set_task(task, runner.get_build_kwargs())

    def measure_batch(measure_inputs: Sequence[MeasureInput]) -> list[MeasureResult]:
        made: list[MeasureResult] = runner.run(measure_inputs, builder.build(measure_inputs))
        return made

    measure_batch.n_parallel = builder.n_parallel  # type: ignore[attr-defined]
    return measure_batch
