"""A task of a search, where it stands, and the table that is said of all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...dataclass import dataclass, field
from ..builder.builder import BuilderResult
from ..runner.runner import RunnerFuture, RunnerResult
from ..tune_context import MeasureCandidate, TuneContext


@dataclass
class TaskRecord:
    """A task of a search, and where it stands.

    Args:
        ctx: the task.
        task_weight: how much its time counts.
        flop: operations of its program.
        best_space: the design space of the best program, if several were searched.
    """

    ctx: TuneContext
    task_weight: float = 1.0
    flop: float = 0.0
    best_space: str = ""
    is_terminated: bool = False
    build_error_count: int = 0
    run_error_count: int = 0
    latency_ms: list[float] = field(default_factory=list)
    measure_candidates: list[MeasureCandidate] | None = None
    builder_results: list[BuilderResult] | None = None
    runner_futures: list[RunnerFuture] | None = None
    runner_results: list[RunnerResult] | None = None

    @property
    def best_ms(self) -> float:
        """Milliseconds of the best program; infinite if none ran."""
        return min(self.latency_ms, default=math.inf)


HEADINGS = ("ID", "Name", "FLOP", "Weight", "Speed (GFLOPS)", "Latency (us)", "Weighted Latency (us)", "Trials", "Done")


@dataclass(frozen=True)
class TaskRow:
    """One task: `seconds` per call of its best program, infinite if none ran."""

    name: str
    flop: float
    weight: float
    seconds: float
    trials: int
    done: bool

    def cells(self, number: int) -> tuple[str, ...]:
        """The texts of a row of the table."""
        known = math.isfinite(self.seconds)
        speed = f"{gflops(self.flop, self.seconds):.4f}" if known else "N/A"
        latency = f"{self.seconds * 1e6:.4f}" if known else "N/A"
        weighted = f"{self.seconds * 1e6 * self.weight:.4f}" if known else "N/A"
        weight = f"{self.weight:g}"
        return str(number), self.name, f"{self.flop:g}", weight, speed, latency, weighted, str(self.trials), "Y" if self.done else ""


def gflops(flop: float, seconds: float) -> float:
    """Billions of operations a second; infinite where a runner says that no time passed."""
    return flop / seconds / 1e9 if seconds > 0 else math.inf


def table(rows: Sequence[TaskRow]) -> str:
    """The table of tasks, and totals below it."""
    cells = [HEADINGS, *(row.cells(number) for number, row in enumerate(rows))]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    lines = [" | ".join(f"{cell:>{width}}" for cell, width in zip(line, widths, strict=True)) for line in cells]
    rule = "-" * (len(lines[0]) + 1)
    known = [row for row in rows if math.isfinite(row.seconds)]
    total = sum(row.seconds * row.weight for row in known) * 1e6
    trials = sum(row.trials for row in rows)
    return "\n".join([lines[0], rule, *lines[1:], rule, f"Total trials: {trials}", f"Total latency (us): {total:g}", ""])
