"""What is measured and what comes of it: programs, results, and the options of measuring."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from statistics import fmean, median
from typing import Any, Protocol

from ...dataclass import dataclass, field
from ...processor import usable_cores
from ...schedule.trace import Trace
from .compiled import DEFAULT_PLUG
from .errors import MeasureErrorNo
from .timing import TimingPolicy

FAILED_COST = 1e10
# In the policy of the results of programs that ran before and were timed again: that is no trial.
TIMED_AGAIN = "again"
# In the policy of programs that were stopped for being far slower than the best: after how many seconds.
STOPPED = "stopped_s"
# In the policy of those that ran on a device that was slower than it can be, again and again.
THROTTLED = "throttled"


@dataclass(frozen=True)
class Program:
    """A program to measure.

    Args:
        number: the caller's, which comes back with its result.
        trace: all decisions made.
        dag: where the program's computation isn't the task's, but one of the same inputs and results: `te.serialize.dag_to_json` of its
            arguments.
        refused: why there is no such program after all; its result then says so.
    """

    number: int
    trace: Trace
    dag: Any = None
    refused: str = ""

    @cached_property
    def steps(self) -> list[Any]:
        """The trace as JSON."""
        return self.trace.to_json()

    @cached_property
    def key(self) -> str:
        """The trace as text; equal for equal programs of one task."""
        # with the computation where it is the program's own: equal traces then make different programs
        return json.dumps(self.steps if self.dag is None else [self.steps, self.dag], separators=(",", ":"))


class Seconds(float):
    """A time. TVM's programs read it as `cost.value`, others as the number that it is."""

    __slots__ = ()

    @property
    def value(self) -> float:
        """The number."""
        return float(self)

    @property
    def dtype(self) -> str:
        """The type of the number."""
        return "float64"


@dataclass(frozen=True)
class MeasureResult:
    """How one program did.

    Args:
        costs: seconds per call, one number a repeat; (1e10,) if it failed. Each has `.value`, as in TVM.
        error_no: what went wrong; 0 if nothing did.
        error_msg: the first line of the error.
        all_cost: seconds spent on it, compiling and running.
        timestamp: seconds since the epoch.
        verified: whether its results were compared with the definition's, and agreed.
        policy: how it was timed: `TimingPolicy.to_json`, the calls of a repeat, "raced" if it was cut short for being
            slow, "disturbed" if other programs used the cores all the time; and the options of a PassContext that it was
            lowered in, see `lower.plain_context.options_in_words`.
        spills: vector registers moved to and from the stack, counted in its machine code.
        ir_lines: lines of LLVM IR.
        timings: seconds of each step.
        detail: traceback, or what its process printed before it died.
        number: the program's.
    """

    costs: tuple[float, ...]
    error_no: MeasureErrorNo
    error_msg: str
    all_cost: float
    timestamp: float
    verified: bool = False
    policy: Mapping[str, Any] = field(default_factory=dict)
    spills: int = 0
    ir_lines: int = 0
    timings: Mapping[str, float] = field(default_factory=dict)
    detail: str = field(default="", repr=False)
    number: int = 0

    def __post_init__(self) -> None:
        """Take what programs write: a list of costs, a plain number for the error."""
        object.__setattr__(self, "costs", tuple(map(Seconds, self.costs)))
        object.__setattr__(self, "error_no", MeasureErrorNo(self.error_no))

    @property
    def is_success(self) -> bool:
        """Whether it ran, and computed what it should if that was checked."""
        return self.error_no == MeasureErrorNo.NO_ERROR

    @property
    def mean(self) -> float:
        """Seconds per call, the mean of the repeats; infinite if it failed."""
        return fmean(self.costs) if self.is_success else float("inf")

    @property
    def median(self) -> float:
        """Seconds per call, the median of the repeats; infinite if it failed."""
        return median(self.costs) if self.is_success else float("inf")

    @property
    def least(self) -> float:
        """Seconds per call at least: the median, or those after which it was stopped; infinite if it failed otherwise."""
        stopped = self.policy.get(STOPPED)
        return self.median if stopped is None else float(stopped)

    def __str__(self) -> str:
        if self.is_success:
            costs = ",".join(f"{cost:.4g}" for cost in self.costs)
            return f"MeasureResult(cost:[{costs}], error_no:0, all_cost:{self.all_cost:.2f}, Tstamp:{self.timestamp:.2f})"
        name = self.error_no.error_type
        return f"MeasureResult(error_type:{name}, error_msg:{self.error_msg}, all_cost:{self.all_cost:.2f}, Tstamp:{self.timestamp:.2f})"


@dataclass(frozen=True)
class MeasureOptions:
    """How programs are compiled and measured.

    Args:
        timing: how they are timed.
        n_parallel: compile workers.
        build_timeout_s: seconds a program may take to compile.
        run_timeout_s: seconds it may take to be checked and timed.
        reference_timeout_s: seconds the results to expect may take; after that nothing is verified.
        batch_size: programs that are compiled before they are measured; the compile workers rest meanwhile.
        opt_level: of LLVM's IR passes, by default that of `build`: 0 compiles up to twice as fast, but tiles with borders of their
            own and rows that share loads are then up to twice as slow as they will be, and others win.
        verify: compare results with the definition's.
        build_memory_bytes: cap of a compile worker's memory.
        run_memory_bytes: cap of the measuring process's memory, besides the arrays.
        device: the number of the GPU that they run on, if they are for one.
        compiler: `module:function` that makes the compiler in the workers, see `compiled.MakeCompiler`.
    """

    timing: TimingPolicy = field(default_factory=TimingPolicy)
    n_parallel: int = field(default_factory=usable_cores)
    build_timeout_s: float = 15.0
    run_timeout_s: float = 10.0
    reference_timeout_s: float = 60.0
    batch_size: int = 64
    opt_level: int = 3
    verify: bool = True
    build_memory_bytes: int = 4 << 30
    run_memory_bytes: int = 4 << 30
    compiler: str = DEFAULT_PLUG
    device: int = 0


class MeasureObserver(Protocol):
    """Is told about programs as they pass, by their numbers: to draw progress."""

    def built(self, number: int, error_no: MeasureErrorNo) -> None:
        """A program was compiled, or not."""

    def measured(self, result: MeasureResult) -> None:
        """A program that had been compiled was measured."""


class SilentObserver:
    """Observes nothing."""

    def built(self, number: int, error_no: MeasureErrorNo) -> None:
        """Nothing."""

    def measured(self, result: MeasureResult) -> None:
        """Nothing."""
