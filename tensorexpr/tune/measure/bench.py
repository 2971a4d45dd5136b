"""The arrays of a task in memory, and candidates run on them: loaded, poisoned, called, compared, timed."""

from __future__ import annotations

import ctypes
import math
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Protocol

import numpy as np

from ...dataclass import dataclass
from ...errors import TuningError
from ...runtime import engine
from ...runtime.timing import repeat
from ...te.tolerance import Tolerance
from ...tir.dtype import to_numpy
from .arrays import StoredArray
from .compiled import ArrayArgument
from .memory import OFFSET, Array, GuardedArray, frozen_copy
from .native import Probe, Sweep, drop_from_caches
from .timing import Quiet, Timing, TimingPolicy, time_candidate


class WrongAnswer(TuningError):
    """A candidate that computes something else than the definition."""


@dataclass(frozen=True)
class Kernel:
    """A candidate's machine code in memory: its packed entry, the messages of the codes that it returns, and its arguments.

    `words` are the addresses of the arguments, `packed` those inputs that it takes in a layout of its own, `outputs` its results, in
    their layout, `arrays` the task's arguments.
    """

    entry: int
    errors: Sequence[str]
    code: engine.LoadedCode | None
    words: Any
    packed: Sequence[GuardedArray]
    outputs: Sequence[Output]
    arrays: Arrays


@dataclass(frozen=True)
class BenchResult:
    """How a candidate did, and the seconds that each step took."""

    timing: Timing
    verified: bool
    seconds: dict[str, float]


class OutputMemory(Protocol):
    """Where a candidate stores a result, here or on a device."""

    @property
    def array(self) -> Array:
        """What is there now."""

    @property
    def address(self) -> int:
        """The address of the first element."""

    @property
    def is_intact(self) -> bool:
        """Whether what stands beside it is what was put there."""

    def poison(self) -> None:
        """Fill it with values that no right answer holds."""


@dataclass(frozen=True)
class Output:
    """A result: where it is stored, what is expected there, and how near it has to come."""

    name: str
    memory: OutputMemory
    expected: GuardedArray | None
    tolerance: Tolerance


@dataclass(frozen=True)
class Arrays:
    """A task's arguments in memory, all of them so many bytes into a cache line."""

    offset: int
    memory: Sequence[GuardedArray]
    outputs: Sequence[Output]

    @property
    def places(self) -> list[int]:
        """Which arguments the outputs are."""
        known = {id(output.memory) for output in self.outputs}
        return [place for place, memory in enumerate(self.memory) if id(memory) in known]


class Bench:
    """Inputs that can't be written and outputs between guard pages; every candidate of a task runs on them."""

    def __init__(self, arrays: Sequence[StoredArray], folder: Path, policy: TimingPolicy, threads: int) -> None:
        self._policy = policy
        self._stored, self._folder = arrays, folder
        # Frozen, so that a candidate that writes to an input, or to what is expected, is caught by the page and not by a wrong result
        # later.
        self._expected = [frozen_copy(array.load(folder)) if array.is_output and array.file else None for array in arrays]
        self._arrays: dict[int, Arrays] = {}
        # Before the first candidate, so that its time has no page faults of arrays that nobody touched.
        self._arrays_at(OFFSET)
        self._sweep = Sweep(threads, policy.swept_bytes) if policy.swept_bytes else None
        self._probe = Probe(threads) if policy.patience_s else None
        self.quiet = Quiet(self._probe or (lambda: 0.0), policy.patience_s)

    def offsets(self, asked: Sequence[int]) -> Sequence[int]:
        """At which bytes of a cache line arrays can begin, of those asked for."""
        return asked

    def speed(self) -> float:
        """How fast the cores were at best lately, as `Probe.speed` says it; 0 if nobody probed."""
        return 0.0 if self._probe is None else self._probe.speed(self.quiet.fastest())

    def _arrays_at(self, offset: int) -> Arrays:
        """The arguments so many bytes into a cache line; made when they are asked for first."""
        if offset not in self._arrays:
            memory = [self._place(array, offset) for array in self._stored]
            outputs = [
                Output(array.name, place, expected, Tolerance(array.rtol, array.atol))
                for array, place, expected in zip(self._stored, memory, self._expected, strict=True)
                if array.is_output
            ]
            self._arrays[offset] = Arrays(offset, memory, outputs)
        return self._arrays[offset]

    def _place(self, array: StoredArray, offset: int) -> GuardedArray:
        if array.is_output:
            return GuardedArray(array.shape, to_numpy(array.dtype), offset)
        return frozen_copy(array.load(self._folder), offset)

    def load(self, data: bytes, entry: str, errors: Sequence[str], arguments: Sequence[ArrayArgument] = (), offset: int = OFFSET) -> Kernel:
        """Load object code, and pack the inputs that it takes in layouts of its own.

        Args:
            data: the object code.
            entry: its packed entry.
            errors: the messages of the codes that it returns.
            arguments: how it takes them.
            offset: bytes of a cache line that stand before each array.

        Raises:
            TuningError: if an input can't be packed as the code says.
        """
        code, arrays = engine.load_object(data, [entry]), self._arrays_at(offset)
        words: Any = (ctypes.c_uint64 * max(1, len(arrays.memory)))(*(memory.address for memory in arrays.memory))
        packed: list[GuardedArray] = []
        outputs = dict(zip(arrays.places, arrays.outputs, strict=True))
        for place, argument in enumerate(arguments):
            if argument.layout is not None and place in outputs:
                outputs[place] = _relaid(outputs[place], argument, offset)
                words[place] = outputs[place].memory.address
            elif argument.layout is not None:
                packed.append(frozen_copy(argument.packed(arrays.memory[place].array), offset))
                # the address doesn't keep the array alive: the kernel holds it in `packed`
                words[place] = packed[-1].address
        return Kernel(code[entry], errors, code, words, packed, list(outputs.values()), arrays)

    def measure(self, kernel: Kernel, best: float) -> BenchResult:
        """Run a candidate, compare its results before and after timing it.

        Raises:
            WrongAnswer: if they differ from the definition's, or it wrote beside its arrays.
            TuningError: if it reports an error itself.
        """
        seconds: dict[str, float] = {}
        start = time.perf_counter()
        first = self.check(kernel, best)
        seconds["verify"] = time.perf_counter() - start - first
        start = time.perf_counter()
        timing = time_candidate(lambda number: self.run(kernel, number), first, self._policy, best, self.quiet)
        seconds["time"] = time.perf_counter() - start
        # once more: a candidate may be right on poisoned results and wrong on those of the call before, which it adds to
        if not timing.raced:
            _compare(kernel.outputs)
        return BenchResult(timing, all(output.expected is not None for output in kernel.outputs), seconds)

    def check(self, kernel: Kernel, best: float = math.inf) -> float:
        """Run a candidate once and compare its results; the seconds of the call.

        A call that takes far longer than the best is ended together with this process, by SIGALRM: nothing else stops native code.

        Raises:
            WrongAnswer: if they differ from the definition's, or it wrote beside its arrays.
            TuningError: if it reports an error itself.
        """
        # NaN and the like: a candidate that leaves elements out must not find the right ones there, left by the one before.
        for output in kernel.outputs:
            output.memory.poison()
        limit = self._policy.first_call_limit(best)
        # 0 sets no alarm. What SIGALRM does by default ends native code too, in which no handler of Python's would run
        signal.setitimer(signal.ITIMER_REAL, limit if limit < math.inf else 0.0)
        try:
            first = self.run(kernel, 1)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        _compare(kernel.outputs)
        return first

    def run(self, kernel: Kernel, number: int) -> float:
        """Seconds per call of `number` calls in a row; the median of calls that each follow a sweep of the caches.

        Raises:
            TuningError: if the code returns an error.
        """
        if self._sweep is not None:
            return self._run_swept(kernel, number)
        if self._policy.flush_caches:
            touched = (*kernel.arrays.memory, *kernel.packed, *(output.memory for output in kernel.outputs))
            drop_from_caches([(memory.address, memory.array.nbytes) for memory in touched])
        return self._called(kernel, number) / number

    def _run_swept(self, kernel: Kernel, number: int) -> float:
        assert self._sweep is not None
        costs = []
        # One call after each sweep: the second in a row would find what the first has brought into the caches.
        for _ in range(number):
            self._sweep()
            costs.append(self._called(kernel, 1))
        return median(costs)

    @staticmethod
    def _called(kernel: Kernel, number: int) -> float:
        """Seconds of so many calls in a row."""
        seconds, code = repeat(kernel.entry, kernel.words, number)
        if code:
            known = 0 < code <= len(kernel.errors)
            raise TuningError(kernel.errors[code - 1] if known else f"the code returned {code}")
        return seconds


def _relaid(output: Output, argument: ArrayArgument, offset: int) -> Output:
    """An output where code stores it in a layout of its own: what is expected is packed, so that the layout is verified too.

    Raises:
        TuningError: if the layout has places that no element goes to: what they hold would be compared too.
    """
    memory = GuardedArray(argument.shape, output.memory.array.dtype, offset)
    if memory.array.size != output.memory.array.size:
        raise TuningError(f"{output.name}: results are measured in layouts without padding, not as {list(argument.shape)}")
    expected = None if output.expected is None else frozen_copy(argument.packed(output.expected.array))
    return Output(output.name, memory, expected, output.tolerance)


def _compare(outputs: Sequence[Output]) -> None:
    for output in outputs:
        # First: what was written beside an array explains wrong results in another.
        if not output.memory.is_intact:
            raise WrongAnswer(f"{output.name}: bytes beside the array were written")
        if output.expected is None:
            continue
        message = output.tolerance.mismatch(output.memory.array, output.expected.array)
        if message:
            raise WrongAnswer(f"{output.name} {message}{_unwritten(output)}")


def _unwritten(output: Output) -> str:
    array = output.memory.array
    # Integers have no value that can't be a result, so that poison doesn't show in them.
    if output.expected is None or array.dtype.kind in "iub":
        return ""
    count = int(np.count_nonzero(np.isnan(array) & ~np.isnan(output.expected.array)))
    return f"; {count} elements are NaN or were not written" if count else ""
