"""What a person sees: the summary, failures as data, progress on a terminal and elsewhere."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console as RichConsole

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr.auto_scheduler import ComputeDAG
from tensorexpr.auto_scheduler.console import Console
from tensorexpr.auto_scheduler.failures import Failure, failures_of, minimised, repeating_program
from tensorexpr.auto_scheduler.progress import LiveConsole, progress_console
from tensorexpr.auto_scheduler.summary import summary
from tensorexpr.schedule.steps import Annotate, Split
from tensorexpr.schedule.trace import Trace
from tensorexpr.target import Target
from tensorexpr.tune.evolution import Candidate
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo, MeasureResult
from tensorexpr.tune.tuner import Trial

DAG = ComputeDAG('["v06_matmul", 8, 8, 8]')
LEGAL = Trace((Split(2, 0, (None, 4)), Split(2, 1, (None, 2))))
ILLEGAL = LEGAL.append(Annotate(2, 2, "parallel"))


def trial(number: int, cost: float | None = None, error: int = 0, detail: str = "", trace: Trace = LEGAL) -> Trial:
    costs = (FAILED_COST,) if error else (cost or 1.0,)
    made = MeasureResult(costs, MeasureErrorNo(error), "broken\nbadly" if error else "", 0.1, 1.0, not error, detail=detail, number=number)
    made = MeasureResult(**{**vars(made), "timings": {"lower": 0.25, "time": 1.5}})
    return Trial(Candidate(0, (number,)) if number else None, trace, made)


def tuner(*trials: Trial, seconds: dict[str, float] | None = None) -> Any:
    good = [t for t in trials if t.result.is_success]
    best = min(good, key=lambda t: t.result.median, default=None)
    return SimpleNamespace(
        trials=list(trials), seconds=seconds or {"search": 1.0, "measure": 3.0}, preloaded=(), best=lambda: best, descent=None
    )


def test_the_summary_fits_one_screen_and_says_what_matters() -> None:
    text = summary(
        tuner(trial(0, 0.5), trial(1, error=4, detail="Traceback\n" * 50 + "  at the end"), trial(2, 0.125), trial(3, error=4)), 1e9
    )
    lines = text.splitlines()
    assert len(lines) <= 24
    assert lines[0] == "Best:     125 ms, 8.00 GFLOPS, trial 3 of 4; 4.00x the unscheduled program (500 ms)"
    assert lines[1] == "Failures: 2 of 4: RuntimeDeviceError 2"
    assert lines[2] == "          first: trial 2, RuntimeDeviceError: broken badly"
    assert "at the end" in text
    assert lines[-1] == "Time:     4.0 s: measure 3.0, search 1.0; in the workers: time 6.0, lower 1.0"


def test_the_summary_of_nothing_but_failures() -> None:
    lines = summary(tuner(trial(0, error=1), trial(1, error=6)), -1).splitlines()
    assert lines[0] == "Best:     none of 2 programs ran"
    assert lines[1] == "Failures: 2 of 2: InstantiationError 1, BuildTimeoutError 1"
    assert summary(tuner(trial(0, 0.5)), -1).splitlines()[1] == "Failures: none of 1"


def test_the_best_is_compared_with_what_was_chosen_before_measuring() -> None:
    made = tuner(trial(0, 0.5), trial(1, 0.25), trial(2, 0.125))
    assert "; 4.00x the unscheduled program (500 ms), 2.00x the default schedule (250 ms)\n" in summary(made, -1)
    made.preloaded = [(Candidate(0, (7,)), 0.3)]
    assert "default schedule" not in summary(made, -1)


def test_failures_are_counted_by_kind_and_the_first_of_each_is_kept() -> None:
    trials = [trial(0, 0.5), trial(1, error=5), trial(2, error=7), trial(3, error=7)]
    found = failures_of([(t.trace, t.result) for t in trials])
    assert found.kinds == (("RunTimeoutError", 2), ("WrongAnswerError", 1))
    assert [(f.number, f.kind) for f in found.first] == [(1, "WrongAnswerError"), (2, "RunTimeoutError")]
    assert (found.count, found.trials) == (3, 4)


def test_a_failure_of_scheduling_is_cut_down_to_the_steps_it_needs() -> None:
    illegal = Trace((*LEGAL, Annotate(2, 4, "unroll"), Annotate(2, 2, "parallel")))
    failure = Failure(0, "InstantiationError", "", "", illegal)
    assert minimised(DAG, failure).trace == Trace((Annotate(2, 2, "parallel"),))
    crash = Failure(0, "RuntimeDeviceError", "", "", LEGAL)
    assert minimised(DAG, crash).trace == LEGAL


@pytest.mark.parametrize(("trace", "status"), [(ILLEGAL, 1), (LEGAL, 0)])
def test_the_program_repeats_the_failure_on_its_own(tmp_path: Path, trace: Trace, status: int) -> None:
    program = tmp_path / "repeat.py"
    program.write_text(repeating_program(DAG, Target("llvm"), Failure(4, "InstantiationError", 'quo"""ted\n\\', "", trace)))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=300, env=dict(os.environ))
    assert done.returncode == status, done.stderr
    assert ("can't parallel 'k'" in done.stderr) == bool(status)
    assert program.read_text().startswith('"""Repeats trial 5,')


def progress(console: Console) -> None:
    """A round of three programs, one of which fails."""
    console.measuring(3)
    for number, error in ((0, 0), (1, 6), (2, 0)):
        console.built(number, MeasureErrorNo(error))
    for _ in range(2):
        console.ran(MeasureErrorNo.NO_ERROR)
    console.measured(trial(1, 0.5))
    console.batch_measured([], 1.0)


def test_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    made = progress_console(1, 1e9, stream=stream)
    assert type(made) is Console
    progress(made)
    assert "Get 3 programs to measure:\n..T.**\nTime elapsed for measurement: 1.00 s\tBest: 2.00 GFLOPS\n" in stream.getvalue()
    assert "\x1b" not in stream.getvalue()


def test_moving_bars_on_a_terminal_leave_the_lines_behind() -> None:
    stream = io.StringIO()
    made = LiveConsole(RichConsole(file=stream, force_terminal=True, width=100), 1, 1e9, stream=stream)
    progress(made)
    text = stream.getvalue()
    assert "\x1b[" in text and "measure" in text and "compile" in text
    assert text.endswith("Time elapsed for measurement: 1.00 s\tBest: 2.00 GFLOPS\n")
    made.close()


def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(progress_console(1, 1e9, stream=Terminal()), LiveConsole)


class Cell:
    """What IPython shows in a cell: displays by number, each as its last update says."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.seen: list[str] = []

    def display(self, made: str, display_id: bool) -> Cell:
        assert display_id
        self.shown.append(made)
        self.seen.append(made)
        return self

    def update(self, made: str) -> None:
        self.shown[-1] = made
        self.seen.append(made)


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    """The cell of a notebook that stands in for IPython's."""
    made = Cell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object())))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=made.display))
    return made


def test_a_notebook_gets_one_display_that_changes(cell: Cell, capsys: pytest.CaptureFixture[str]) -> None:
    made = progress_console(1, 1e9)
    progress(made)
    assert cell.shown == [""], "the bars are gone in the end"
    assert any('<progress value="3" max="3"></progress></td><td>3/3</td><td>1 failed<' in html for html in cell.seen)
    progress(made)
    assert len(cell.shown) == 1 and any("Best: 2.00 GFLOPS, 1 failed" in html for html in cell.seen)
    assert capsys.readouterr().out.endswith("Time elapsed for measurement: 1.00 s\tBest: 2.00 GFLOPS\n")


def test_a_notebook_shows_nothing_where_nothing_is_asked_for(cell: Cell) -> None:
    progress(progress_console(0, 1e9))
    assert cell.seen == []


def test_verbose_0_says_nothing() -> None:
    stream = io.StringIO()
    made = Console(0, 1e9, stream=stream)
    progress(made)
    made.say("title", ["line"])
    made.summary("text")
    made.finished("reason")
    assert stream.getvalue() == ""


def test_verbose_2_shows_every_program() -> None:
    stream = io.StringIO()
    made = Console(2, 1e9, stream=stream)
    made.describe = lambda trace: "for i (0,8)\n"
    made.measured(trial(1, 0.5))
    rule = "=" * 50
    assert stream.getvalue().startswith(f"{rule}\nNo: 1\tGFLOPS: 2.00 / 2.00\tresults: MeasureResult(cost:[0.5], error_no:0")
    assert stream.getvalue().endswith(f"{rule}\nfor i (0,8)\n\n")
