"""The protocol of runners: built programs to seconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, ClassVar

from ...dataclass import dataclass
from ...target import Target
from ...tir.function import IRModule
from ...tune.measure.results import Seconds
from ..arg_info import ArgInfo
from ..utils import Extensible


@dataclass(frozen=True, eq=False)
class RunnerInput:
    """A built program to run.

    Args:
        artifact_path: the file that a builder made.
        device_type: the kind of target, "llvm".
        args_info: its arguments.
        workload: the unscheduled program that it must agree with; None for no comparison.
    """

    artifact_path: str
    device_type: str
    args_info: Sequence[ArgInfo]
    workload: IRModule | None = None


@dataclass(frozen=True)
class RunnerResult:
    """How a program did: seconds per call of each repeat, or why there are none."""

    run_secs: Sequence[float] | None
    error_msg: str | None = None

    def __post_init__(self) -> None:
        """Times have `.value`, as in TVM."""
        if self.run_secs is not None:
            object.__setattr__(self, "run_secs", [Seconds(float(getattr(item, "value", item))) for item in self.run_secs])

    @property
    def is_success(self) -> bool:
        """Whether it ran."""
        return self.error_msg is None and bool(self.run_secs)

    @property
    def median(self) -> float:
        """Seconds per call, the median of the repeats; infinite if it failed."""
        return float(median(map(float, self.run_secs))) if self.is_success and self.run_secs else math.inf


class RunnerFuture(Extensible):
    """A result that may not be there yet.

    Args:
        f_done: whether it is.
        f_result: the result, which it waits for.
    """

    def __init__(self, f_done: Callable[[], bool], f_result: Callable[[], RunnerResult]) -> None:
        self._done, self._result = f_done, f_result

    def done(self) -> bool:
        """Whether the result is there."""
        return self._done()

    def result(self) -> RunnerResult:
        """The result, which is waited for."""
        return self._result()


class PyRunnerFuture(RunnerFuture):
    """Base of futures that users write."""

    def __init__(self) -> None:
        super().__init__(self.done, self.result)


class LocalRunnerFuture(PyRunnerFuture):
    """A result that is there.

    Args:
        res: seconds per call of each repeat.
        error_message: why there are none.
    """

    def __init__(self, res: Sequence[float] | None = None, error_message: str | None = None) -> None:
        self.res = res
        self.error_message = error_message

    def done(self) -> bool:
        """True."""
        return True

    def result(self) -> RunnerResult:
        """The result."""
        return RunnerResult(self.res, self.error_message)


class Runner(Extensible, what="runner", default="local"):
    """Runs programs."""

    RunnerType: ClassVar[Any] = "Runner | str"

    def run(self, runner_inputs: Sequence[RunnerInput]) -> list[RunnerFuture]:
        """Run programs; a future for each, in their order."""
        raise NotImplementedError

    def prepare(self, workload: IRModule, target: Target) -> None:
        """Get ready to compare programs with an unscheduled one. Called before a search; nothing to do here."""

    def close(self) -> None:
        """Release what is held. Called after a search; nothing to do here."""


class PyRunner(Runner):
    """Base of runners that users write."""


create = Runner.create
