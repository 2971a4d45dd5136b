"""Tasks that are chosen, styles that tune them, trials and seconds."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import relay
from tensorexpr.driver import tvmc
from tensorexpr.driver.cli import main
from tensorexpr.driver.tvmc import autotuner
from tensorexpr.driver.tvmc.model import TVMCModel
from tensorexpr.driver.tvmc.tuning_table import TuningTable
from tensorexpr.relax.tuning.outcome import NetworkTuning, TaskOutcome
from tensorexpr.tune.measure.results import TIMED_AGAIN

from .network import W


@pytest.mark.parametrize(
    ("text", "chosen", "is_list"),
    [
        ("all", "abcdefgh", False),
        ("0,2", "ac", False),
        ("-2", "abc", False),
        ("1-3,5-", "bcdfgh", False),
        ("list", "abcdefgh", True),
        ("list,1-2", "bc", True),
    ],
)
def test_some_of_the_tasks(text: str, chosen: str, is_list: bool) -> None:
    assert autotuner.filter_tasks("abcdefgh", text) == (list(chosen), is_list)


def test_tasks_that_there_are_not() -> None:
    with pytest.raises(tvmc.TVMCException, match="there are 2 tasks"):
        autotuner.filter_tasks("ab", "7")
    for text in ("x", "1-0", ",", ""):
        with pytest.raises(tvmc.TVMCException, match="expected"):
            autotuner.filter_tasks("ab", text)
    with pytest.raises(tvmc.TVMCException, match=r"nothing to tune: .*--input-shapes"):
        autotuner.filter_tasks([], "list")


def test_templates_are_tuned(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By AutoTVM, whose tuner is told what was asked for, and keeps what it measured when it is interrupted."""
    asked: dict[str, Any] = {}

    def tune(self: Any, n_trial: int, measure_option: Any, early_stopping: Any = None, callbacks: Any = ()) -> None:
        asked.update(n_trial=n_trial, early_stopping=early_stopping)
        raise KeyboardInterrupt

    monkeypatch.setattr("tensorexpr.autotvm.tuner.GATuner.tune", tune)
    assert main(["tune", str(folder / "net.relay"), "-o", str(tmp_path / "r.json"), "--tuner", "ga", "--trials", "3"]) == 130
    assert asked == {"n_trial": 3, "early_stopping": None}
    # as a function, too, a tuner's name is enough
    with pytest.raises(KeyboardInterrupt):
        tvmc.tune(tvmc.load(folder / "net.relay"), "llvm", tmp_path / "r.json", tuner="ga", trials=5)
    assert asked == {"n_trial": 5, "early_stopping": None}
    with pytest.raises(tvmc.TVMCException, match="--trials 0: at least one program"):
        tvmc.tune(tvmc.load(folder / "net.relay"), "llvm", tmp_path / "r.json", trials=0)


def test_a_budget_of_seconds_is_that_of_the_network(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is asked for gets to `relax.tune_network`, and the programs that it chose are what `compile` is told to take."""
    asked: dict[str, Any] = {}
    task = TaskOutcome("k", "key", ("k",), 1, 1e-3, 1e-3, 2, "rule")

    def tune(mod: Any, params: Any, target: Any, **options: Any) -> NetworkTuning:
        asked.update(options)
        executable: Any = None
        return NetworkTuning((task,), 1e-3, 1e-3, 2.0, 2.5, 2, False, Path("r.json"), Path("r.best.json"), executable)

    monkeypatch.setattr(autotuner, "tune_network", tune)
    monkeypatch.setattr(autotuner, "network_page", lambda tuning: f"<p>{tuning.trials}</p>")
    monkeypatch.chdir(folder)
    assert main(["tune", "net.relay", "-o", "r.json", "--budget", "2.5", "--tasks", "0", "--tuning-records", "old.json"]) == 0
    assert (asked["budget_s"], asked["records"], asked["prior_records"], len(asked["tasks"])) == (2.5, "r.json", ("old.json",), 1)
    assert (folder / "r.html").read_text() == "<p>2</p>"
    printed = capsys.readouterr().out
    assert "2 programs measured in 2 s" in printed and "compile net.relay --tuning-records r.best.json" in printed
    assert asked["by"] == "auto_scheduler" and [asked["builder"].n_parallel, asked["runner"].number] == [None, None]
    assert main(["tune", "net.relay", "-o", "r.json", "--budget", "2.5", "--by", "meta_schedule", "--number", "3", "--parallel", "2"]) == 0
    assert asked["by"] == "meta_schedule" and [asked["runner"].number, asked["builder"].n_parallel] == [3, 2]
    assert asked["inputs"] is None
    given = ["-i", "in.npz", "--input-shapes", "x:[3,4]", "--target", "llvm -num-cores=2"]
    assert main(["tune", "net.relay", "-o", "r.json", "--budget", "2.5", *given]) == 0
    read: Any = asked["inputs"]
    np.testing.assert_array_equal(read["w"], W)
    assert "--input-shapes 'x:[3,4]' --target 'llvm -num-cores=2'" in capsys.readouterr().out
    assert main(["tune", "net.relay", "-o", "r.json", "--budget", "2.5", "--trials", "3"]) == 4
    task = replace(task, workload_key="")
    assert main(["tune", "net.relay", "-o", "r.json", "--budget", "2.5"]) == 4
    assert "nothing to tune: no products or convolutions of known sizes" in capsys.readouterr().err


def test_trials_go_to_the_style_that_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Any] = []

    def tune(self: Any, tune_option: Any, search_policy: Any) -> None:
        asked.append((tune_option.num_measure_trials, {type(one).__name__ for one in search_policy}, len(self.tasks)))

    monkeypatch.setattr("tensorexpr.auto_scheduler.TaskScheduler.tune", tune)
    monkeypatch.chdir(folder)
    for by, policy in (("auto_scheduler", "SketchPolicy"), ("autotvm", "TemplatePolicy"), ("meta_schedule", "BlocksPolicy")):
        assert main(["tune", "net.relay", "-o", "r.json", "--trials", "5", "--by", by]) == 0
        assert asked.pop() == (5, {policy}, 1)
    one = relay.var("x", shape=(3, 4))
    simple = relay.Function((one,), relay.nn.softmax(one))
    TVMCModel(tvm.IRModule.from_expr(simple), {}).save(folder / "simple.tar")
    assert main(["tune", "simple.tar", "-o", "r.json", "--trials", "5", "--by", "autotvm", "--include-simple-tasks"]) == 4
    said = capsys.readouterr()
    assert "autotvm has no programs of it" in said.out and "nothing to tune: autotvm has programs of none" in said.out + said.err
    with pytest.raises(tvmc.TVMCException, match="no search is called 'luck'"):
        tvmc.tune(tvmc.load(folder / "net.relay"), "llvm", by="luck")


class _Task:
    """What a table and a choice of tasks ask of one."""

    def __init__(self, name: str, operations: float) -> None:
        self.desc = self.workload_key = name
        self.compute_dag = SimpleNamespace(flop_ct=operations)


def test_few_trials_go_to_the_kernels_with_the_most_operations(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [_Task("small", 10.0), _Task("large", 500.0), _Task("often", 90.0)]
    counts = {id(task): 5 if task.desc == "often" else 1 for task in tasks}
    assert autotuner._affordable(tasks, counts, 12) == tasks and not capsys.readouterr().out
    assert [task.desc for task in autotuner._affordable(tasks, counts, 8)] == ["large", "often"]
    assert "8 programs are few for 3 kernels: the 2 with the most operations, 99% of all, are tuned; --trials 12" in capsys.readouterr().out
    assert [task.desc for task in autotuner._affordable(tasks, counts, 1)] == ["large"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("is_terminal", [False, True])
def test_one_table_shows_all_tasks_while_trials_tune_them(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = _Terminal() if is_terminal else io.StringIO()
    tasks = [_Task("conv2d_relu", 1.0), _Task("matmul", 1.0), _Task("never_ran", 1.0)]
    table = TuningTable(tasks, [3, 1, 1], 6, stream=out)
    for task, seconds in ((0, 4e-3), (1, 5e-3), (0, 2e-3)):
        table.pre_tune(None, task)
        measured = SimpleNamespace(is_success=True, median=seconds, policy={})
        given = SimpleNamespace(task=tasks[task], trace=("a step",))
        table.watch.callback(None, [given], [measured])
        table.post_tune(None, task)
    again = SimpleNamespace(is_success=True, median=1.9e-3, policy={TIMED_AGAIN: True})
    table.watch.callback(None, [SimpleNamespace(task=tasks[0], trace=("a step",))], [again])  # no trial
    table.close()
    *before, head, first, second, third, summary = out.getvalue().splitlines()
    assert head.split() == ["ms", "first", "ms", "best", "gain", "calls", "trials", "kernel"] or is_terminal
    assert first.split() == ["12.000", "5.700", "2.11x", "3", "2", "conv2d_relu"]  # all calls, what takes most first
    assert second.split() == ["5.000", "5.000", "-", "1", "1", "matmul"]
    assert third.split() == ["-", "-", "-", "1", "0", "never_ran"]
    assert summary == "kernels: 17.000 ms by the first programs, 10.700 ms by the best, 1.59x; 1 of 3 kernels have no program that ran"
    if is_terminal:  # each drawing goes where the one before was
        assert out.getvalue().count("\x1b[5F\x1b[J") == 6
    else:
        assert [" ".join(line.split()[2:]) for line in before][-1] == "3 of 6 tried 2 of 3 kernels: 11.000 ms conv2d_relu"
