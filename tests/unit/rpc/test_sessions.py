"""Functions run for other processes: what sessions can do, and what they are refused."""

from __future__ import annotations

import gc
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import nd, relax, relay, rpc, te
from tensorexpr.contrib import graph_executor
from tensorexpr.errors import ArgumentError, RPCError
from tensorexpr.rpc import protocol


@pytest.fixture
def remote() -> Iterator[rpc.RPCSession]:
    with rpc.Server(port=0, port_end=0, key="open", silent=True) as server:
        yield rpc.connect("127.0.0.1", server.port, key="open")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """B = A + 1 as an archive."""
    a = te.placeholder((6,), name="A")
    b = te.compute((6,), lambda i: a[i] + 1.0, name="B")
    path = tmp_path / "lib.tar"
    tvm.build(te.create_schedule(b.op), [a, b], name="add_one").export_library(path)
    return path


@pytest.mark.parametrize("local", [True, False])
def test_a_library_is_sent_run_and_timed(local: bool, library: Path, remote: rpc.RPCSession) -> None:
    session: Any = rpc.LocalSession() if local else remote
    session.upload(library)
    assert session.listdir() == "lib.tar"
    func, dev = session.load_module("lib.tar"), session.cpu(0)
    x, y = nd.array(np.arange(6, dtype="float32"), dev), nd.array(np.zeros(6, "float32"), dev)
    func(x, y)
    np.testing.assert_array_equal(y.numpy(), x.numpy() + 1)
    func["add_one"](y, x)
    assert x.numpy()[0] == 2
    assert func.time_evaluator(func.entry_name, dev, number=2, repeat=3)(x, y).results
    assert bytes(session.download("lib.tar")) == library.read_bytes()
    session.remove("lib.tar")
    assert session.listdir() == ""


def test_functions_of_the_server_are_called_with_numbers_texts_and_arrays(remote: rpc.RPCSession) -> None:
    @tvm.register_func("test.rpc.scale", override=True)
    def scale(array: Any, factor: float, say: str) -> Any:
        return nd.array(array.numpy() * factor) if say == "array" else say * int(factor)

    scaled = remote.get_function("test.rpc.scale")
    x = nd.array(np.ones((2, 3), "float32"), remote.cpu())
    assert scaled(x, 3, "a") == "aaa"
    result = scaled(x, np.float32(2.5), "array")
    assert (result.shape, result.dtype, result.ndim, result.size) == ((2, 3), "float32", 2, 6)
    assert (result.numpy() == 2.5).all() and (result.copyto(nd.cpu()).numpy() == 2.5).all()
    result[0, 0] = 7
    assert result.numpy()[0, 0] == 7 and "remote:cpu(0)" in repr(result.device)
    with pytest.raises(RPCError, match=r"ArgumentError at 127.0.0.1:\d+: no function 'nobody'"):
        remote.get_function("nobody")
    with pytest.raises(ArgumentError, match="make arrays on a device of the session"):
        scaled(np.ones(2), 1, "a")
    with pytest.raises(ArgumentError, match="does not fit"):
        x.copyfrom(np.ones(3))


def test_a_network_runs_there(remote: rpc.RPCSession, tmp_path: Path) -> None:
    x = relay.var("x", shape=(3, 4))
    library = relay.build(relay.Function((x,), relay.Tuple([relay.nn.relu(x), x + relay.const(1.0)])), "llvm")
    library.export_library(tmp_path / "net.so")
    remote.upload(tmp_path / "net.so")
    made = remote.load_module("net.so")
    with pytest.raises(ArgumentError, match='called "default"'):
        made["other"]
    module = graph_executor.GraphModule(made["default"](remote.cpu()))
    values = np.linspace(-1, 1, 12).astype("float32").reshape(3, 4)
    module.set_input("x", values)
    module.run()
    np.testing.assert_array_equal(module.get_output(0).numpy(), np.maximum(values, 0))
    np.testing.assert_array_equal(module.get_output(1, nd.empty((3, 4))).numpy(), values + 1)
    module.run(x=-values)
    np.testing.assert_array_equal(module.get_output(0).numpy(), np.maximum(-values, 0))
    np.testing.assert_array_equal(module.get_input("x").numpy(), -values)
    assert (module.get_num_inputs(), module.get_num_outputs(), module.get_input_index("x"), module.get_output_index("output_1")) == (
        1,
        2,
        0,
        1,
    )
    assert module.get_input_info() == ({"x": (3, 4)}, {"x": "float32"})
    assert len(module.benchmark(remote.cpu(), number=1, repeat=3).results) == 3
    assert len(module.module.time_evaluator("run", remote.cpu(), number=1, repeat=2)().results) == 2
    with pytest.raises(RPCError, match="no input 'y'"):
        module.set_input("y", values)
    with pytest.raises(RPCError, match="no method 'exit'"):
        module.module.call_executor("exit")
    machine = relay.vm.VirtualMachine(made, remote.cpu())
    less, more = machine.invoke("main", nd.array(values, remote.cpu()))
    np.testing.assert_array_equal(less.numpy(), np.maximum(values, 0))
    np.testing.assert_array_equal(relax.VirtualMachine(made, remote.cpu())["main"](values)[1].numpy(), more.numpy())
    there, here = nd.empty((3, 4), device=remote.cpu()), nd.empty((3, 4))
    machine.invoke_with_outputs("main", {"x": -values}, [there, here])
    np.testing.assert_array_equal(there.numpy(), np.maximum(-values, 0))
    np.testing.assert_array_equal(here.numpy(), 1 - values)
    machine.set_one_input("main", "x", values)
    machine.invoke_stateful("main")
    assert machine.get_outputs()[0].shape == (3, 4) and machine.run(values)[1].shape == (3, 4)
    assert len(machine.benchmark(number=1, repeat=2).results) == 2
    assert len(machine.time_evaluator("main", number=1, repeat=3)(values).results) == 3
    with pytest.raises(ArgumentError, match="main has 2 results, and there are 1 arrays"):
        machine.invoke_with_outputs("main", {"x": values}, [here])
    with pytest.raises(RPCError, match="no method 'run'"):
        made.machine().call_executor("run")


def test_what_fails_there_is_an_error_here_and_the_session_goes_on(remote: rpc.RPCSession) -> None:
    with pytest.raises(RPCError, match="lib"):
        remote.load_module("lib.so")
    assert remote.listdir() == ""


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", "..", "", "a/b"])
def test_files_stay_in_the_folder_of_the_session(name: str, remote: rpc.RPCSession) -> None:
    for session in (rpc.LocalSession(), remote):
        with pytest.raises((ArgumentError, RPCError), match="no file name"):
            session.upload(b"x", name)
        with pytest.raises((ArgumentError, RPCError), match="no file name"):
            session.download(name)
    with pytest.raises(ArgumentError, match="bytes need a name"):
        rpc.LocalSession().upload(b"x")


def test_only_those_who_know_the_key_are_served() -> None:
    with rpc.Server(port=0, port_end=0, key="open") as server:
        with pytest.raises(RPCError, match="another key"):
            rpc.connect("127.0.0.1", server.port)
        assert server.host == "127.0.0.1"
    with pytest.raises(RPCError, match="no server at"):
        rpc.connect("127.0.0.1", server.port)
    with pytest.raises(RPCError, match="not built"):
        rpc.Server(is_proxy=True)


def test_a_server_that_goes_is_noticed() -> None:
    server = rpc.Server(port=0, port_end=0)
    session = rpc.connect("127.0.0.1", server.port)
    server.terminate()
    with pytest.raises(RPCError, match="is gone"):
        session.listdir()


@pytest.mark.parametrize(
    "head",
    [{"do": "run"}, {"do": "call", "function": 99, "args": []}, {"do": "read"}, {"do": "upload"}, {"do": "empty", "shape": [-1]}],
)
def test_nonsense_is_answered_with_an_error(head: dict[str, Any], remote: rpc.RPCSession) -> None:
    with pytest.raises(RPCError):
        remote.ask(head)
    assert remote.listdir() == ""


@pytest.mark.parametrize("data", [b"\xff" * 64, b"", protocol._LENGTHS.pack(2, 0) + b"[]", protocol._LENGTHS.pack(4, 0) + b"x{}y"])
def test_a_stranger_does_not_stop_the_server(data: bytes) -> None:
    with rpc.Server(port=0, port_end=0, silent=True) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as stranger:
            stranger.sendall(data)
        assert rpc.connect("127.0.0.1", server.port).listdir() == ""


def test_a_function_of_this_process_does_not_take_an_array_from_elsewhere(remote: rpc.RPCSession) -> None:
    a = te.placeholder((6,), name="A")
    b = te.compute((6,), lambda i: a[i] + 1.0, name="B")
    func = tvm.build(te.create_schedule(b.op), [a, b])
    far, near = nd.array(np.zeros(6, "float32"), remote.cpu()), nd.empty(6)
    for args in ((near, far), (far, near), (far, far)):
        with pytest.raises(ArgumentError, match=r"lives on remote:cpu\(0\); call a function of its session"):
            func(*args)


class Answers:
    """A server that answers its first question late, as one does whose machine is busy."""

    def __enter__(self) -> int:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._go_on, self._thread = threading.Event(), threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return int(self._socket.getsockname()[1])

    def _serve(self) -> None:
        connection, _ = self._socket.accept()
        with connection, suppress(EOFError, OSError):
            protocol.receive(connection)
            protocol.send(connection, {})
            for number in range(3):
                protocol.receive(connection)
                if number == 0:
                    self._go_on.wait(20)
                protocol.send(connection, {"names": f"answer {number}"})

    def answer(self) -> None:
        """Let the late answer go."""
        self._go_on.set()

    def __exit__(self, *_: object) -> None:
        self.answer()
        self._socket.close()
        self._thread.join(20)


def test_the_late_answer_to_a_question_is_not_that_to_the_next() -> None:
    late = Answers()
    with late as port:
        session = rpc.connect("127.0.0.1", port, session_timeout=1.0)  # the greeting has as long, on a busy machine too
        with pytest.raises(RPCError, match="timed out"):
            session.listdir()
        late.answer()
        for _ in range(2):
            with pytest.raises(RPCError, match="is gone"):
                session.listdir()


def test_a_question_that_was_interrupted_ends_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    late = Answers()
    with late as port:
        session, receive = rpc.connect("127.0.0.1", port), protocol.receive

        def interrupted(connection: socket.socket) -> Any:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(protocol, "receive", interrupted)
            session.listdir()
        assert protocol.receive is receive
        late.answer()
        with pytest.raises(RPCError, match="is gone"):
            session.listdir()


def test_a_question_that_cannot_be_sent_leaves_the_session(remote: rpc.RPCSession) -> None:
    with pytest.raises(TypeError):
        remote.ask({"do": "list", "more": object()})
    assert remote.listdir() == ""


def test_nothing_is_read_for_those_who_may_not_know_the_key() -> None:
    """A stranger who announces much is sent away before it comes; an answer would be to all of it."""
    text = json.dumps({"version": protocol.VERSION, "key": ""}).encode()
    with rpc.Server(port=0, port_end=0, key="open", silent=True) as server:
        for sizes in ((len(text), 1 << 20), (1 << 19, 0)):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as stranger:
                stranger.sendall(protocol._LENGTHS.pack(*sizes) + text)
                with suppress(ConnectionResetError):
                    assert stranger.recv(1) == b""


def test_a_key_may_be_any_text_that_json_holds() -> None:
    with rpc.Server(port=0, port_end=0, key="\ud800", silent=True) as server:
        assert rpc.connect("127.0.0.1", server.port, key="\ud800").listdir() == ""
        with pytest.raises(RPCError, match="another key"):
            rpc.connect("127.0.0.1", server.port, key="\udfff")


def test_those_who_say_nothing_are_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with rpc.Server(port=0, port_end=0, silent=True) as server:
        monkeypatch.setattr("tensorexpr.rpc.server._SECONDS_TO_INTRODUCE", 0.05)
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as stranger:
            assert stranger.recv(1) == b""
        monkeypatch.setattr("tensorexpr.rpc.server._SECONDS_TO_INTRODUCE", 1.0)
        session = rpc.connect("127.0.0.1", server.port)
        threading.Event().wait(1.2)  # a session may be silent for longer
        assert session.listdir() == ""


def test_no_connection_is_left_by_one_that_failed(recwarn: pytest.WarningsRecorder) -> None:
    with rpc.Server(port=0, port_end=0, key="open", silent=True) as server:
        with pytest.raises(RPCError):
            rpc.connect("127.0.0.1", server.port)
        rpc.connect("127.0.0.1", server.port, key="open")  # a session that nobody holds
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RPCError, match="no server"):
            rpc.connect("127.0.0.1", port, session_timeout=0.05)
    gc.collect()
    assert not [one for one in recwarn if issubclass(one.category, ResourceWarning)]
