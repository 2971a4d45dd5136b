"""Functions run for other processes: what sessions can do, and what they are refused."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorexpr as tvm
from tensorexpr import nd, rpc, te
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
        rpc.Server(tracker_addr=("x", 1))
    with pytest.raises(RPCError, match="trackers are not built"):
        rpc.connect_tracker("x", 1)


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
