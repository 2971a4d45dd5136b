"""Kills a tuner at random moments, again and again, and sees what is left: every finished record, and no process.

    python -m tests.chaos.kill_tuner --kills 100 --seed 0

Each run goes on with the log of those before it. A record is finished when the callback after `RecordToFile` was called with it;
the tuner then says so on a pipe. After each kill the log is read: all lines but a torn one parse, no finished record is missing,
no program was measured twice, and no process of the tuner lives on. The last run ends by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tensorexpr import auto_scheduler, te
from tensorexpr.errors import RecordError
from tensorexpr.fleet import Fleet
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.records import Record, parse_record

ROOT = Path(__file__).resolve().parents[2]
MARK = "TENSOREXPR_CHAOS_RUN"
PATIENCE_SECONDS = 20.0
LAST_RUN_SECONDS = 110.0
_Key = tuple[float, str]


@auto_scheduler.register_workload
def kill_tuner_matmul(size: int) -> list[Tensor]:
    """A small product."""
    a, b = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    k = te.reduce_axis((0, size), name="k")
    return [a, b, te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")]


class Finished(auto_scheduler.MeasureCallback):
    """Says of every record that it is finished, in one write."""

    def callback(self, policy: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """Called after the log was written."""
        for made, result in zip(inputs, results, strict=True):
            os.write(1, f"{json.dumps([result.timestamp, json.dumps(made.trace.to_json())])}\n".encode())


def tune(log: Path, trials: int, scheduler: str = "", key: str | None = None) -> None:
    """Tune into a log, from where it ends; on the devices of a fleet if a scheduler is named."""
    task = auto_scheduler.SearchTask(func=kill_tuner_matmul, args=(96,), target="llvm")
    timing: dict[str, Any] = {"number": 1, "repeat": 1, "min_repeat_ms": 1}
    fleet = Fleet(scheduler) if scheduler else None
    options = auto_scheduler.TuningOptions(
        num_measure_trials=trials,
        num_measures_per_round=8,
        builder=fleet.builder() if fleet else auto_scheduler.LocalBuilder(),
        runner=fleet.runner(key, **timing) if fleet else auto_scheduler.LocalRunner(**timing),
        measure_callbacks=[auto_scheduler.RecordToFile(log), Finished()],
        verbose=0,
    )
    task.tune(options, auto_scheduler.SketchPolicy(task, init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(log)]))


@dataclass
class Report:
    """What many kills left behind.

    Args:
        kills: how often a tuner was killed.
        finished: records that tuners had finished.
        lost: of these, those that the log lacks.
        torn: lines that don't parse.
        repeated: programs that were measured although the log had them.
        orphans: processes that outlived their tuner.
        resumed: records of the last run, which nobody killed.
    """

    kills: int = 0
    finished: int = 0
    lost: int = 0
    torn: int = 0
    repeated: int = 0
    orphans: int = 0
    resumed: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, nothing was left, and the last run went on. Each kill may tear the line it meets."""
        found_any = self.finished > self.resumed > 0
        return found_any and not (self.lost or self.repeated or self.orphans) and self.torn <= self.kills


def run(kills: int, seed: int, log: Path, longest: float, sent: int = signal.SIGKILL, scheduler: str = "") -> Report:
    """Kill tuners at random moments, up to `longest` seconds after they start or after their first record.

    They measure on the devices that `scheduler` says with their key, if there is one: "tcp://127.0.0.1:8786 key".
    """
    draw = random.Random(seed)
    report = Report()
    finished: set[_Key] = set()
    for _ in range(kills):
        moment = draw.uniform(0.0, longest)
        finished |= _killed(log, moment, sent, report, scheduler)
        _examine(log, finished, report)
    before = len(_records(log)[0])
    finished |= _ended(log, report, scheduler)
    _examine(log, finished, report)
    report.resumed = len(_records(log)[0]) - before
    return report


def _start(log: Path, trials: int, scheduler: str) -> tuple[subprocess.Popen[bytes], str]:
    mark = uuid.uuid4().hex
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]), MARK: mark}
    command = [sys.executable, "-m", "tests.chaos.kill_tuner", "--tune", str(log), "--trials", str(trials), "--fleet", scheduler]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL), mark


def _killed(log: Path, moment: float, sent: int, report: Report, scheduler: str) -> set[_Key]:
    """What a tuner had finished when it was killed: every other one after its first record, however long that takes to come."""
    process, mark = _start(log, 100_000, scheduler)
    assert process.stdout is not None
    said = process.stdout.readline() if report.kills % 2 else b""
    timer = threading.Timer(moment, process.send_signal, (sent,))
    timer.start()
    said += process.stdout.read()
    process.wait()
    timer.cancel()
    report.kills += 1
    report.orphans += len(left_behind(mark))
    return _keys(said)


def _ended(log: Path, report: Report, scheduler: str) -> set[_Key]:
    process, mark = _start(log, 8, scheduler)
    said, _ = process.communicate(timeout=LAST_RUN_SECONDS)
    if process.returncode:
        raise SystemExit(f"the last tuner, which nobody killed, ended with code {process.returncode}")
    report.orphans += len(left_behind(mark))
    return _keys(said)


def _keys(said: bytes) -> set[_Key]:
    """The records in whole lines of what a tuner said."""
    whole = said[: said.rfind(b"\n") + 1]
    return {(float(timestamp), str(trace)) for timestamp, trace in map(json.loads, whole.splitlines())}


def left_behind(mark: str) -> list[int]:
    """Other processes whose environment has the mark, and that still run after a while."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := _marked(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def _marked(mark: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def _records(log: Path) -> tuple[list[Record], int]:
    """The records of a log, and how many lines are none."""
    records, torn = [], 0
    for line in log.read_bytes().splitlines() if log.exists() else []:
        try:
            records.append(parse_record(line))
        except RecordError:
            torn += 1
    return records, torn


def _examine(log: Path, finished: set[_Key], report: Report) -> None:
    records, report.torn = _records(log)
    known = {(record.timestamp, json.dumps(record.trace.to_json())) for record in records}
    report.finished = len(finished)
    report.lost = len(finished - known)
    first = Counter(json.dumps(record.trace.to_json()) for record in records if not record.is_timed_again)
    report.repeated = sum(count - 1 for count in first.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns 0 if nothing was lost and nothing was left."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.kill_tuner", description="Kill tuners at random moments.")
    parser.add_argument("--kills", type=int, default=100, help="how many tuners to kill")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--longest", type=float, default=4.0, help="seconds that a tuner lives at most, or goes on measuring")
    parser.add_argument("--signal", choices=["KILL", "INT", "TERM"], default="KILL", help="what to send")
    parser.add_argument("--tune", type=Path, help="be the tuner, and tune into this log")
    parser.add_argument("--trials", type=int, default=8, help="of the tuner")
    parser.add_argument("--fleet", default="", metavar="SCHEDULER KEY", help="measure on devices of its workers")
    options = parser.parse_args(arguments)
    if options.tune is not None:
        tune(options.tune, options.trials, *options.fleet.split(" "))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        start = time.monotonic()
        report = run(
            options.kills, options.seed, Path(folder) / "log.json", options.longest, getattr(signal, f"SIG{options.signal}"), options.fleet
        )
    print(f"{report}, {time.monotonic() - start:.0f} s")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
