"""Property 35: a tuner that dies at any moment loses no finished record and leaves no process; the next run goes on with its log.

A few deaths here; `TENSOREXPR_KILLS=100`, or the command of `kill_tuner`, does more.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from .kill_tuner import run

KILLS = int(os.environ.get("TENSOREXPR_KILLS", "2"))


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_35_no_finished_record_is_lost(sent: int, tmp_path: Path) -> None:
    report = run(KILLS, seed=int(sent), log=tmp_path / "log.json", longest=2.0, sent=sent)
    assert report.is_clean, report
