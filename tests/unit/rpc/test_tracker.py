"""TVM's names for fleets: trackers, servers that they know, sessions with their devices, runners on them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import auto_scheduler, autotvm, nd, relay, rpc, te
from tensorexpr import meta_schedule as ms
from tensorexpr.autotvm.measure import measure_methods
from tensorexpr.driver.cli import main
from tensorexpr.errors import RPCError, TuningError
from tensorexpr.fleet import local
from tensorexpr.fleet.lending import Lent
from tensorexpr.fleet.shared import address_of, fleet_at
from tensorexpr.meta_schedule.runner import EvaluatorConfig, RPCConfig
from tensorexpr.meta_schedule.testing.local_rpc import LocalRPC
from tensorexpr.schedule.trace import Trace
from tensorexpr.te.tensor import Tensor
from tensorexpr.tune.measure.protocol import Frame
from tests.unit.tune.programs import matmul

pytest.importorskip("distributed", reason="Dask isn't installed")
Address = tuple[str, int]


@auto_scheduler.register_workload
def tracked_matmul(size: int) -> list[Tensor]:
    return list(matmul(size))


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    """Of a tracker with one server, whose key is "board"."""
    with LocalRPC("board") as made:
        yield made.tracker_host, made.tracker_port


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """B = A + 1 as an archive."""
    a = te.placeholder((6,), name="A")
    b = te.compute((6,), lambda i: a[i] + 1.0, name="B")
    path = tmp_path / "lib.tar"
    tvm.build(te.create_schedule(b.op), [a, b], name="add_one").export_library(path)
    return path


def until(holds: Callable[[], bool]) -> bool:
    """Whether something comes to hold before a test has waited for too long."""
    deadline = time.monotonic() + 60
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def is_free(address: Address) -> bool:
    return bool(rpc.connect_tracker(*address).summary()["queue_info"]["board"]["free"])


def test_a_library_runs_on_a_device_that_nobody_else_has_meanwhile(address: Address, library: Path) -> None:
    tracker = rpc.connect_tracker(*address)
    remote = tracker.request("board", session_timeout=300)
    assert not is_free(address) and not measure_methods.check_remote("llvm", "board", *address, timeout=0)
    remote.upload(library)
    func, dev = remote.load_module("lib.tar"), remote.cpu(0)
    x, y = nd.array(np.arange(6, dtype="float32"), dev), nd.array(np.zeros(6, "float32"), dev)
    func(x, y)
    np.testing.assert_array_equal(y.numpy(), x.numpy() + 1)
    assert func.time_evaluator(func.entry_name, dev, number=2, repeat=3)(x, y).results
    with pytest.raises(RPCError, match="no function 'nobody'"):
        remote.get_function("nobody")
    del remote, func, x, y, dev
    gc.collect()
    assert until(lambda: is_free(address))
    assert measure_methods.check_remote("llvm", "board", *address, timeout=60)


def test_functions_get_a_session_and_another_one_if_they_fail(address: Address) -> None:
    given: list[int] = []

    def fails_once(remote: rpc.RPCSession) -> str:
        given.append(1)
        return remote.listdir() if len(given) > 1 else str(remote.download("nothing"))

    assert rpc.connect_tracker(*address).request_and_run("board", fails_once) == "" and len(given) == 2


def test_a_session_lasts_as_long_as_was_said_and_the_device_is_free_again(address: Address) -> None:
    remote = autotvm.measure.request_remote("board", *address, timeout=1)
    assert until(lambda: is_free(address))
    with pytest.raises(RPCError, match="is gone: the loan is over"):
        remote.listdir()


def test_a_device_whose_worker_does_not_answer_is_not_free(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = rpc.connect_tracker(*address)
    assert until(lambda: is_free(address))
    monkeypatch.setattr(fleet_at(*address).client, "run", lambda *args, **options: {})
    assert tracker.summary()["queue_info"]["board"] == {"free": 0, "pending": 0}


def test_a_client_that_is_killed_gives_its_device_back(address: Address) -> None:
    host, port = address
    script = f"from tensorexpr import rpc; kept = rpc.connect_tracker({host!r}, {port}).request('board'); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=local.environment()) as client:
        assert client.stdout is not None and client.stdout.readline()
        assert not is_free(address)
        client.send_signal(signal.SIGKILL)
    assert until(lambda: is_free(address))


def test_a_process_that_dies_ends_its_session_only(address: Address) -> None:
    remote = rpc.connect_tracker(*address).request("board")
    assert remote.listdir() == ""
    (child,) = children_named("tensorexpr.rpc.lent")
    os.kill(child, signal.SIGKILL)
    with pytest.raises(RPCError, match=r"is gone: its process (died|killed by SIGKILL)"):
        remote.listdir()
    assert rpc.connect_tracker(*address).request("board").listdir() == ""


def children_named(module: str) -> list[int]:
    """Processes that run a module and have begun after this one, below it."""
    import psutil

    below = psutil.Process().children(recursive=True)
    return [child.pid for child in below if module in child.cmdline()]


@pytest.mark.parametrize("frame", [Frame({"type": "do", "head": {"do": "eval"}}), Frame({"type": "do", "head": {"do": "call"}})])
def test_nonsense_is_answered_with_an_error(address: Address, frame: Frame) -> None:
    lent = fleet_at(*address).lend("board")
    assert isinstance(lent, Lent) and "error" in lent.answer(frame).header["head"]
    assert lent.answer(Frame({"type": "exec"})).type == "failed"
    lent.close()
    assert until(lambda: is_free(address))


def test_the_three_runners_measure_on_its_devices(address: Address, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    task = auto_scheduler.SearchTask(tracked_matmul, (32,), target="llvm")
    runner = auto_scheduler.RPCRunner("board", *address, number=1, min_repeat_ms=1)
    assert not runner.is_here
    task.tune(auto_scheduler.TuningOptions(2, verbose=0, runner=runner, measure_callbacks=[auto_scheduler.RecordToFile(str(log))]))
    assert all(result.error_no == 0 for _, result in auto_scheduler.load_records(str(log)))

    inputs = [auto_scheduler.MeasureInput(task, Trace())]
    compiled = auto_scheduler.measure.local_builder_build(inputs, 15.0, 1, verbose=0)
    quick: dict[str, Any] = {"number": 1, "repeat": 1, "min_repeat_ms": 1, "verbose": 0}
    for results in (
        auto_scheduler.measure.rpc_runner_run(inputs, compiled, "board", *address, **quick),
        auto_scheduler.measure.local_run(inputs, compiled, 10.0, **quick),
    ):
        assert [result.error_no for result in results] == [0]

    config = RPCConfig(*address, "board")
    assert "board" in config.connect_tracker().text_summary()
    evaluator = EvaluatorConfig(number=1, min_repeat_ms=1)
    func = te.create_prim_func(list(matmul(32)))
    functions: tuple[dict[str, Any], ...] = ({}, {"f_cleanup": lambda session, path: session.remove(path)})
    for given in functions:
        made: Any = ms.runner.RPCRunner(config, evaluator, **given)
        target = fleet_at(*address).target("board")
        tuned = ms.tune_tir(func, target, str(tmp_path / str(len(given))), 2, num_trials_per_iter=2, runner=made)
        assert [record for record in tuned.get_all_tuning_records() if record.run_secs and max(record.run_secs) < 1.0]


def test_autotvm_measures_on_its_devices(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TVM_TRACKER_HOST", address[0])
    monkeypatch.setenv("TVM_TRACKER_PORT", str(address[1]))

    @autotvm.template("test/tracked_matmul")
    def template(size: int) -> Any:
        args = matmul(size)
        schedule, config = te.create_schedule(args[2].op), autotvm.get_config()
        j = schedule[args[2]].op.axis[1]
        config.define_split("tile_j", j, num_outputs=2)
        config["tile_j"].apply(schedule, args[2], j)
        return schedule, list(args)

    task = autotvm.task.create("test/tracked_matmul", args=(32,), target="llvm")
    runner = autotvm.RPCRunner("board", None, None, number=1, repeat=1)
    option, results = autotvm.measure_option(autotvm.LocalBuilder(), runner), []
    autotvm.tuner.GridSearchTuner(task).tune(2, measure_option=option, callbacks=[lambda _, __, found: results.extend(found)])
    assert [result.error_no for result in results] == [0, 0]
    assert autotvm.measure.request_remote("board").listdir() == ""


def test_a_package_runs_on_its_devices(address: Address, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = relay.var("x", shape=(2, 3))
    library = relay.build(relay.Function((x,), relay.nn.relu(x)), "llvm")
    library.export_library(tmp_path / "net.so")
    arguments = ["--rpc-tracker", f"{address[0]}:{address[1]}", "--rpc-key", "board", "--fill-mode", "ones", "--print-time"]
    assert main(["run", str(tmp_path / "net.so"), *arguments, "-o", str(tmp_path / "out.npz")]) == 0
    assert (np.load(tmp_path / "out.npz")["output_0"] == 1).all() and "mean" in capsys.readouterr().out


def test_what_is_there_is_printed(address: Address, capsys: pytest.CaptureFixture[str]) -> None:
    assert until(lambda: is_free(address))
    assert main(["query_rpc_tracker", "--host", address[0], "--port", str(address[1])]) == 0
    said = capsys.readouterr().out
    assert "server:board" in said and [line.split() for line in said.splitlines() if line.startswith("board")] == [["board", "1", "1", "0"]]


def test_a_wrong_key_is_told_what_there_is(address: Address) -> None:
    with pytest.raises(RPCError, match="keys board"):
        rpc.connect_tracker(*address).request("bord")
    assert not measure_methods.check_remote("llvm", "bord", *address) and not auto_scheduler.utils.check_remote("bord", *address)


def test_trackers_let_nobody_else_in_unless_told_to() -> None:
    with pytest.raises(TuningError, match=r"a tracker on 0\.0\.0\.0 lets everyone.*--insecure"):
        rpc.Tracker("0.0.0.0")
    with pytest.raises(TuningError, match="tls-key is missing"):
        rpc.Tracker(tls_ca_file="ca.pem", tls_cert="cert.pem")


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        ("0.0.0.0", 9190, "tcp://127.0.0.1:9190"),
        ("tls://far.away", "9190", "tls://far.away:9190"),
        ("::1", 1, "tcp://[::1]:1"),
        ("localhost", 2, "tcp://localhost:2"),
    ],
)
def test_addresses_of_trackers(host: str, port: int | str, address: str) -> None:
    assert address_of(host, port) == address


def test_no_tracker_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tensorexpr.fleet.fleet._CONNECT_SECONDS", 0.1)
    monkeypatch.delenv("TVM_TRACKER_HOST", raising=False)
    with pytest.raises(RPCError, match="no scheduler answers at tcp"):
        rpc.connect_tracker("127.0.0.1", 9)
    with pytest.raises(RPCError, match="TVM_TRACKER_HOST"):
        autotvm.measure.request_remote("board")
    assert main(["rpc_server", "--tracker", "nowhere"]) == 2
