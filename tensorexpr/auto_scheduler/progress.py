"""Progress while programs are measured: moving bars on a terminal and in a notebook, marks everywhere else."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from html import escape
from typing import Any, TextIO

from ..tune.measure import MeasureErrorNo
from .console import Console


def progress_console(verbose: int, flop_ct: float, generations: int = 4, stream: TextIO | None = None) -> Console:
    """A console with moving bars where the output can show them, a terminal or the cell of a notebook, else a plain one."""
    output = stream or sys.stdout
    if stream is None and _in_notebook():
        return NotebookConsole(verbose, flop_ct, generations)
    if not output.isatty():
        return Console(verbose, flop_ct, generations, stream)
    try:
        from rich.console import Console as RichConsole
    except ImportError:
        return Console(verbose, flop_ct, generations, stream)
    rich = RichConsole(file=output)
    return LiveConsole(rich, verbose, flop_ct, generations, stream) if rich.is_terminal else Console(verbose, flop_ct, generations, stream)


def _in_notebook() -> bool:
    """True if a kernel runs this, whose cells show what IPython displays."""
    ipython: Any = sys.modules.get("IPython")
    # never imported for this: a program that runs in a cell has IPython loaded
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


class BarConsole(Console, ABC):
    """A bar for compiling and one for measuring, with the best speed so far, for as long as a round takes."""

    _total = 0  # of the round; 0 between rounds
    _compiled = _ran = _failed = 0

    def measuring(self, count: int) -> None:
        super().measuring(count)
        self._total, self._compiled, self._ran, self._failed = count, 0, 0, 0
        self._draw()

    def built(self, number: int, error_no: MeasureErrorNo) -> None:
        """A program was compiled, or not; then it is not measured either."""
        self._compiled += 1
        self._advance(bool(error_no), bool(error_no))

    def ran(self, error_no: MeasureErrorNo) -> None:
        """A compiled program was measured, or not."""
        self._advance(True, bool(error_no))

    def _advance(self, ran: bool, failed: bool) -> None:
        self._ran += ran
        self._failed += failed
        if self._total:
            self._draw()

    def note(self) -> str:
        """What stands behind the bars."""
        return ", ".join(filter(None, (self.best_words(), f"{self._failed} failed" if self._failed else "")))

    def close(self) -> None:
        """Take the bars away; an interrupted search leaves the output as it was."""
        if self._total:
            self._total = 0
            self._erase()

    def _end_marks(self) -> None:
        self.close()
        super()._end_marks()

    @abstractmethod
    def _draw(self) -> None:
        """Show the bars as they are now."""

    @abstractmethod
    def _erase(self) -> None:
        """Take the bars away."""


class LiveConsole(BarConsole):
    """The bars on a terminal.

    Args:
        rich: the terminal.
    """

    def __init__(self, rich: Any, verbose: int, flop_ct: float, generations: int = 4, stream: TextIO | None = None) -> None:
        super().__init__(verbose, flop_ct, generations, stream)
        self._rich = rich
        self._progress: Any = None

    def _draw(self) -> None:
        if self._progress is None:
            self._start()
        self._progress.update(self._bars[0], completed=self._compiled)
        self._progress.update(self._bars[1], completed=self._ran, note=self.note())

    def _start(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        texts = TextColumn("{task.description:<8}"), TextColumn("{task.fields[note]}")
        self._progress = Progress(
            texts[0], BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), texts[1], console=self._rich, transient=True
        )
        self._bars = [self._progress.add_task(name, total=self._total, note="") for name in ("compile", "measure")]
        self._progress.start()

    def _erase(self) -> None:
        self._progress.stop()
        self._progress = None


class NotebookConsole(BarConsole):
    """The bars in the cell of a notebook: one display that changes."""

    _handle: Any = None

    def _draw(self) -> None:
        rows = (("compile", self._compiled, ""), ("measure", self._ran, self.note()))
        bar = '<tr><td>{0}</td><td><progress value="{1}" max="{3}"></progress></td><td>{1}/{3}</td><td>{2}</td></tr>'
        self._show(f"<table>{''.join(bar.format(name, done, escape(note), self._total) for name, done, note in rows)}</table>")

    def _erase(self) -> None:
        self._show("")

    def _show(self, html: str) -> None:
        if not self.verbose:
            return
        from IPython.display import HTML, display  # type: ignore[import-not-found, unused-ignore]

        if self._handle is None:
            self._handle = display(HTML(html), display_id=True)
        else:
            self._handle.update(HTML(html))
