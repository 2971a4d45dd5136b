"""The main job: declare, tune, apply the best, build, run; and what happens when it is disturbed. Properties 33 and 36."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import auto_scheduler, te
from tensorexpr.te.tensor import Tensor


@auto_scheduler.register_workload
def e2e_matmul_add(n: int, m: int, k: int) -> list[Tensor]:
    """out = A @ B + C."""
    a = te.placeholder((n, k), name="A")
    b = te.placeholder((k, m), name="B")
    c = te.placeholder((n, m), name="C")
    r = te.reduce_axis((0, k), name="k")
    matmul = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="matmul")
    return [a, b, c, te.compute((n, m), lambda i, j: matmul[i, j] + c[i, j], name="out")]


def tuned(log: Path, trials: int = 6, seed: int = 0, verbose: int = 0) -> auto_scheduler.SearchTask:
    """A small task, tuned into a log."""
    task = auto_scheduler.SearchTask(func=e2e_matmul_add, args=(48, 64, 40), target="llvm")
    options = auto_scheduler.TuningOptions(
        trials,
        runner=auto_scheduler.LocalRunner(number=1, repeat=1, min_repeat_ms=0),
        measure_callbacks=[auto_scheduler.RecordToFile(log)],
        verbose=verbose,
    )
    task.tune(options, auto_scheduler.SketchPolicy(task, seed=seed))
    return task


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of one small run."""
    path = tmp_path_factory.mktemp("tuning") / "log.json"
    tuned(path)
    return path


def test_the_best_schedule_builds_and_is_right(log: Path) -> None:
    task = auto_scheduler.SearchTask(func=e2e_matmul_add, args=(48, 64, 40), target="llvm")
    schedule, args = task.apply_best(log)
    func = tvm.build(schedule, args, task.target)
    a, b, c = (np.random.default_rng(n).standard_normal(shape, np.float32) for n, shape in enumerate([(48, 40), (40, 64), (48, 64)]))
    out = np.empty((48, 64), np.float32)
    func(a, b, c, out)
    np.testing.assert_allclose(out, a @ b + c, rtol=1e-4, atol=1e-4)
    assert ".vectorize(" in task.print_best(log)


def test_every_trial_is_recorded_and_verified_and_one_is_the_plain_program(log: Path) -> None:
    records = auto_scheduler.load_records(log)
    assert len({json.dumps(record.trace.to_json()) for record in records}) == 6
    assert (
        len({n for n, record in enumerate(records[:6]) if len(record.trace) == 0}) == 1
    )  # at the end of the first batch, where it can be stopped
    assert all(record.verified for record in records if record.is_success)
    assert all(record.workload_key == '["e2e_matmul_add", 48, 64, 40]' for record in records)


def test_33_the_same_seed_proposes_the_same_candidates(log: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    task = tuned(again)
    first, second = ([r.trace.to_json() for r in auto_scheduler.load_records(path)] for path in (log, again))
    assert first == second
    drawn = [
        [repr(state.trace.to_json()) for state in auto_scheduler.SketchPolicy(task, seed=seed).sample_initial_population()]
        for seed in (0, 0, 1)
    ]
    assert drawn[0] == drawn[1] != drawn[2], "the first trials are the plans, whatever the seed; the population behind them is drawn"


def test_36_the_best_is_not_slower_than_the_plain_program(log: Path) -> None:
    records = auto_scheduler.load_records(log)
    best = auto_scheduler.load_best_record(log)
    assert best.mean <= records[0].mean


SCRIPT = """
import sys
from tensorexpr import auto_scheduler, te

@auto_scheduler.register_workload
def big(n):
    a = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), name="k")
    return [a, te.compute((n, n), lambda i, j: te.sum(a[i, k] * a[k, j], axis=k), name="B")]

task = auto_scheduler.SearchTask(func=big, args=(96,), target="llvm")
options = auto_scheduler.TuningOptions(
    1000, num_measures_per_round=2, measure_callbacks=[auto_scheduler.RecordToFile(sys.argv[1])], verbose=1
)
task.tune(options)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGKILL"])
def test_stopping_a_run_keeps_what_is_finished(tmp_path: Path, name: str) -> None:
    log = tmp_path / "log.json"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (log.exists() and log.read_bytes().count(b"\n") >= 2):
        time.sleep(0.05)
    os.kill(process.pid, getattr(signal, name))
    said, errors = process.communicate(timeout=120)  # it ends by itself
    assert process.returncode != 0
    if name == "SIGINT":
        assert "KeyboardInterrupt" in errors
        assert "Interrupted. " in said and "\nBest:     " in said
    assert len(auto_scheduler.load_records(log)) >= 2


def test_progress_is_printed_in_the_known_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuned(tmp_path / "log.json", trials=3, verbose=1)
    text = capsys.readouterr().out
    assert text.startswith("-" * 70 + "\n" + "-" * 30 + "  [ Search ]\n" + "-" * 70 + "\nGenerate Sketches\t\t#s: ")
    assert "Get 3 programs to measure:\n...***" in text
    assert "------------------------------  [ Done ]" in text


def test_verbose_0_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuned(tmp_path / "log.json", trials=1)
    assert capsys.readouterr().out == ""
