"""Workers leave nothing behind, whatever their candidates started; and limits count from the start of a job."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from tensorexpr.tune.measure import MeasureErrorNo, MeasureOptions, Measurer, MeasureTask

from .conftest import Programs
from .kill_tuner import MARK, left_behind

NAMES = ["good", "compile_child", "fork", "compile_hang", "deaf", "spin", "good"]


@pytest.mark.slow
def test_no_process_is_left(
    task: MeasureTask, options: MeasureOptions, programs: Programs, _compilers_importable: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    with Measurer(task, replace(options, build_timeout_s=6.0, run_timeout_s=5.0)) as measurer:
        results = list(measurer.measure(programs(NAMES)))
        assert measurer.worker_pids
    assert left_behind(mark) == []
    assert [result.is_success for result in results] == [name in ("good", "fork") for name in NAMES]


def test_limits_count_from_the_start_of_a_job(
    task: MeasureTask, options: MeasureOptions, programs: Programs, _compilers_importable: None
) -> None:
    """One worker takes five seconds for all of these, half a second for each."""
    with Measurer(task, replace(options, n_parallel=1, build_timeout_s=4.0, run_timeout_s=4.0)) as measurer:
        results = list(measurer.measure(programs(["compile_slow"] * 10)))
    assert [result.error_no for result in results] == [MeasureErrorNo.NO_ERROR] * 10
