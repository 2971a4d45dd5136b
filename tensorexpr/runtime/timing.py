"""Timing of built functions: the loop and the clock are native, so that a measurement holds nothing of Python."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..dataclass import dataclass, field
from ..errors import ArgumentError
from ..target import Target
from . import cache, engine, registry
from .function import Function

FLUSH_OTHER_ARGUMENTS = "cache_flush_cpu_non_first_arg"

_CLOCK_MONOTONIC = getattr(time, "CLOCK_MONOTONIC", 1)
_COLUMNS = ("mean", "median", "max", "min", "std")
_GROWTH = 1.618  # as in TVM's time_evaluator

_REPEAT_IR = f"""
declare i32 @clock_gettime(i32, ptr)

define internal i64 @nanoseconds() {{
  %time = alloca {{ i64, i64 }}
  %ignored = call i32 @clock_gettime(i32 {_CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %rest_place = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_place
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}}

; Calls entry(words) number times, or until it returns an error, which is the result.
define i32 @repeat(ptr %entry, ptr %words, i64 %number, ptr %elapsed) {{
start:
  %before = call i64 @nanoseconds()
  br label %loop
loop:
  %count = phi i64 [ 0, %start ], [ %count_after, %loop ]
  %code = call i32 %entry(ptr %words)
  %count_after = add i64 %count, 1
  %good = icmp eq i32 %code, 0
  %more = icmp slt i64 %count_after, %number
  %again = and i1 %good, %more
  br i1 %again, label %loop, label %done
done:
  %after = call i64 @nanoseconds()
  %difference = sub i64 %after, %before
  store i64 %difference, ptr %elapsed
  ret i32 %code
}}
"""


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds per call of each repeat, and their statistics. Prints as a table in milliseconds."""

    results: tuple[float, ...]
    mean: float = field(init=False)
    median: float = field(init=False)
    min: float = field(init=False)
    max: float = field(init=False)
    std: float = field(init=False)

    def __post_init__(self) -> None:
        seconds = np.asarray(self.results)
        for name in _COLUMNS:
            object.__setattr__(self, name, float(getattr(np, name)(seconds)))

    def __str__(self) -> str:
        heads = "".join(f"{name + ' (ms)':>14}" for name in _COLUMNS)
        times = [getattr(self, name) * 1e3 for name in _COLUMNS]
        values = "".join(f"{value:>14.4f}" if value >= 0.01 or not value else f"{value:>14.4g}" for value in times)
        return f"Execution time summary:\n{heads}\n{values}"


@dataclass(frozen=True)
class Evaluator:
    """Calls a function many times and measures: `evaluator(*args)` gives a BenchmarkResult.

    Every repeat calls it `number` times, or as often as fills `min_repeat_ms`. An untimed call comes first. Between repeats it may
    rest (`cooldown_interval_ms` after every `repeats_to_cooldown`), push the caches' contents out (`cache_flush_bytes` of
    writes), or run `f_preproc`: the name of a registered function that gets the arguments, or
    "cache_flush_cpu_non_first_arg". Only the first call of a repeat finds such caches cold, so use number=1 with them.
    """

    function: Function
    number: int = 10
    repeat: int = 1
    min_repeat_ms: float = 0
    limit_zero_time_iterations: int = 100
    cooldown_interval_ms: float = 0
    repeats_to_cooldown: int = 1
    cache_flush_bytes: int = 0
    f_preproc: str = ""

    def __post_init__(self) -> None:
        for name in ("number", "repeat", "repeats_to_cooldown"):
            value = getattr(self, name)
            if not hasattr(value, "__index__") or value < 1:
                raise ArgumentError(f"time_evaluator: {name} is {value!r}, needs at least 1, a whole number")

    def __call__(self, *args: Any) -> BenchmarkResult:
        """Measure the function with these arguments, checked once.

        Raises:
            ArgumentError: if they don't fit, or the function fails.
        """
        # Once for all calls: checking takes longer than a small function runs.
        words, held = self.function.block(*args)  # `held` keeps alive what the words point to
        prepare = self._preparation(args, held)
        # The first call pays for page faults, and for waking the workers of parallel loops.
        self._seconds(words, 1)
        number = self.number
        results = []
        for index in range(self.repeat):
            prepare()
            seconds, number = self._one_repeat(words, number)
            results.append(seconds / number)
            if self.cooldown_interval_ms > 0 and (index + 1) % self.repeats_to_cooldown == 0:
                time.sleep(self.cooldown_interval_ms * 1e-3)
        return BenchmarkResult(tuple(results))

    def _one_repeat(self, words: Any, number: int) -> tuple[float, int]:
        """Seconds of `number` calls; the number grows until they take `min_repeat_ms`."""
        wanted = self.min_repeat_ms * 1e-3
        zero_rounds = 0
        while True:
            seconds = self._seconds(words, number)
            zero_rounds += seconds == 0
            # With `min_repeat_ms` of 0 the first round is enough, whatever it took.
            if seconds >= wanted or zero_rounds > self.limit_zero_time_iterations:
                return seconds, number
            estimate = wanted * number / seconds if seconds else 0
            # A time too short to measure is a poor estimate, so at most a hundredfold; some growth in any case, so that it ends.
            number = max(math.ceil(min(estimate, number * 100.0)), math.ceil(number * _GROWTH))

    def _seconds(self, words: Any, number: int) -> float:
        seconds, code = repeat(self.function.entry, words, number)
        self.function.check_code(code)
        return seconds

    def _preparation(self, args: tuple[Any, ...], held: list[Any]) -> Callable[[], None]:
        """What runs, untimed, before each repeat."""
        if self.f_preproc and self.f_preproc != FLUSH_OTHER_ARGUMENTS:
            prepare = registry.get_global_func(self.f_preproc)
            return lambda: _ignore(prepare(*args))
        flush = self.cache_flush_bytes
        if self.f_preproc == FLUSH_OTHER_ARGUMENTS:
            # Twice the cache: replacement isn't exactly least recently used.
            flush = max(flush, 2 * Target("llvm").l3_cache_size_bytes)
        if not flush:
            return lambda: None
        memory = np.zeros(flush, np.uint8)
        first = held[0] if self.f_preproc and held and isinstance(held[0], np.ndarray) else None

        def evict() -> None:
            # Written, not only read: lines that were written push out even what the cache would protect from a scan.
            np.add(memory, 1, out=memory)
            if first is not None:  # the argument that is to stay in the cache is read back
                first.copy()

        return evict


def repeat(entry: int, words: Any, number: int) -> tuple[float, int]:
    """Call a packed entry `number` times in a native loop, without the GIL; the seconds it took, and its code (0: success)."""
    elapsed = ctypes.c_int64()
    code = _repeater()(entry, words, number, ctypes.addressof(elapsed))
    return elapsed.value * 1e-9, int(code)


@lru_cache(maxsize=1)
def _repeater() -> Callable[..., int]:
    code = engine.load_object(cache.compile_text(_REPEAT_IR, Target("llvm"), 1).data, ["repeat"])
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
    function: Any = prototype(code["repeat"])
    function.code = code  # lives as long as the function
    return function  # type: ignore[no-any-return]


def _ignore(result: Any) -> None:
    del result
