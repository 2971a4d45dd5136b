"""Failures as users meet them: counted by kind, told from a log, and repeated by a program of their own."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tests.v06_workloads  # noqa: F401  (registers the workloads)
from tensorexpr.auto_scheduler import (
    MeasureInput,
    MeasureResult,
    RecordToFile,
    SearchTask,
    TuningOptions,
    explain_failures,
    save_records,
)
from tensorexpr.auto_scheduler.failures import Failure, failures_of, minimised_by_measuring, repeating_program
from tensorexpr.lower.context import PassContext
from tensorexpr.lower.plain_context import arguments_of_words
from tensorexpr.schedule.steps import Annotate, Pragma, Split
from tensorexpr.schedule.trace import Trace
from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo

WORDS = {"disabled_pass.tir.StorageFlatten": True, "config.tir.UnrollLoop.auto_max_step": 4, "config.tir.noalias": 1, "opt_level": 3}
OPTIONS: dict[str, Any] = {
    "disabled_pass": ["tir.StorageFlatten"],
    "config": {"tir.UnrollLoop": {"auto_max_step": 4}, "tir.noalias": 1},
    "opt_level": 3,
}


def task() -> SearchTask:
    """A small product."""
    return SearchTask(func="v06_matmul", args=(8, 8, 8), target="llvm -num-cores=1")


def failed(error: int, policy: dict[str, Any] | None = None, message: str = "broken") -> MeasureResult:
    """A failure."""
    return MeasureResult((FAILED_COST,), MeasureErrorNo(error), message, 0.1, 1.0, policy=policy or {})


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own."""
    path = folder / "repeat.py"
    path.write_text(program)
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=100, env=dict(os.environ))


def test_a_failure_keeps_the_options_it_happened_under() -> None:
    (failure,) = failures_of([(Trace(), failed(2, {"number": 3, **WORDS}))]).first
    assert failure.options == OPTIONS
    assert repr(PassContext(**arguments_of_words(WORDS))) == repr(PassContext(**OPTIONS))


def test_a_run_that_fails_throughout_can_be_explained_and_repeated(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    with PassContext(disabled_pass=["tir.StorageFlatten"]):
        task().tune(TuningOptions(3, verbose=0, measure_callbacks=[RecordToFile(log)]))
    text = explain_failures(log, task())
    head, _, program = text.partition("A program that repeats the first of them:\n\n")
    assert head.startswith("Failures: 3 of 3: ")
    assert "trial 1: " in head
    assert "PassContext(disabled_pass=['tir.StorageFlatten'])" in program
    again = run(program, tmp_path)
    assert again.returncode == 1
    message = head.partition("trial 1: ")[2].splitlines()[0]
    assert message[:60] in " ".join(again.stderr.split())
    healed = run(program.replace("disabled_pass=['tir.StorageFlatten']", ""), tmp_path)
    assert (healed.returncode, healed.stdout) == (0, "no failure\n"), healed.stderr


def test_nothing_to_explain(tmp_path: Path) -> None:
    good = MeasureResult((1.0,), MeasureErrorNo(0), "", 0.1, 1.0, True)
    save_records(tmp_path / "log.json", [MeasureInput(task(), Trace())], [good])
    assert explain_failures(tmp_path / "log.json", task()) == "Failures: none of 1"


def test_a_wrong_answer_is_repeated_by_comparing(tmp_path: Path) -> None:
    """Nothing here is wrong in truth, so that the program finds no failure."""
    program = repeating_program(task().compute_dag, task().target, Failure(0, "WrongAnswerError", "C differs", "", Trace()))
    assert "assert_schedule_correct" in program
    assert run(program, tmp_path).stdout == "no failure\n"


@pytest.mark.parametrize("word", ['say "x"', "a\\b", "\u00e9\n", '"""', "end\\"])
def test_words_of_a_trace_survive_in_the_program(tmp_path: Path, word: str) -> None:
    """A JSON text in a Python text: what both escape comes through both."""
    trace = Trace((Pragma(2, 0, "debug", word),))
    program = repeating_program(task().compute_dag, task().target, Failure(0, "RuntimeDeviceError", "", "", trace))
    (steps,) = (one.value for one in ast.parse(program).body if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "STEPS")
    assert isinstance(steps, ast.Call)
    assert Trace.from_json(json.loads(ast.literal_eval(steps.args[0]))) == trace


def test_what_only_a_run_shows_is_minimised_by_running() -> None:
    guilty, innocent = Split(2, 1, (None, 2)), Split(2, 0, (None, 4))
    tried: list[int] = []

    def measure(programs: Sequence[Any]) -> Iterator[MeasureResult]:
        for program in programs:
            tried.append(len(program.trace))
            yield failed(4 if guilty in program.trace.steps else 1 if not len(program.trace) else 0)

    failure = Failure(7, "RuntimeDeviceError", "", "", Trace((innocent, guilty, Annotate(2, 0, "unroll"))))
    made = minimised_by_measuring(failure, SimpleNamespace(measure=measure))  # type: ignore[arg-type]
    assert made.trace == Trace((guilty,))
    assert len(tried) == 3


@pytest.mark.slow
def test_a_log_is_explained_with_less(tmp_path: Path) -> None:
    trace = Trace((Split(2, 0, (None, 4)), Annotate(2, 2, "parallel")))
    log = tmp_path / "log.json"
    save_records(log, [MeasureInput(task(), trace)], [failed(1, message="In schedule for C: can't")])
    text = explain_failures(log, task(), minimise=True)
    assert "split" not in text
    assert "parallel" in text
