"""What tuning prints: titled blocks and tab-separated progress lines, in the layout that log readers know."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

from ..tune.tuner import Trial, TunerObserver

WIDE, NARROW, RULE = "-" * 70, "-" * 30, "=" * 50


class Console(TunerObserver):
    """Progress as plain lines on standard output.

    Args:
        verbose: 0 prints nothing, 1 the progress, 2 every program too.
        flop_ct: operations of the computation, for GFLOPS.
        batch: how many dots and stars are printed at a time.
    """

    def __init__(self, verbose: int, flop_ct: float, stream: TextIO | None = None) -> None:
        self.verbose = verbose
        self._flops = max(flop_ct, 0.0)
        self._stream = stream
        self._best = 0.0
        self._count = 0

    def _print(self, text: str) -> None:
        if self.verbose:
            print(text, file=self._stream or sys.stdout, flush=True)

    def title(self, name: str) -> None:
        """A titled rule."""
        self._print(f"{WIDE}\n{NARROW}  [ {name} ]\n{WIDE}")

    def searching(self, sketches: int) -> None:
        """The search begins."""
        self.title("Search")
        self._print(f"Generate Sketches\t\t#s: {sketches}")

    def sampled(self, count: int, seconds: float) -> None:
        self._print(f"Sample Initial Population\t#s: {count}\tfail_ct: 0\tTime elapsed: {seconds:.2f}")

    def evolved(self, count: int, best: float, worst: float, seconds: float) -> None:
        self._print(f"GA Iter: 4\tMax score: {best:.4f}\tMin score: {worst:.4f}\t#Pop: {count}\t#M+: 0\t#M-: 0")
        self._print(f"EvolutionarySearch\t\t#s: {count}\tTime elapsed: {seconds:.2f}")

    def measuring(self, count: int) -> None:
        self.title("Measure")
        self._print(f"Get {count} programs to measure:")

    def measured(self, batch: Sequence[Trial], seconds: float) -> None:
        self._print("".join(_build_mark(trial) for trial in batch) + "".join(_run_mark(trial) for trial in batch))
        for trial in batch:
            self._report(trial)
        best = f"\tBest: {self._best:.2f} GFLOPS" if self._flops and self._best else ""
        self._print(f"Time elapsed for measurement: {seconds:.2f} s{best}")

    def _report(self, trial: Trial) -> None:
        self._count += 1
        result = trial.result
        speed = self._flops / result.mean / 1e9 if result.is_success else 0.0
        self._best = max(self._best, speed)
        if self.verbose >= 2:
            self._print(f"{RULE}\nNo: {self._count}\tGFLOPS: {speed:.2f} / {self._best:.2f}\tresults: {result}\n{RULE}")

    def trained(self, seconds: float) -> None:
        self.title("Train cost model")
        self._print(f"Time elapsed for training: {seconds:.2f} s")

    def finished(self, reason: str) -> None:
        if reason:
            self._print(reason)
        self.title("Done")


def _build_mark(trial: Trial) -> str:
    error = trial.result.error_no
    return ".T" if error.name == "BUILD_TIMEOUT" else ".E" if error.name in ("INSTANTIATION_ERROR", "COMPILE_HOST") else "."


def _run_mark(trial: Trial) -> str:
    error = trial.result.error_no
    if error.name in ("INSTANTIATION_ERROR", "COMPILE_HOST", "BUILD_TIMEOUT"):
        return ""
    return "*" if trial.result.is_success else "*T" if error.name == "RUN_TIMEOUT" else "*E"
