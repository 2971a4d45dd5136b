"""Ctrl-C while a network is tuned: a real SIGINT, in the middle of the search."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from tensorexpr import auto_scheduler

_ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = """
from tensorexpr import relax
from tensorexpr.relay import testing

if __name__ == "__main__":
    mod, params = testing.mlp.get_workload(1)
    tuned = relax.tune_network(mod, params, "llvm -num-cores 2", budget_s=3000, records="log.json", progress=True)
    print(tuned.is_interrupted, len(tuned.tasks), tuned.tuned_s <= tuned.untuned_s, flush=True)
"""
_PATIENCE_S = 400.0


def test_what_was_found_until_then_is_built(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    log, environment = tmp_path / "log.json", {**os.environ, "PYTHONPATH": str(_ROOT)}
    started = subprocess.Popen(
        [sys.executable, "program.py"], cwd=tmp_path, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while started.poll() is None and time.monotonic() < deadline and (not log.exists() or log.read_text().count("\n") < 4):
            time.sleep(0.05)
        workers = psutil.Process(started.pid).children(recursive=True)
        started.send_signal(signal.SIGINT)
        printed, said = started.communicate(timeout=_PATIENCE_S)
    finally:
        started.kill()
    assert started.returncode == 0, said
    assert printed.split() == ["True", "4", "True"] and "interrupted: what was found" in said
    records = auto_scheduler.load_records(log)
    assert len(records) >= 4 and (tmp_path / "log.best.json").exists()
    assert not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in workers)
