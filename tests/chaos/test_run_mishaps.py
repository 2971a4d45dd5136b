"""Whatever a candidate's code does to the measuring process is in its own result, and in no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo, MeasureOptions, Measurer, MeasureResult, MeasureTask, TimingPolicy

from .conftest import Programs

pytestmark = pytest.mark.slow

MISHAPS = {
    "segv": (MeasureErrorNo.RUNTIME_DEVICE, "killed by SIGSEGV"),
    "deaf": (MeasureErrorNo.RUN_TIMEOUT, "took longer than 5 s"),
    "spin": (MeasureErrorNo.RUN_TIMEOUT, "took longer than 5 s"),
    "exit": (MeasureErrorNo.RUNTIME_DEVICE, "exited with code 3"),
    "abort": (MeasureErrorNo.RUNTIME_DEVICE, "killed by SIGABRT"),
    "print": (MeasureErrorNo.RUN_TIMEOUT, "took longer than 5 s"),
    "memory": (MeasureErrorNo.RUNTIME_DEVICE, "killed by SIGSEGV"),
    "write_input": (MeasureErrorNo.RUNTIME_DEVICE, "killed by SIGSEGV"),
    "before": (MeasureErrorNo.WRONG_ANSWER, "C: bytes beside the array were written"),
    "past": (MeasureErrorNo.WRONG_ANSWER, "C: bytes beside the array were written"),
    "far": (MeasureErrorNo.RUNTIME_DEVICE, "killed by SIGSEGV"),
    "code": (MeasureErrorNo.RUNTIME_DEVICE, "second: k out of range"),
    "shape": (MeasureErrorNo.RUNTIME_DEVICE, "the code takes C: float32[1025], the task has C: float32[1024]"),
    "wrong": (MeasureErrorNo.WRONG_ANSWER, "C differs at 1024 of 1024 elements"),
    "short": (MeasureErrorNo.WRONG_ANSWER, "C differs at 1 of 1024 elements; worst at [1023]"),
}
NAMES = ["good", *(name for number, mishap in enumerate(MISHAPS) for name in (mishap, "good")[: 1 + (number % 3 == 2)])]


@pytest.fixture(scope="module")
def results(task: MeasureTask, options: MeasureOptions, programs: Programs, _compilers_importable: None) -> list[MeasureResult]:
    """One run over all of them, with good candidates in between."""
    with Measurer(task, options) as running:
        return list(running.measure(programs(NAMES)))


@pytest.mark.parametrize("name", MISHAPS)
def test_a_mishap_is_reported_as_what_it_was(name: str, results: list[MeasureResult]) -> None:
    result = results[NAMES.index(name)]
    error_no, message = MISHAPS[name]
    assert (result.error_no, result.costs, result.verified) == (error_no, (FAILED_COST,), False)
    assert message in result.error_msg


def test_healthy_candidates_do_not_notice(results: list[MeasureResult]) -> None:
    healthy = [result for result, name in zip(results, NAMES, strict=True) if name == "good"]
    assert len(healthy) == 1 + len(MISHAPS) // 3
    assert all(result.is_success and result.verified for result in healthy)


def test_elements_that_were_not_written_are_named_as_such(results: list[MeasureResult]) -> None:
    assert "1 elements are NaN or were not written" in results[NAMES.index("short")].error_msg
    assert "not written" not in results[NAMES.index("wrong")].error_msg


def test_what_a_candidate_printed_is_kept_within_bounds(results: list[MeasureResult]) -> None:
    detail = results[NAMES.index("print")].detail
    assert "xxxx" in detail
    assert "bytes ...]" in detail
    assert len(detail) < 5000


def test_those_that_fail_are_left_out_when_the_best_are_measured_again(measurer: Measurer, programs: Programs) -> None:
    results = measurer.remeasure(programs(["good", "segv", "wrong", "good"]), rounds=3)
    assert [result.is_success for result in results] == [True, False, False, True]
    assert [len(result.costs) for result in results] == [3, 1, 1, 3]


def test_a_candidate_far_slower_than_the_best_is_stopped_in_its_first_call(
    task: MeasureTask, options: MeasureOptions, programs: Programs, _compilers_importable: None
) -> None:
    capped = replace(options, timing=replace(options.timing, stop_factor=20.0))
    with Measurer(task, capped) as measurer:
        _, stopped, after = measurer.measure(programs(["good", "spin", "good"]))
    assert (stopped.error_no, stopped.error_msg) == (MeasureErrorNo.RUN_TIMEOUT, "stopped after 0.5 s, more than 20 times the best")
    assert stopped.policy["stopped_s"] == stopped.least == 0.5  # so much is known of its cost
    assert stopped.median == float("inf") and after.is_success


def test_a_slow_candidate_stops_after_one_run(
    task: MeasureTask, options: MeasureOptions, programs: Programs, _compilers_importable: None
) -> None:
    """It sleeps for 20 ms at every call, the others take microseconds; by 200 times nothing else slows these in a run of 10 ms."""
    racing = replace(options, timing=TimingPolicy(min_repeat_ms=10.0, repeat=5, repeat_factor=0.0, patience_s=0.0, racing_factor=200.0))
    with Measurer(task, racing) as running:
        fast, slow, alone = running.measure(programs(["good", "sleep", "good"]))
    assert (slow.policy["raced"], slow.policy["number"], len(slow.costs)) == (True, 1, 1)
    assert slow.is_success and slow.verified
    for result in (fast, alone):
        assert (result.policy["raced"], len(result.costs), result.policy["racing_factor"]) == (False, 5, 200.0)
        assert result.policy["number"] > 1
