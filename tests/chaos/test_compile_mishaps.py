"""Whatever a candidate does to its compile worker is in its own result, and in no other."""

from __future__ import annotations

import pytest

from tensorexpr.tune.measure import FAILED_COST, MeasureErrorNo, MeasureOptions, Measurer, MeasureResult, MeasureTask

from .conftest import Programs

pytestmark = pytest.mark.slow

MISHAPS = {
    "compile_crash": (MeasureErrorNo.COMPILE_HOST, "SIGSEGV"),
    "compile_hang": (MeasureErrorNo.BUILD_TIMEOUT, "took longer than 6 s"),
    "compile_native_hang": (MeasureErrorNo.BUILD_TIMEOUT, "took longer than 6 s"),
    "compile_child": (MeasureErrorNo.BUILD_TIMEOUT, "took longer than 6 s"),
    "compile_exit": (MeasureErrorNo.COMPILE_HOST, "exited with code 7"),
    "compile_sys_exit": (MeasureErrorNo.COMPILE_HOST, "exited with code 0"),
    "compile_kill": (MeasureErrorNo.COMPILE_HOST, "SIGKILL"),
    "compile_memory": (MeasureErrorNo.COMPILE_HOST, "MemoryError"),
    "compile_garbage": (MeasureErrorNo.COMPILE_HOST, "garbage"),
    "compile_oversized": (MeasureErrorNo.COMPILE_HOST, "over the limit"),
    "compile_torn": (MeasureErrorNo.COMPILE_HOST, "in the middle of an answer"),
    "compile_error": (MeasureErrorNo.COMPILE_HOST, "RuntimeError: the compiler is broken"),
    "schedule_error": (MeasureErrorNo.INSTANTIATION_ERROR, "In schedule for C: nothing fits"),
}
HEALTHY = ("good", "compile_print")
NAMES = ["good", *(name for number, mishap in enumerate(MISHAPS) for name in (mishap, "good")[: 1 + (number % 3 == 2)]), "compile_print"]


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
    assert "\n" not in result.error_msg


def test_healthy_candidates_do_not_notice(results: list[MeasureResult]) -> None:
    healthy = [result for result, name in zip(results, NAMES, strict=True) if name in HEALTHY]
    assert len(healthy) == 2 + len(MISHAPS) // 3
    for result in healthy:
        assert (result.error_no, result.error_msg, result.verified) == (MeasureErrorNo.NO_ERROR, "", True)
        assert all(0 < cost < 1 for cost in result.costs)


def test_results_come_in_the_order_of_the_programs(results: list[MeasureResult]) -> None:
    assert [result.number for result in results] == list(range(len(NAMES)))


def test_tracebacks_are_kept_beside_the_message(results: list[MeasureResult]) -> None:
    result = results[NAMES.index("compile_error")]
    assert "Traceback" in result.detail
    assert "and says so at length" in result.detail
