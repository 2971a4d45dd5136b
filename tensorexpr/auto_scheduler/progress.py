"""Progress while programs are measured: one moving line on a terminal, marks everywhere else."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from ..tune.measure import MeasureErrorNo
from .console import Console


def terminal_console(verbose: int, flop_ct: float, generations: int = 4, stream: TextIO | None = None) -> Console:
    """A console with a moving line where the output is a terminal that can show one, else a plain one."""
    output = stream or sys.stdout
    if not output.isatty():
        return Console(verbose, flop_ct, generations, stream)
    try:
        from rich.console import Console as RichConsole
    except ImportError:
        return Console(verbose, flop_ct, generations, stream)
    rich = RichConsole(file=output)
    return LiveConsole(rich, verbose, flop_ct, generations, stream) if rich.is_terminal else Console(verbose, flop_ct, generations, stream)


class LiveConsole(Console):
    """Progress on a terminal: a bar for compiling and one for measuring, with the best speed so far.

    Args:
        rich: the terminal.
    """

    def __init__(self, rich: Any, verbose: int, flop_ct: float, generations: int = 4, stream: TextIO | None = None) -> None:
        super().__init__(verbose, flop_ct, generations, stream)
        self._rich = rich
        self._progress: Any = None
        self._failed = 0

    def measuring(self, count: int) -> None:
        super().measuring(count)
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description:<8}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        )
        self._progress = Progress(*columns, console=self._rich, transient=True)
        self._compiled = self._progress.add_task("compile", total=count, note="")
        self._ran = self._progress.add_task("measure", total=count, note="")
        self._failed = 0
        self._progress.start()

    def built(self, number: int, error_no: MeasureErrorNo) -> None:
        """A program was compiled, or not."""
        self._count_failure(error_no)
        if self._progress is not None:
            self._progress.advance(self._compiled)
            if error_no:
                self._progress.advance(self._ran)

    def ran(self, error_no: MeasureErrorNo) -> None:
        """A compiled program was measured, or not."""
        self._count_failure(error_no)
        if self._progress is not None:
            self._progress.advance(self._ran)

    def _count_failure(self, error_no: MeasureErrorNo) -> None:
        self._failed += bool(error_no)
        if self._progress is not None:
            failed = f", {self._failed} failed" if self._failed else ""
            self._progress.update(self._ran, note=f"{self.best_words()}{failed}")

    def close(self) -> None:
        """Take the bars away; an interrupted search leaves the terminal as it was."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _end_marks(self) -> None:
        self.close()
        super()._end_marks()
