"""Property 35: workers that somebody else kills, tuners that are interrupted or killed themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tensorexpr.errors import TuningError
from tensorexpr.tune.measure import MeasureErrorNo, MeasureOptions, Measurer, MeasureResult, MeasureTask

from .conftest import Programs

PATIENCE_SECONDS = 20.0


def wait_until_gone(pids: list[int]) -> list[int]:
    """Those of `pids` that still run after a while."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline and any(is_running(pid) for pid in pids):
        time.sleep(0.02)
    return [pid for pid in pids if is_running(pid)]


def is_running(pid: int) -> bool:
    """Whether there is such a process, and it isn't merely waiting to be reaped."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_35_killing_any_worker_at_any_time_costs_no_other_result(measurer: Measurer, programs: Programs) -> None:
    names = ["good", "sleep"] * 15
    killed: list[int] = []
    done = threading.Event()

    def kill_now_and_then() -> None:
        for number, pause in enumerate([0.02, 0.5, 0.1, 0.7, 0.9, 0.3, 1.1]):
            if done.wait(pause):
                return
            for pid in measurer.worker_pids[number % 3 :][:1]:
                killed.append(pid)
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        results = list(measurer.measure(programs(names)))
    finally:
        done.set()
        killer.join()
    assert killed, "nothing was killed, so nothing was tested"
    assert [result.number for result in results] == list(range(len(names)))
    failed = [result for result in results if not result.is_success]
    assert all("SIGKILL" in result.error_msg for result in failed)
    assert len(failed) <= len(killed) // 2, "a candidate is given up only when its worker was killed twice"


def test_a_killed_reference_is_made_again_at_once(task: MeasureTask, options: MeasureOptions, programs: Programs) -> None:
    # whoever waited for a process that is gone would do so beyond the time of a test
    with Measurer(task, replace(options, reference_timeout_s=3600.0)) as measurer:
        os.kill(measurer.worker_pids[0], signal.SIGKILL)
        (result,) = measurer.measure(programs(["good"]))
        assert result.verified


def test_workers_that_die_at_rest_are_replaced(measurer: Measurer, programs: Programs) -> None:
    assert all(result.is_success for result in measurer.measure(programs(["good", "good"])))
    for pid in measurer.worker_pids:
        os.kill(pid, signal.SIGKILL)
    assert all(result.is_success for result in measurer.measure(programs(["good", "good"])))


def test_a_stopped_worker_is_a_hung_one(task: MeasureTask, options: MeasureOptions, programs: Programs) -> None:
    with Measurer(task, replace(options, n_parallel=1, build_timeout_s=1.0)) as measurer:
        assert [result.is_success for result in measurer.measure(programs(["good"]))] == [True]
        (builder,) = [pid for pid in measurer.worker_pids if "compile_worker" in " ".join(psutil.Process(pid).cmdline())]
        os.kill(builder, signal.SIGSTOP)
        (result,) = measurer.measure(programs(["good"]))
        assert result.error_no == MeasureErrorNo.BUILD_TIMEOUT
        assert [result.is_success for result in measurer.measure(programs(["good"]))] == [True]


@pytest.mark.parametrize("names", [["good", "compile_hang"], ["good", "spin"]])
def test_an_interrupt_ends_everything_and_keeps_what_is_known(
    names: list[str], task: MeasureTask, options: MeasureOptions, programs: Programs
) -> None:
    patient = replace(options, build_timeout_s=300.0, run_timeout_s=300.0, batch_size=1)
    known: list[MeasureResult] = []
    with Measurer(task, patient) as measurer:
        interrupt = threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT))
        pids: list[int] = []
        with pytest.raises(KeyboardInterrupt):
            for result in measurer.measure(programs(names)):
                known.append(result)
                pids = measurer.worker_pids
                interrupt.start()
        assert [result.is_success for result in known] == [True]
        assert pids
        assert wait_until_gone(pids) == []


def test_workers_end_with_a_tuner_that_is_killed(tmp_path: Path) -> None:
    program = f"""
import sys, time
sys.path.append({str(Path(__file__).parent)!r})
from tensorexpr import te
from tensorexpr.target import Target
from tensorexpr.tune.measure import Measurer, MeasureOptions, MeasureTask
a = te.placeholder((1024,), name="A")
c = te.compute((1024,), lambda i: a[i] + 1.0, name="C")
with Measurer(MeasureTask((a, c), Target("llvm")), MeasureOptions(n_parallel=2, compiler="chaos_compilers:make_compiler")) as measurer:
    print(*measurer.worker_pids, flush=True)
    time.sleep(300)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment) as tuner:
        assert tuner.stdout is not None
        pids = [int(word) for word in tuner.stdout.readline().split()]
        assert len(pids) == 3
        assert all(is_running(pid) for pid in pids)
        tuner.kill()
    assert wait_until_gone(pids) == []


def test_nothing_is_left_behind(
    task: MeasureTask, options: MeasureOptions, programs: Programs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with Measurer(task, options) as measurer:
        folders = list(tmp_path.iterdir())  # of the workers, and of what the task shares with them
        assert len(folders) == 2 and all(folder.stat().st_mode & 0o777 == 0o700 for folder in folders)
        list(measurer.measure(programs(["good", "segv"])))
        pids = measurer.worker_pids
        # two that compile, the one that made what is expected, which waits for another task, and the measuring one
        assert len(pids) == 4, "in place of the measuring process that died another one starts at once"
    assert wait_until_gone(pids) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("plug", "message"),
    [
        ("chaos_compilers:refuse", "can't work on this task: this task is refused"),
        ("chaos_compilers:die", "doesn't start: exited with code 4. It printed: dying on purpose"),
        ("chaos_compilers:no_such", "no 'chaos_compilers:no_such'"),
    ],
)
def test_workers_that_can_not_serve_are_an_error(
    plug: str, message: str, task: MeasureTask, options: MeasureOptions, programs: Programs
) -> None:
    with Measurer(task, replace(options, compiler=plug)) as measurer, pytest.raises(TuningError) as caught:
        list(measurer.measure(programs(["good"])))
    assert message in str(caught.value)
