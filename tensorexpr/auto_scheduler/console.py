"""What tuning prints: titled blocks and tab-separated progress lines, in the layout that log readers know."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TextIO

from ..schedule.trace import Trace
from ..tune.measure import MeasureErrorNo, MeasureResult
from ..tune.tuner import Trial, TunerObserver

WIDE, NARROW, RULE = "-" * 70, "-" * 30, "=" * 50
_BUILD_MARKS = {MeasureErrorNo.BUILD_TIMEOUT: "T"}


class Console(TunerObserver):
    """Progress as plain lines on standard output.

    Args:
        verbose: 0 prints nothing, 1 the progress, 2 every program too.
        flop_ct: operations of the computation, for GFLOPS.
        generations: of each round; the last one is always shown.
    """

    def __init__(self, verbose: int, flop_ct: float, generations: int = 4, stream: TextIO | None = None) -> None:
        self.verbose = verbose
        self._generations = generations
        self._flops = max(flop_ct, 0.0)
        self._stream = stream
        self._best = 0.0
        self._count = 0
        self._marked = False
        self.describe: Callable[[Trace], str] = lambda trace: "\n".join(map(str, trace.to_json()))

    def _print(self, text: str) -> None:
        if self.verbose:
            print(text, file=self._stream or sys.stdout, flush=True)

    def title(self, name: str) -> None:
        """A titled rule."""
        self._print(f"{WIDE}\n{NARROW}  [ {name} ]\n{WIDE}")

    def say(self, title: str, lines: Sequence[str]) -> None:
        """Lines under a title."""
        self.title(title)
        for line in lines:
            self._print(line)

    def summary(self, text: str) -> None:
        """What came of it."""
        self._print(text)

    def close(self) -> None:
        """Leave the output as it was."""
        if self._marked:
            self._print("")
            self._marked = False

    def known(self, seconds: float) -> None:
        """An earlier run's best program counts too."""
        self._best = max(self._best, self._flops / seconds / 1e9)

    def best_words(self) -> str:
        """The best speed so far; empty before there is one."""
        return f"Best: {self._best:.2f} GFLOPS" if self._flops and self._best else ""

    def searching(self, sketches: int) -> None:
        """The search begins."""
        self.title("Search")
        self._print(f"Generate Sketches\t\t#s: {sketches}")

    def sampled(self, count: int, seconds: float) -> None:
        self._print(f"Sample Initial Population\t#s: {count}\tfail_ct: 0\tTime elapsed: {seconds:.2f}")

    def generation(self, number: int, best: float, worst: float, count: int) -> None:
        if number % 5 == 0 or number == self._generations:
            self._print(f"GA Iter: {number}\tMax score: {best:.4f}\tMin score: {worst:.4f}\t#Pop: {count}\t#M+: 0\t#M-: 0")

    def evolved(self, count: int, seconds: float) -> None:
        self._print(f"EvolutionarySearch\t\t#s: {count}\tTime elapsed: {seconds:.2f}")

    def descending(self, count: int, cost: float) -> None:
        self._print(f"Coordinate Descent\t\t#s: {count}\tCentre: {cost * 1e3:.4g} ms")

    def measuring(self, count: int) -> None:
        self.title("Measure")
        self._print(f"Get {count} programs to measure:")

    def built(self, number: int, error_no: MeasureErrorNo) -> None:
        """A program was compiled, or not: a dot, with a letter if it failed."""
        self._mark("." + _BUILD_MARKS.get(error_no, "E" if error_no else ""))

    def ran(self, error_no: MeasureErrorNo) -> None:
        """A compiled program was measured, or not: a star, with a letter if it failed."""
        self._mark("*" + ("T" if error_no == MeasureErrorNo.RUN_TIMEOUT else "E" if error_no else ""))

    def measured(self, trial: Trial) -> None:
        """A program's result is known: its speed and its program are shown, if all is wanted."""
        self._count += 1
        result = trial.result
        speed = self._flops / result.median / 1e9 if result.is_success else 0.0
        self._best = max(self._best, speed)
        if self.verbose >= 2:
            self._end_marks()
            self._print(f"{RULE}\nNo: {self._count}\tGFLOPS: {speed:.2f} / {self._best:.2f}\tresults: {result}\n{RULE}")
            self._print(self.describe(trial.trace))

    def batch_measured(self, batch: Sequence[Trial], seconds: float) -> None:
        self._end_marks()
        best = f"\t{self.best_words()}" if self.best_words() else ""
        self._print(f"Time elapsed for measurement: {seconds:.2f} s{best}")

    def _mark(self, text: str) -> None:
        if self.verbose:
            print(text, end="", file=self._stream or sys.stdout, flush=True)
            self._marked = True

    def _end_marks(self) -> None:
        if self._marked:
            self._print("")
            self._marked = False

    def trained(self, seconds: float) -> None:
        self.title("Train cost model")
        self._print(f"Time elapsed for training: {seconds:.2f} s")

    def finished(self, reason: str) -> None:
        if reason:
            self._print(reason)
        self.title("Done")


class MeasureMarks:
    """Draws a console's dots and stars as programs pass.

    Args:
        console: what draws them.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    def built(self, number: int, error_no: MeasureErrorNo) -> None:
        """A program was compiled, or not."""
        self._console.built(number, error_no)

    def measured(self, result: MeasureResult) -> None:
        """A compiled program was measured, or not."""
        self._console.ran(result.error_no)
