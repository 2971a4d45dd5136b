"""`Profiler`: where the time of a search goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType

_active: ContextVar[tuple[Profiler, ...]] = ContextVar("active profilers", default=())


class Profiler:
    """Adds up seconds by name, of `with Profiler.timeit(name):` within `with Profiler() as profiler:`."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._started = time.perf_counter()

    def get(self) -> dict[str, float]:
        """Seconds by name, and the total."""
        return {**self._seconds, "Total": time.perf_counter() - self._started}

    def table(self) -> str:
        """The seconds as a table."""
        found = self.get()
        rows = [("ID", "Name", "Time (min)", "Percentage"), ("", "Total", f"{found['Total'] / 60:.4f}", "100")]
        for number, (name, seconds) in enumerate(sorted(self._seconds.items(), key=lambda item: -item[1]), 1):
            rows.append((str(number), name, f"{seconds / 60:.4f}", f"{100 * seconds / found['Total']:.4f}"))
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        return "\n".join(" | ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in rows)

    def __enter__(self) -> Profiler:
        self._started = time.perf_counter()
        _active.set((*_active.get(), self))
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        _active.set(_active.get()[:-1])

    @staticmethod
    def current() -> Profiler | None:
        """The profiler of the innermost `with` around the caller."""
        stack = _active.get()
        return stack[-1] if stack else None

    @staticmethod
    @contextmanager
    def timeit(name: str) -> Iterator[None]:
        """Add the seconds of a block to those of a name, if there is a profiler."""
        profiler, start = Profiler.current(), time.perf_counter()
        try:
            yield
        finally:
            if profiler is not None:
                profiler._seconds[name] = profiler._seconds.get(name, 0.0) + time.perf_counter() - start
