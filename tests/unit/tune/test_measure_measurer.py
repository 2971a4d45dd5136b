"""The whole way: traces in, verified costs out, through real workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tensorexpr.errors import TuningError
from tensorexpr.schedule.trace import Trace
from tensorexpr.target import Target
from tensorexpr.tune.measure import (
    FAILED_COST,
    OFFSETS,
    MeasureErrorNo,
    MeasureOptions,
    Measurer,
    MeasureResult,
    MeasureTask,
    Program,
    TimingPolicy,
    Workers,
)

from .programs import elementwise, matmul, softmax, tiled

ARGS = matmul(64)
TASK = MeasureTask(ARGS, Target("llvm"))
TIMING = TimingPolicy(min_repeat_ms=0.5, patience_s=0.0, racing_factor=0.0, repeat_factor=0.0)
OPTIONS = MeasureOptions(timing=TIMING, n_parallel=2, opt_level=0)


class Watcher:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.built_numbers: list[tuple[int, MeasureErrorNo]] = []
        self.measured_numbers: list[int] = []

    def built(self, number: int, error_no: MeasureErrorNo) -> None:
        """A program was compiled."""
        self.built_numbers.append((number, error_no))

    def measured(self, result: MeasureResult) -> None:
        """A program was measured."""
        self.measured_numbers.append(result.number)


@pytest.fixture(scope="module")
def watched() -> Iterator[tuple[Measurer, Watcher]]:
    watcher = Watcher()
    with Measurer(TASK, OPTIONS, watcher) as measurer:
        yield measurer, watcher


def test_programs_are_measured_in_order_and_verified(watched: tuple[Measurer, Watcher]) -> None:
    measurer, watcher = watched
    bad = tiled(ARGS[2], 4, 16)
    bad = Trace((*bad.steps, bad.steps[0]))
    programs = [Program(7, Trace()), Program(3, tiled(ARGS[2], 4, 32)), Program(5, bad), Program(4, tiled(ARGS[2], 8, 16, parallel=True))]
    results = list(measurer.measure(programs))
    assert [result.number for result in results] == [7, 3, 5, 4]
    assert [result.is_success for result in results] == [True, True, False, True]
    assert all(result.verified for result in results if result.is_success)
    assert results[2].error_no == MeasureErrorNo.INSTANTIATION_ERROR
    assert results[2].costs == (FAILED_COST,)
    assert "step" in results[2].error_msg
    assert results[0].policy["number"] >= 1
    assert {"lower", "codegen", "load", "verify", "time"} <= set(results[0].timings)
    assert measurer.best_cost == min(result.median for result in results)
    assert sorted(watcher.built_numbers)[:3] == [(3, 0), (4, 0), (5, 1)]
    assert watcher.measured_numbers == [7, 3, 4]


def test_the_best_are_measured_again_in_turn(watched: tuple[Measurer, Watcher]) -> None:
    measurer, _ = watched
    programs = [Program(1, tiled(ARGS[2], 4, 32)), Program(2, tiled(ARGS[2], 2, 16)), Program(1, tiled(ARGS[2], 4, 32))]
    results = measurer.remeasure(programs, rounds=4)
    assert [result.number for result in results] == [1, 2, 1]
    assert all(result.verified and 3 <= len(result.costs) <= 5 for result in results)
    assert results[0].policy["rounds"] == 4
    both = measurer.remeasure(programs[:2], rounds=1, offsets=OFFSETS)  # on arrays that begin cache lines too
    assert all(result.verified and result.median > 0 for result in both)


def test_what_stays_in_a_contest_has_all_of_its_rounds(watched: tuple[Measurer, Watcher]) -> None:
    measurer, _ = watched
    slow, fast = measurer.remeasure([Program(1, Trace()), Program(2, tiled(ARGS[2], 4, 32))], rounds=4)
    assert fast.median < slow.median
    assert len(fast.costs) == 4  # nothing that was slower may have sent it away
    assert 3 <= len(slow.costs) <= 5


def test_winners_are_built_at_another_level(watched: tuple[Measurer, Watcher]) -> None:
    measurer, _ = watched
    plain, optimised = (measurer.remeasure([Program(1, tiled(ARGS[2], 4, 32))], 2, level)[0] for level in (0, 3))
    assert plain.timings.get("optimise", 0.0) < optimised.timings["optimise"]
    assert optimised.verified


def test_what_fails_is_not_remeasured(watched: tuple[Measurer, Watcher]) -> None:
    measurer, _ = watched
    bad = tiled(ARGS[2], 4, 16)
    bad = Trace((*bad.steps, bad.steps[0]))
    results = measurer.remeasure([Program(1, bad), Program(2, tiled(ARGS[2], 2, 16))], rounds=2)
    assert [(result.number, result.is_success) for result in results] == [(1, False), (2, True)]


KINDS = {
    "softmax": softmax(8, 100),
    "integers": matmul(16, "int32"),
    "half": matmul(16, "float16"),
    "bfloat16": elementwise(100, "bfloat16"),
    "several outputs": (*elementwise(50), *elementwise(20, "int8")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_unscheduled_programs_of_all_kinds_are_verified(kind: str) -> None:
    with Measurer(MeasureTask(KINDS[kind], Target("llvm")), replace(OPTIONS, n_parallel=1)) as measurer:
        (result,) = measurer.measure([Program(0, Trace())])
    assert result.error_msg == ""
    assert result.verified


def test_batches_cover_all_programs() -> None:
    with Measurer(TASK, replace(OPTIONS, batch_size=2)) as measurer:
        assert [result.number for result in measurer.measure([Program(n, Trace()) for n in range(5)])] == list(range(5))
        assert list(measurer.measure([])) == []


def test_a_run_that_is_given_up_leaves_the_measurer_usable() -> None:
    with Measurer(TASK, OPTIONS) as measurer:
        for result in measurer.measure([Program(n, Trace()) for n in range(4)]):
            assert result.number == 0
            break
        assert [result.number for result in measurer.measure([Program(9, Trace())])] == [9]


def test_workers_go_on_with_the_next_task() -> None:
    other = MeasureTask(elementwise(), Target("llvm"))
    with Workers() as workers, Measurer(TASK, OPTIONS, workers=workers) as first:
        assert [one.verified for one in first.measure([Program(0, Trace()), Program(1, tiled(ARGS[2], 4, 32))])] == [True, True]
        pids = set(workers.pids)
        with Measurer(other, OPTIONS, workers=workers) as second:
            assert [one.verified for one in second.measure([Program(0, Trace())])] == [True]
            # in turn, as a task scheduler has them: each finds its own arrays
            assert [one.verified for one in first.measure([Program(2, tiled(ARGS[2], 8, 32))])] == [True]
            assert set(workers.pids) == pids and len(pids) == 4
            for pid in pids:  # whoever dies between two tasks is replaced
                os.kill(pid, signal.SIGKILL)
            assert [one.verified for one in second.measure([Program(1, Trace())])] == [True]
        assert [one.number for one in first.remeasure([Program(4, tiled(ARGS[2], 4, 32))])] == [4]
    assert not workers.pids


def test_a_task_finds_workers_that_another_one_gave_up() -> None:
    with Workers() as workers, Measurer(TASK, OPTIONS, workers=workers) as first:
        builds = first._the_building().build([Program(n, Trace()) for n in range(4)], 0)
        next(builds)  # the others are under way, and nobody will ask for them
        with Measurer(MeasureTask(elementwise(), Target("llvm")), OPTIONS, workers=workers) as second:
            assert [one.verified for one in second.measure([Program(0, Trace())])] == [True]


def test_without_verifying_results_say_so() -> None:
    with Measurer(TASK, replace(OPTIONS, verify=False)) as measurer:
        (result,) = measurer.measure([Program(0, Trace())])
    assert result.is_success
    assert not result.verified


def test_a_measurer_works_within_its_context_only() -> None:
    measurer = Measurer(TASK, OPTIONS)
    with pytest.raises(TuningError, match="use it within"):
        list(measurer.measure([Program(0, Trace())]))
    with measurer:
        pass
    with pytest.raises(TuningError, match="use it within"):
        list(measurer.measure([Program(0, Trace())]))


def test_results_print_as_logs_know_them() -> None:
    good = MeasureResult((0.0697, 0.07), MeasureErrorNo.NO_ERROR, "", 0.456, 1677585142.241)
    assert str(good) == "MeasureResult(cost:[0.0697,0.07], error_no:0, all_cost:0.46, Tstamp:1677585142.24)"
    bad = MeasureResult((FAILED_COST,), MeasureErrorNo.RUNTIME_DEVICE, "it broke", 1.0, 1677585142.241)
    assert str(bad) == "MeasureResult(error_type:RuntimeDeviceError, error_msg:it broke, all_cost:1.00, Tstamp:1677585142.24)"
    assert bad.mean == bad.median == float("inf")


def test_error_numbers_are_those_of_logs() -> None:
    assert [error.value for error in MeasureErrorNo] == list(range(9))
    assert [error.error_type for error in MeasureErrorNo][4:7] == ["RuntimeDeviceError", "WrongAnswerError", "BuildTimeoutError"]
