"""The arrays of a task in memory, and candidates run on them: loaded, poisoned, called, compared, timed."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import TuningError
from ...runtime import engine
from ...runtime.timing import repeat
from ...te.tolerance import Tolerance
from ...tir.dtype import to_numpy
from .arrays import StoredArray
from .compiled import ArrayArgument
from .memory import GuardedArray, frozen_copy
from .native import Probe, drop_from_caches
from .timing import Quiet, Timing, TimingPolicy, time_candidate


class WrongAnswer(TuningError):
    """A candidate that computes something else than the definition."""


@dataclass(frozen=True)
class Kernel:
    """A candidate's machine code in memory: its packed entry, the messages of the codes that it returns, and its arguments.

    `words` are the addresses of the arguments, `packed` those inputs that it takes in a layout of its own.
    """

    entry: int
    errors: Sequence[str]
    code: engine.LoadedCode
    words: Any
    packed: Sequence[GuardedArray]


@dataclass(frozen=True)
class BenchResult:
    """How a candidate did, and the seconds that each step took."""

    timing: Timing
    verified: bool
    seconds: dict[str, float]


@dataclass(frozen=True)
class _Output:
    name: str
    memory: GuardedArray
    expected: GuardedArray | None
    tolerance: Tolerance


class Bench:
    """Inputs that can't be written and outputs between guard pages; every candidate of a task runs on them."""

    def __init__(self, arrays: Sequence[StoredArray], folder: Path, policy: TimingPolicy, threads: int) -> None:
        self._policy = policy
        self._outputs: list[_Output] = []
        self._memory: list[GuardedArray] = []
        for array in arrays:
            self._memory.append(self._place(array, folder))
        self._words: Any = (ctypes.c_uint64 * max(1, len(arrays)))(*(memory.address for memory in self._memory))
        self._ranges = [(memory.address, memory.array.nbytes) for memory in self._memory]
        self.quiet = Quiet(Probe(threads) if policy.patience_s else lambda: 0.0, policy.patience_s)

    def _place(self, array: StoredArray, folder: Path) -> GuardedArray:
        if not array.is_output:
            return frozen_copy(array.load(folder))
        memory = GuardedArray(array.shape, to_numpy(array.dtype))
        expected = frozen_copy(array.load(folder)) if array.file else None
        self._outputs.append(_Output(array.name, memory, expected, Tolerance(array.rtol, array.atol)))
        return memory

    def load(self, data: bytes, entry: str, errors: Sequence[str], arguments: Sequence[ArrayArgument] = ()) -> Kernel:
        """Load object code, and pack the inputs that it takes in layouts of its own.

        Raises:
            TuningError: if an input can't be packed as the code says.
        """
        code = engine.load_object(data, [entry])
        words = type(self._words)(*self._words)
        packed: list[GuardedArray] = []
        for place, argument in enumerate(arguments):
            if argument.layout is not None:
                packed.append(frozen_copy(argument.packed(self._memory[place].array)))
                words[place] = packed[-1].address
        return Kernel(code[entry], errors, code, words, packed)

    def measure(self, kernel: Kernel, best: float) -> BenchResult:
        """Run a candidate, compare its results before and after timing it.

        Raises:
            WrongAnswer: if they differ from the definition's, or it wrote beside its arrays.
            TuningError: if it reports an error itself.
        """
        seconds: dict[str, float] = {}
        start = time.perf_counter()
        for output in self._outputs:
            output.memory.poison()
        first = self.run(kernel, 1)
        called = time.perf_counter()
        self._compare()
        seconds["verify"] = time.perf_counter() - called + (called - start - first)
        start = time.perf_counter()
        timing = time_candidate(lambda number: self.run(kernel, number), first, self._policy, best, self.quiet)
        seconds["time"] = time.perf_counter() - start
        if not timing.raced:
            self._compare()
        return BenchResult(timing, all(output.expected is not None for output in self._outputs), seconds)

    def run(self, kernel: Kernel, number: int) -> float:
        """Seconds per call of `number` calls in a row.

        Raises:
            TuningError: if the code returns an error.
        """
        if self._policy.flush_caches:
            drop_from_caches([*self._ranges, *((memory.address, memory.array.nbytes) for memory in kernel.packed)])
        seconds, code = repeat(kernel.entry, kernel.words, number)
        if code:
            known = 0 < code <= len(kernel.errors)
            raise TuningError(kernel.errors[code - 1] if known else f"the code returned {code}")
        return seconds / number

    def _compare(self) -> None:
        for output in self._outputs:
            if not output.memory.is_intact:
                raise WrongAnswer(f"{output.name}: bytes beside the array were written")
            if output.expected is None:
                continue
            message = output.tolerance.mismatch(output.memory.array, output.expected.array)
            if message:
                raise WrongAnswer(f"{output.name} {message}{self._unwritten(output)}")

    def _unwritten(self, output: _Output) -> str:
        array = output.memory.array
        if output.expected is None or array.dtype.kind in "iub":
            return ""
        count = int(np.count_nonzero(np.isnan(array) & ~np.isnan(output.expected.array)))
        return f"; {count} elements are NaN or were not written" if count else ""
