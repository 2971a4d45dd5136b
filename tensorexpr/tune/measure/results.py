"""What is measured and what comes of it: candidates, results, and the options of measuring."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any, Protocol

from ...cpu import usable_cores
from .compile_worker import DEFAULT_PLUG
from .errors import MeasureErrorNo
from .timing import TimingPolicy

FAILED_COST = 1e10


@dataclass(frozen=True)
class Candidate:
    """A program to measure: its trace as JSON (`Trace.to_json()`), all decisions made."""

    trace: Sequence[Any]

    @cached_property
    def key(self) -> str:
        """The trace as text; equal for equal candidates of one task."""
        return json.dumps(self.trace, separators=(",", ":"))


@dataclass(frozen=True)
class MeasureResult:
    """How one candidate did.

    Args:
        costs: seconds per call, one number a repeat; (1e10,) if it failed.
        error_no: what went wrong; 0 if nothing did.
        error_msg: the first line of the error.
        all_cost: seconds spent on it, compiling and running.
        timestamp: seconds since the epoch.
        verified: whether its results were compared with the definition's, and agreed.
        policy: how it was timed: `TimingPolicy.to_json`, the calls of a repeat, "raced" if it was cut short for being
            slow, "disturbed" if other programs used the cores all the time.
        spills: vector registers moved to and from the stack, counted in its machine code.
        ir_lines: lines of LLVM IR.
        timings: seconds of each step.
        detail: traceback, or what its process printed before it died.
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

    @property
    def ok(self) -> bool:
        """Whether it ran."""
        return self.error_no == MeasureErrorNo.NO_ERROR

    @property
    def cost(self) -> float:
        """Seconds per call: the median of the repeats; infinite if it failed."""
        return median(self.costs) if self.ok and self.costs else float("inf")

    def __str__(self) -> str:
        if self.ok:
            costs = ",".join(f"{cost:.4g}" for cost in self.costs)
            return f"MeasureResult(cost:[{costs}], error_no:0, all_cost:{self.all_cost:.2f}, Tstamp:{self.timestamp:.2f})"
        name = self.error_no.error_type
        return f"MeasureResult(error_type:{name}, error_msg:{self.error_msg}, all_cost:{self.all_cost:.2f}, Tstamp:{self.timestamp:.2f})"


@dataclass(frozen=True)
class MeasureOptions:
    """How candidates are compiled and measured.

    Args:
        timing: how they are timed.
        n_parallel: compile workers.
        build_timeout_s: seconds a candidate may take to compile.
        run_timeout_s: seconds it may take to be checked and timed.
        reference_timeout_s: seconds the results to expect may take; after that nothing is verified.
        batch_size: candidates that are compiled before they are measured; the compile workers rest meanwhile.
        opt_level: of LLVM's IR passes; 0 compiles twice as fast, and the code is as fast within 10 %.
        verify: compare results with the definition's.
        seed: of random inputs.
        build_memory_bytes: cap of a compile worker's memory.
        run_memory_bytes: cap of the memory that a candidate may allocate, besides its arrays.
        compiler: `module:function` that makes the compiler in the workers, see `compiled.MakeCompiler`.
    """

    timing: TimingPolicy = TimingPolicy()
    n_parallel: int = field(default_factory=usable_cores)
    build_timeout_s: float = 15.0
    run_timeout_s: float = 10.0
    reference_timeout_s: float = 60.0
    batch_size: int = 64
    opt_level: int = 0
    verify: bool = True
    seed: int = 0
    build_memory_bytes: int = 4 << 30
    run_memory_bytes: int = 4 << 30
    compiler: str = DEFAULT_PLUG


class MeasureObserver(Protocol):
    """Is told about candidates as they pass, by their position in the call: to draw progress."""

    def built(self, position: int, error_no: MeasureErrorNo) -> None:
        """A candidate was compiled, or not."""

    def measured(self, position: int, result: MeasureResult) -> None:
        """A candidate that had been compiled was measured."""


class SilentObserver:
    """Observes nothing."""

    def built(self, position: int, error_no: MeasureErrorNo) -> None:
        """Nothing."""

    def measured(self, position: int, result: MeasureResult) -> None:
        """Nothing."""
