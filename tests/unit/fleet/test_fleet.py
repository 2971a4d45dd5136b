"""The fleet of one machine: what it measures, and what it survives."""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tensorexpr import auto_scheduler, autotvm, te
from tensorexpr import meta_schedule as ms
from tensorexpr.auto_scheduler.records import load_records
from tensorexpr.driver.report.live import LivePage
from tensorexpr.errors import TuningError
from tensorexpr.fleet import Fleet
from tensorexpr.fleet.dispatch import Job
from tensorexpr.fleet.messages import frame_of
from tensorexpr.fleet.running import FleetRunning
from tensorexpr.relax.tuning import searching
from tensorexpr.schedule.trace import Trace
from tensorexpr.target import Target
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.measure import MeasureErrorNo, MeasureOptions, Measurer, MeasureTask, Program, TimingPolicy, Workers
from tensorexpr.tune.measure.compiled import CompiledCandidate
from tensorexpr.tune.measure.places import Places
from tensorexpr.tune.measure.protocol import Frame
from tests.unit.fleet import devices
from tests.unit.tune.programs import elementwise, matmul, tiled

pytest.importorskip("distributed", reason="Dask isn't installed")
config = pytest.importorskip("dask.config")
ARGS = matmul(32)
TASK = MeasureTask(ARGS, Target("llvm"))
OPTIONS = MeasureOptions(timing=TimingPolicy(min_repeat_ms=0.1, patience_s=0.0), opt_level=0, run_timeout_s=60.0, build_timeout_s=60.0)


@auto_scheduler.register_workload
def fleet_matmul(size: int) -> list[Tensor]:
    return list(matmul(size))


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    with Fleet.local(workers=2, key="here", patience_s=300.0) as made:
        yield made


@pytest.fixture(scope="module")
def boards() -> Iterator[Fleet]:
    with Fleet.local(workers=2, cores=2, device=devices.DEVICE, devices=2, key="board", patience_s=300.0) as made:
        yield made


def running(fleet: Fleet, run_timeout_s: float = 60.0) -> FleetRunning:
    return FleetRunning(fleet, fleet.key(), TASK, MeasureOptions(run_timeout_s=run_timeout_s, reference_timeout_s=1.0))


def positions(place: FleetRunning, candidates: Sequence[CompiledCandidate]) -> list[int]:
    return sorted(position for position, _, _ in place.run(candidates, lambda: math.inf))


def test_a_device_learns_how_fast_others_of_its_key_are(boards: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    place = running(boards)
    sent: list[float] = []
    answers = place._jobs.answers

    def noting(jobs: Iterable[Job | None]) -> Iterator[tuple[Job, Frame]]:
        taken = [job for job in jobs if job is not None]
        sent.extend(frame_of(job.data).header["speed"] for job in taken)
        return answers(taken)

    monkeypatch.setattr(place._jobs, "answers", noting)
    for _ in range(2):
        assert positions(place, [devices.candidate("runs")]) == [0]
    assert sent == [0.0, 2.0]
    place.close()


def test_workers_describe_their_machine(fleet: Fleet) -> None:
    assert sorted(worker.speed > 0 for worker in fleet.workers()) == [False, True]  # one of them measures
    assert fleet.devices() == {"here": 1}
    assert fleet.target("here") == Target("llvm").resolved()
    assert sorted(worker.devices for worker in fleet.workers()) == [0, 1]


def test_workers_are_known_at_any_moment(fleet: Fleet) -> None:
    # Dask's timers, which ask for something else, as often as they can be
    with config.set({"distributed.client.scheduler-info-interval": "1ms"}), Fleet(fleet.address) as often:
        assert {len(often.names()) for _ in range(300)} == {2}


def test_programs_are_measured_verified_and_timed_again(fleet: Fleet) -> None:
    steps = tiled(ARGS[2], 4, 16).steps
    programs = [Program(7, Trace()), Program(3, tiled(ARGS[2], 4, 16)), Program(5, Trace((*steps, steps[0])))]
    places = Places(fleet.builder().open, fleet.runner().open)
    with Measurer(TASK, OPTIONS, places=places) as measurer:
        results = {result.number: result for result in measurer.measure(programs)}
        again = measurer.remeasure(programs[:2], rounds=2)
    assert set(results) == {7, 3, 5}
    assert results[7].verified and results[3].verified
    assert results[5].error_no == MeasureErrorNo.INSTANTIATION_ERROR
    assert all(result.is_success and len(result.costs) == 2 for result in again)


def test_auto_scheduler_tunes_on_it_and_goes_on_from_its_log(fleet: Fleet, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    task = auto_scheduler.SearchTask(fleet_matmul, (32,), target=fleet.target("here"))
    record = [auto_scheduler.RecordToFile(str(log))]
    options = auto_scheduler.TuningOptions(6, verbose=0, builder=fleet.builder(), runner=fleet.runner("here"), measure_callbacks=record)
    task.tune(options)
    inputs = [line for line, _ in auto_scheduler.load_records(str(log))]
    assert len({str(made.trace) for made in inputs}) >= 6
    schedule, args = task.apply_best(str(log))
    assert len(args) == 3 and schedule is not None


def test_kernels_of_networks_are_compiled_and_timed_on_it_as_they_are_here(fleet: Fleet, tmp_path: Path) -> None:
    log, target = tmp_path / "log.json", fleet.target("here")
    runner = searching.as_in_a_network(auto_scheduler.LocalRunner.of(fleet.runner("here")), target)
    assert runner.swept_bytes and not runner.is_here
    builder = fleet.builder(build_func="tensorexpr.tune.measure.kernel_compiling:make_compiler")
    tasks = [auto_scheduler.SearchTask(fleet_matmul, (size,), target=target) for size in (16, 24)]
    options = auto_scheduler.TuningOptions(
        4, num_measures_per_round=2, verbose=0, builder=builder, runner=runner, measure_callbacks=[auto_scheduler.RecordToFile(str(log))]
    )
    auto_scheduler.TaskScheduler(tasks, callbacks=[]).tune(options)
    records = load_records(log, repeats=True)
    assert {record.workload_key for record in records} == {task.workload_key for task in tasks}
    assert {(record.swept_bytes, record.is_success, record.verified) for record in records} == {(runner.swept_bytes, True, True)}


def test_the_workers_here_go_on_beside_a_fleet_that_compiles(fleet: Fleet) -> None:
    places = Places(building=fleet.builder().open)
    with Workers() as workers:
        with Measurer(TASK, OPTIONS, workers=workers, places=places) as first:
            assert [result.verified for result in first.measure([Program(0, Trace())])] == [True]
            kept = workers.pids
        with Measurer(MeasureTask(elementwise(), Target("llvm")), OPTIONS, workers=workers, places=places) as second:
            assert [result.verified for result in second.measure([Program(0, Trace())])] == [True]
            assert workers.pids == kept == second.worker_pids and len(kept) == 2  # what measures, and what made the arrays
    assert not workers.pids


def test_meta_schedule_tunes_on_it(fleet: Fleet, tmp_path: Path) -> None:
    func = te.create_prim_func(list(ARGS))
    database = ms.tune_tir(
        func,
        Target("llvm"),
        str(tmp_path),
        max_trials_global=4,
        num_trials_per_iter=4,
        builder=fleet.builder(),
        runner=fleet.runner("here"),
    )
    records = database.get_all_tuning_records()
    assert records and any(record.run_secs and min(record.run_secs) < 1e9 for record in records)


def test_autotvm_options_take_it(fleet: Fleet) -> None:
    option = autotvm.measure_option(fleet.builder(timeout=5), fleet.runner("here", number=2))
    assert (option["builder"].timeout, option["runner"].number) == (5, 2)
    assert not option["runner"].is_here


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda fleet: fleet.key("elsewhere"), "no device of key 'elsewhere'.*keys here.*--key elsewhere"),
        (lambda fleet: fleet.check_target("here", Target("llvm -vector-width=128")), "target=fleet.target"),
        (lambda fleet: Fleet(3), "takes an address"),
        (lambda fleet: Fleet("http://127.0.0.1:9"), "no address of a scheduler.*http.*written as tcp"),
        (lambda fleet: Fleet.local(workers=0), "workers from 1, not 0"),
        (lambda fleet: auto_scheduler.TuningOptions(builder=fleet), 'takes "local"'),
        (lambda fleet: ms.builder.LocalBuilder.of(fleet.builder(build_func="a:b")), "leave it out"),
    ],
)
def test_what_does_not_fit_is_said(fleet: Fleet, call: object, message: str) -> None:
    with pytest.raises(TuningError, match=message):
        call(fleet)  # type: ignore[operator]


def test_no_scheduler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorexpr.fleet.fleet._CONNECT_SECONDS", 0.1)
    with pytest.raises(TuningError, match=r"no scheduler answers at tcp.*dask scheduler"):
        Fleet("tcp://127.0.0.1:9")


def test_what_is_no_scheduler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorexpr.fleet.fleet._CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                while True:
                    with server.accept()[0] as connection:
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20)

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(TuningError, match="is no scheduler of Dask"):
            Fleet(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        server.shutdown(socket.SHUT_RDWR)


def test_a_client_of_the_users_is_taken_and_left_open(fleet: Fleet) -> None:
    shared = Fleet(fleet.client)
    assert shared.devices() == fleet.devices()
    shared.close()
    assert fleet.client.status == "running"


def test_all_candidates_come_once_though_workers_die_and_devices_hang(boards: Fleet, tmp_path: Path) -> None:
    place = running(boards, run_timeout_s=0.5)
    what = ["runs", f"kills {tmp_path / 'a'}", f"hangs {tmp_path / 'b'}", f"slow {tmp_path / 'c'}", "runs", f"kills {tmp_path / 'd'}"]
    assert positions(place, [devices.candidate(entry) for entry in what]) == list(range(6))
    place.close()


def test_the_live_page_shows_its_devices(fleet: Fleet, tmp_path: Path) -> None:
    with LivePage(tmp_path / "log.json", fleet) as page:
        shown = page.html()
    assert "<td>here</td><td>1</td><td>1</td><td>0</td>" in shown and "1 x cpu" in shown and "has no dashboard" in shown


def test_workers_killed_at_random_lose_nothing(boards: Fleet) -> None:
    place = running(boards)
    ended = threading.Event()

    def kill() -> None:
        # no more often: where starting a worker takes longer than until the next kill, nobody would ever get to work
        for _ in range(10):
            if ended.wait(0.3):
                return
            for pid in list(boards.client.run(os.getpid, on_error="ignore").values())[:1]:
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = place.run([devices.candidate("runs")] * 200, lambda: math.inf)
        seen = [position for position, _, _ in found]
    finally:
        ended.set()
        killer.join()
    assert sorted(seen) == list(range(200))
    place.close()


def scheduler(port: int, stack: ExitStack) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--dashboard-address",
        "127.0.0.1:0",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def test_a_scheduler_that_restarts_loses_nothing(tmp_path: Path, unused_port: int) -> None:
    address = f"tcp://127.0.0.1:{unused_port}"
    with ExitStack() as stack:
        first = scheduler(unused_port, stack)
        command = [sys.executable, "-m", "tensorexpr", "worker", address, "--device", devices.DEVICE, "--devices", "2", "--jobs", "1"]
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
        worker = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path})
        stack.callback(worker.wait)
        stack.callback(worker.terminate)
        made = stack.enter_context(waiting_fleet(address))
        place = running(made)
        seen: list[int] = []
        for position, _, _ in place.run([devices.candidate("runs")] * 300, lambda: math.inf):
            seen.append(position)
            if len(seen) == 20:
                first.kill()
                first.wait()
                scheduler(unused_port, stack)
        assert sorted(seen) == list(range(300))


def waiting_fleet(address: str) -> Fleet:
    deadline = time.monotonic() + 60
    while True:
        try:
            return Fleet(address, patience_s=120.0)
        except TuningError:
            if time.monotonic() > deadline:
                raise


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_worker_refuses_to_let_others_in(capfd: pytest.CaptureFixture[str]) -> None:
    from tensorexpr.driver.cli import main

    assert main(["worker", "tcp://127.0.0.1:9", "--host", "0.0.0.0"]) == 2
    assert "--insecure" in capfd.readouterr().err


def test_a_device_that_cannot_be_opened_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    from tensorexpr.driver.cli import main

    assert main(["worker", "tcp://127.0.0.1:9", "--device", "no.such:thing"]) == 2
    assert "module:function" in capfd.readouterr().err
