"""What a worker does with jobs, without Dask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorexpr.fleet.cores import Cores
from tensorexpr.fleet.messages import build_job, build_of, build_subject, frame_of, outcomes_of, run_job, run_subject
from tensorexpr.fleet.station import Station
from tensorexpr.schedule.trace import Trace
from tensorexpr.target import Target
from tensorexpr.tune.measure import MeasureErrorNo, MeasureOptions, MeasureTask, Program, TimingPolicy
from tensorexpr.tune.measure.builder import Failure
from tensorexpr.tune.measure.compiled import CompiledCandidate
from tests.unit.fleet import devices
from tests.unit.tune.programs import matmul, tiled

ARGS = matmul(32)
TASK = MeasureTask(ARGS, Target("llvm"))
OPTIONS = MeasureOptions(timing=TimingPolicy(min_repeat_ms=0.1, patience_s=0.0), opt_level=0, run_timeout_s=60.0, build_timeout_s=60.0)
BUILD, RUN = build_subject(TASK.to_json(), OPTIONS), run_subject(TASK.spec(), OPTIONS)


def station_of(device: str, folder: Path) -> Station:
    return Station({"device": device, "devices": 1, "cores": 1, "keys": ["k"], "speed": 0.0}, Cores(folder))


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    made = station_of("cpu", tmp_path_factory.mktemp("cores"))
    yield made
    made.close()


def compiled(station: Station, trace: Trace) -> CompiledCandidate:
    made = build_of(frame_of(station.build(BUILD, build_job(Program(0, trace), 0)))).made
    assert isinstance(made, CompiledCandidate)
    return made


def outcomes(station: Station, *made: CompiledCandidate, subject: bytes = RUN) -> list[Any]:
    return [outcome for outcome, _ in outcomes_of(frame_of(station.run(subject, run_job(made, None))).header["outcomes"])]


def test_programs_are_compiled_and_verified_on_the_worker(station: Station) -> None:
    made = compiled(station, tiled(ARGS[2], 4, 16))
    (outcome,) = outcomes(station, made)
    assert outcome["verified"] and min(outcome["costs"]) > 0 and outcome["throttled"] is False
    again = frame_of(station.run(RUN, run_job([made], min(outcome["costs"]))))
    assert again.type == "ran"


def test_a_program_that_is_none_says_so(station: Station) -> None:
    steps = tiled(ARGS[2], 4, 16).steps
    made = build_of(frame_of(station.build(BUILD, build_job(Program(0, Trace((*steps, steps[0]))), 0)))).made
    assert isinstance(made, Failure) and made.error_no == MeasureErrorNo.INSTANTIATION_ERROR


def test_code_that_is_none_is_an_outcome_and_harms_nothing(station: Station) -> None:
    good = compiled(station, Trace())
    bad = CompiledCandidate(b"no object code", good.entry, good.arguments, good.errors, {}, 0, 0)
    first, second = outcomes(station, bad, good)
    assert isinstance(first, Failure) and second["verified"]


def test_a_device_that_is_slower_than_others_or_than_itself_is_throttled(tmp_path: Path) -> None:
    made, job = devices.candidate(f"slow {tmp_path / 'met'}"), devices.candidate("runs")
    station = station_of(devices.DEVICE, tmp_path)

    def marks(*candidates: CompiledCandidate, speed: float) -> list[bool]:
        answer = frame_of(station.run(RUN, run_job(candidates, None, speed)))
        return [outcome["throttled"] for outcome, _ in outcomes_of(answer.header["outcomes"]) if not isinstance(outcome, Failure)]

    # it goes at 2, and once at 1
    assert marks(job, speed=2.9) == [False]
    assert marks(job, job, speed=3.1) == [True, True]
    assert marks(made, job, speed=0.0) == [True, False]
    station.close()


@pytest.mark.parametrize("job", [b"", b"garbage", run_job([], None)[:10]])
def test_a_hostile_message_is_refused(station: Station, job: bytes) -> None:
    for answer in (station.build(BUILD, job), station.run(RUN, job), station.run(b"subject", run_job([], None))):
        assert frame_of(answer).type == "refused"


def test_a_target_of_another_machine_is_refused(station: Station) -> None:
    foreign = MeasureTask(ARGS, Target("llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-n1 -num-cores=2"), here=False)
    answer = frame_of(station.run(run_subject(foreign.spec(), OPTIONS), run_job([devices.candidate("x")], None)))
    assert answer.type == "refused" and "aarch64" in answer.header["message"]


def test_a_slow_device_marks_its_results(tmp_path: Path) -> None:
    station = station_of(devices.DEVICE, tmp_path)
    slow = devices.candidate(f"slow {tmp_path / 'once'}")
    found = outcomes(station, devices.candidate("runs"), slow, slow, devices.candidate("unprobed"))
    assert [outcome["throttled"] for outcome in found] == [False, True, False, False]
    station.close()


def test_inputs_that_were_given_travel(station: Station) -> None:
    import numpy as np

    ones = np.ones((32, 32), np.float32)
    task = MeasureTask(ARGS, Target("llvm"), {ARGS[0]: ones})
    (outcome,) = outcomes(station, compiled(station, Trace()), subject=run_subject(task.spec(), OPTIONS))
    assert outcome["verified"]
