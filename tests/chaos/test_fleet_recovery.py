"""Fleets on a bad day: clients that are killed, slow and broken networks, full disks, and encrypted connections."""

from __future__ import annotations

import asyncio
import contextlib
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tensorexpr import auto_scheduler
from tensorexpr.errors import TuningError
from tensorexpr.fleet import Fleet, local
from tensorexpr.fleet.running import FleetRunning
from tensorexpr.rpc.tracker import Tracker
from tensorexpr.target import Target
from tensorexpr.tune.measure import MeasureOptions, MeasureTask
from tensorexpr.tune.measure.folder import SharedFolder
from tensorexpr.tune.records.log import append_lines
from tests.unit.fleet import devices
from tests.unit.tune.programs import matmul

from .kill_tuner import kill_tuner_matmul, run

pytest.importorskip("distributed", reason="Dask isn't installed")


@contextlib.contextmanager
def worker(address: str, *arguments: str) -> Iterator[None]:
    """A worker process."""
    command = [sys.executable, "-m", "tensorexpr", "worker", address, "--jobs", "1", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=local.environment(), start_new_session=True)
    try:
        yield
    finally:
        local.end(process, 10)


@pytest.fixture(scope="module")
def tracker() -> Iterator[Tracker]:
    """A scheduler that outlives its clients, with a CPU and two boards."""
    with ExitStack() as stack:
        made = stack.enter_context(Tracker(port=0, port_end=0))
        stack.enter_context(worker(made.address, "--key", "here"))
        stack.enter_context(worker(made.address, "--key", "board", "--device", devices.DEVICE, "--devices", "2"))
        with Fleet(made.address) as fleet:
            fleet.client.wait_for_workers(2, timeout=300)
        yield made


def positions(fleet: Fleet, count: int) -> list[int]:
    """The candidates whose results came, from the boards."""
    task = MeasureTask(matmul(32), Target("llvm"))
    place = FleetRunning(fleet, "board", task, MeasureOptions(run_timeout_s=60.0, reference_timeout_s=1.0))
    found = sorted(position for position, _, _ in place.run([devices.candidate("runs")] * count, lambda: math.inf))
    place.close()
    return found


def test_a_client_that_is_killed_goes_on_from_its_log(tracker: Tracker, tmp_path: Path) -> None:
    report = run(2, seed=1, log=tmp_path / "log.json", longest=3.0, scheduler=f"{tracker.address} here")
    assert report.is_clean, report


class SlowLine:
    """A port of this machine whose bytes go on to another one, later; `cut` breaks the connections that are there."""

    def __init__(self, port: int, seconds: float) -> None:
        self._to, self._seconds = port, seconds
        self._loop = asyncio.new_event_loop()
        self._writers: list[asyncio.StreamWriter] = []
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self.port: int = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(20)

    async def _listen(self) -> int:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, back]
        await asyncio.gather(self._pass_on(reader, back), self._pass_on(there, writer))

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(1 << 16):
                await asyncio.sleep(self._seconds)
                sink.write(data)
                await sink.drain()
        sink.close()

    def cut(self) -> None:
        """Break all connections; new ones are taken."""
        writers, self._writers = self._writers, []
        for writer in writers:
            self._loop.call_soon_threadsafe(writer.transport.abort)

    def close(self) -> None:
        """End it."""
        self._loop.call_soon_threadsafe(self._server.close)
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)


@pytest.fixture
def line(tracker: Tracker) -> Iterator[SlowLine]:
    made = SlowLine(tracker.port, 0.05)
    yield made
    made.close()


def test_messages_that_come_late_are_no_loss(line: SlowLine) -> None:
    with Fleet(f"tcp://127.0.0.1:{line.port}", patience_s=120.0) as fleet:
        assert positions(fleet, 60) == list(range(60))


def test_a_connection_that_breaks_is_made_again(line: SlowLine) -> None:
    with Fleet(f"tcp://127.0.0.1:{line.port}", patience_s=120.0) as fleet:
        task = MeasureTask(matmul(32), Target("llvm"))
        place = FleetRunning(fleet, "board", task, MeasureOptions(run_timeout_s=60.0, reference_timeout_s=1.0))
        seen: list[int] = []
        for position, _, _ in place.run([devices.candidate("runs")] * 120, lambda: math.inf):
            seen.append(position)
            if len(seen) in (10, 60):
                line.cut()
        assert sorted(seen) == list(range(120))
        place.close()


class MakesRoom(auto_scheduler.MeasureCallback):
    """Lets a log be written from the second round on."""

    def __init__(self, log: Path) -> None:
        self._log, self._rounds = log, 0

    def callback(self, policy: Any, inputs: Any, results: Any) -> None:
        """A round is over."""
        self._rounds += 1
        if self._rounds == 2:
            self._log.unlink()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full, which is a disk without room")
@pytest.mark.parametrize("has_room_later", [True, False])
def test_a_full_disk_ends_no_search(tracker: Tracker, tmp_path: Path, has_room_later: bool) -> None:
    log = tmp_path / "log.json"
    log.symlink_to("/dev/full")
    with Fleet(tracker.address) as fleet:
        task = auto_scheduler.SearchTask(kill_tuner_matmul, (32,), target=fleet.target("here"))
        recorder = auto_scheduler.RecordToFile(str(log))
        callbacks = [MakesRoom(log), recorder] if has_room_later else [recorder]
        runner = fleet.runner("here", number=1, repeat=1, min_repeat_ms=1)
        options = auto_scheduler.TuningOptions(
            6, num_measures_per_round=2, verbose=0, builder=fleet.builder(), runner=runner, measure_callbacks=callbacks
        )
        if has_room_later:
            task.tune(options)
        else:
            with pytest.raises(TuningError, match=r"No space left on device; \d+ results are kept.*finish\(\) writes them"):
                task.tune(options)
            log.unlink()
            recorder.finish()
    records = auto_scheduler.load_records(str(log))
    assert len({str(made.trace) for made, _ in records}) == len(records) >= 6


def test_what_a_disk_took_before_it_was_full_is_taken_back(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    append_lines(log, ["first"])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        with pytest.raises(OSError, match=r"log\.json"):
            append_lines(log, ["second", "third", "fourth"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert log.read_text() == "first\n"


def test_no_room_for_temporary_files_is_said_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(TuningError, match="TMPDIR="):
        SharedFolder()


def certificates(folder: Path) -> tuple[str, str, str]:
    """An authority's certificate, and a certificate with its key for 127.0.0.1."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl, which makes certificates, isn't installed")

    def call(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], check=True, capture_output=True, cwd=folder)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    call("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=authority")
    call("req", *new, "-keyout", "own.key", "-out", "own.csr", "-subj", "/CN=127.0.0.1")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    call("x509", "-req", "-in", "own.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", "2", "-out", "own.pem", "-extfile", "names")
    return str(folder / "ca.pem"), str(folder / "own.pem"), str(folder / "own.key")


def test_certificates_let_in_those_who_have_them_and_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    ours, others = certificates(tmp_path), certificates(tmp_path / "other")
    monkeypatch.setattr("tensorexpr.fleet.fleet._CONNECT_SECONDS", 60.0)
    options = [part for name, file in zip(("ca-file", "cert", "key"), ours, strict=True) for part in (f"--tls-{name}", file)]
    with ExitStack() as stack:
        made = stack.enter_context(Tracker("127.0.0.1", 0, 0, False, True, None, *ours))
        assert made.address.startswith("tls://")
        stack.enter_context(worker(made.address, "--key", "board", "--device", devices.DEVICE, *options))
        fleet = stack.enter_context(Fleet(made.address, 120.0, *ours))
        fleet.client.wait_for_workers(1, timeout=300)
        assert all(found.address.startswith("tls://") for found in fleet.workers())
        assert positions(fleet, 10) == list(range(10))
        lent = fleet.lend("board")
        assert lent.where.startswith("tls://")
        lent.close()
        monkeypatch.setattr("tensorexpr.fleet.fleet._CONNECT_SECONDS", 1.0)
        with pytest.raises(TuningError, match="no scheduler answers"):
            Fleet(made.address, 5.0, *others)
        with pytest.raises(TuningError, match="takes tls_ca_file"):
            Fleet(made.address, 5.0)
