"""How far a build is: a line on a terminal while kernels are made, calls of a function that the user gives, and lines of the log."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from ..dataclass import dataclass
from ..errors import TypeMismatchError
from ..lower.context import PassContext

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class BuildProgress:
    """Where a build is.

    Args:
        done: kernels that are there.
        total: all kernels of the module.
        found: how many of them an earlier build had made.
        name: the kernel that was made last; "" at the start.
        seconds: since the start of the first kernel.
    """

    done: int
    total: int
    found: int
    name: str
    seconds: float


Progress = bool | Callable[[BuildProgress], None] | None


class Watch:
    """Tells those who want to know of each kernel that is made. A context: leaving it removes the line.

    Args:
        progress: a function to call; True for a line, False for none, None for one if stderr is a terminal and the option
            "relax.build.progress" of the PassContext isn't 0.

    Raises:
        TypeMismatchError: for anything else.
    """

    def __init__(self, progress: Progress = None) -> None:
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise TypeMismatchError(f"relax.build: progress is a function of a BuildProgress, True, False or None, not {progress!r}")
        self._told = progress if callable(progress) else None
        asked = bool(PassContext.current().config.get("relax.build.progress", 1)) and sys.stderr is not None and sys.stderr.isatty()
        self._is_live = asked if progress is None else progress is True
        self._line: Any = None
        self._total = self._found = self._done = 0
        self._start = 0.0

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            self._line.stop()

    def begin(self, total: int, found: int) -> None:
        """So many kernels are there from earlier builds."""
        self._total, self._found, self._done, self._start = total, found, found, time.perf_counter()
        logger.info("%d kernels, %d of them from earlier builds", total, found)
        # No line where nothing is left to make.
        if self._is_live and found < total:
            self._line = _line(total, found)
        self._tell("")

    def made(self, name: str) -> None:
        """One more is there."""
        self._done += 1
        logger.info("kernel %d of %d: %s, after %.1f s", self._done, self._total, name, time.perf_counter() - self._start)
        if self._line is not None:
            self._line.update(self._line.task_ids[0], completed=self._done, description=name)
        self._tell(name)

    def _tell(self, name: str) -> None:
        if self._told is not None:
            self._told(BuildProgress(self._done, self._total, self._found, name, time.perf_counter() - self._start))


def _line(total: int, done: int) -> Any:
    """A bar with the name of the last kernel; None where rich, which draws it, isn't there."""
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        return None
    parts = (TextColumn("kernels"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    made = Progress(*parts, console=Console(file=sys.stderr), transient=True)
    made.add_task("", total=total, completed=done)
    made.start()
    return made
