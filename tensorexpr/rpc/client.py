"""A session with a server, and what stands here for arrays, functions and modules that are there."""

from __future__ import annotations

import json
import math
import os
import socket
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ..dataclass import dataclass, field
from ..errors import ArgumentError, RPCError
from ..runtime.device import Device, device
from ..runtime.ndarray import NDArray, array
from ..runtime.timing import BenchmarkResult
from ..tir.dtype import to_numpy
from . import protocol
from .links import Link, SocketLink
from .local import Devices, plain_name, upload_parts

_ENTRY_NAMES = ("main", "default_function", "__tvm_main__")


class RPCSession(Devices):
    """A session with a server; made by `connect`. It ends when nothing of it is used any more."""

    def __init__(self, link: Link) -> None:
        self._link = link
        weakref.finalize(self, link.close)
        self._turn = threading.Lock()
        self._unused: list[int] = []

    def ask(self, head: dict[str, Any], body: bytes = b"") -> tuple[dict[str, Any], bytes]:
        """The server's answer to a message.

        An answer that doesn't come in time, or isn't waited for to its end, ends the session.

        Raises:
            RPCError: if it is an error, or the server is gone.
        """
        # what is no JSON leaves the session as it is
        json.dumps(head)
        with self._turn:
            try:
                # freed here, not in `release`: finalizers run at any moment, also within another message, and in between these two lines
                if numbers := [self._unused.pop() for _ in range(len(self._unused))]:
                    self._link.answer({"do": "free", "numbers": numbers})
                answer, data = self._link.answer(head, body)
            except BaseException as error:
                # the answer may still come, also after Ctrl-C, and would be taken for that of the next question
                self._link.close()
                if not isinstance(error, (EOFError, OSError)):
                    raise
                raise RPCError(f"the server at {self._link.where} is gone: {error}") from None
        if "error" in answer:
            raise RPCError(f"{answer.get('kind', 'error')} at {self._link.where}: {answer['error']}")
        return answer, data

    def close(self) -> None:
        """End the session now, whatever is still used of it."""
        self._link.close()

    def release(self, number: int) -> None:
        """Let the server forget an object, with the next message."""
        self._unused.append(number)

    def device(self, dev_type: str | int, dev_id: int = 0) -> Device:
        """A device of the server's machine: arrays made on it live there."""
        known = device(dev_type, dev_id)
        return RPCDevice(known.device_type, known.device_id, self)

    def get_function(self, name: str) -> RemoteFunction:
        """The function registered under a name in the server.

        Raises:
            RPCError: if there is none.
        """
        return RemoteFunction(self, self.ask({"do": "function", "name": name})[0]["function"])

    def upload(self, data: str | os.PathLike[str] | bytes | bytearray, target: str | None = None) -> None:
        """Put a file, or bytes under the name `target`, into the session's folder; a library's description goes with it."""
        for name, content in upload_parts(data, target):
            self.ask({"do": "upload", "name": plain_name(name)}, content)

    def download(self, path: str) -> bytearray:
        """The content of a file in the session's folder."""
        return bytearray(self.ask({"do": "download", "name": path})[1])

    def remove(self, path: str) -> None:
        """Remove a file from the session's folder."""
        self.ask({"do": "remove", "name": path})

    def listdir(self, path: str = "") -> str:
        """The names in the session's folder, joined by commas."""
        return str(self.ask({"do": "list"})[0]["names"])

    def load_module(self, path: str) -> Any:
        """The module in a file of the session's folder, loaded there: a `RemoteModule`, or a `RemoteNetwork` of a graph.

        Raises:
            RPCError: if it can't be loaded there.
        """
        answer, _ = self.ask({"do": "load", "name": path})
        if "network" in answer:
            return RemoteNetwork(self, answer["network"])
        return RemoteModule(self, answer["module"], answer["names"])

    def made(self, value: Any) -> Any:
        """What a function returned."""
        if not isinstance(value, dict):
            return value
        if "fields" in value:
            return [self.made(one) for one in value["fields"]]
        if "array" in value:
            return RemoteArray(self, value["array"], tuple(value["shape"]), value["dtype"], self.cpu())
        return RemoteModule(self, value["module"], value["names"]) if "module" in value else RemoteFunction(self, value["function"])


@dataclass(frozen=True)
class RPCDevice(Device):
    """A device of a server's machine."""

    session: RPCSession | None = field(default=None, compare=False, repr=False)

    def make_array(self, shape: int | Sequence[int], dtype: str) -> RemoteArray:
        """An array there, with undefined contents."""
        assert self.session is not None
        extents = (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
        answer, _ = self.session.ask({"do": "empty", "shape": extents, "dtype": dtype})
        return RemoteArray(self.session, answer["array"], extents, dtype, self)

    def __str__(self) -> str:
        return f"remote:{super().__str__()}"

    def __repr__(self) -> str:
        return str(self)


class RemoteArray(NDArray):
    """An array in a server's memory; `numpy()` fetches it, `copyfrom` writes it, and functions of its session take it as it is."""

    __slots__ = ("_session", "_shape", "number")

    def __init__(self, session: RPCSession, number: int, shape: tuple[int, ...], dtype: str, device: Device) -> None:
        self._session, self.number, self._shape, self._dtype, self.device = session, number, shape, dtype, device
        # it holds the session, which so lives as long as anything that it gave out
        weakref.finalize(self, session.release, number)

    @property
    def _array(self) -> Any:  # type: ignore[override]
        data = self._session.ask({"do": "read", "array": self.number})[1]
        # through a bytearray: an array over bytes couldn't be written, and `__setitem__` does
        return np.frombuffer(bytearray(data), to_numpy(self._dtype)).reshape(self._shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self._shape)

    @property
    def is_view(self) -> bool:
        """False: the memory is the server's own."""
        return False

    @property
    def session(self) -> RPCSession:
        """The session that the array belongs to."""
        return self._session

    def copyfrom(self, source_array: Any) -> NDArray:
        """Write values, cast to this dtype, and return this array.

        Raises:
            ArgumentError: if the shapes differ.
        """
        source = source_array.numpy() if isinstance(source_array, NDArray) else np.asarray(source_array)
        if source.shape != self._shape:
            raise ArgumentError(f"copyfrom: an array of shape {source.shape} does not fit into one of shape {self._shape}")
        self._session.ask({"do": "write", "array": self.number}, np.ascontiguousarray(source, to_numpy(self._dtype)).tobytes())
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        # all of it there and back: no part of an array can be named in a message
        values = self._array
        values[index] = value.numpy() if isinstance(value, NDArray) else value
        self.copyfrom(values)


class RemoteFunction:
    """A function of a server; its array arguments live there."""

    def __init__(self, session: RPCSession, number: int) -> None:
        self._session, self.number = session, number
        weakref.finalize(self, session.release, number)

    def __call__(self, *args: Any) -> Any:
        """Call it there.

        Raises:
            ArgumentError: for an argument that can't be sent.
            RPCError: if it fails there.
        """
        answer, _ = self._session.ask({"do": "call", "function": self.number, "args": [_word(arg, self._session) for arg in args]})
        return self._session.made(answer["result"])


class RemoteModule:
    """A module that a server loaded."""

    def __init__(self, session: RPCSession, number: int, names: Sequence[str]) -> None:
        self._session, self.number, self.function_names = session, number, list(names)
        weakref.finalize(self, session.release, number)

    @property
    def entry_name(self) -> str:
        """The name of the function that a call of the module calls: the only one, or "main".

        Raises:
            ArgumentError: if there are several and none is called so.
        """
        if len(self.function_names) == 1:
            return self.function_names[0]
        found = [name for name in _ENTRY_NAMES if name in self.function_names]
        if not found:
            raise ArgumentError(f"the module has no entry function: choose one by mod[name] from {', '.join(self.function_names)}")
        return found[0]

    def get_function(self, name: str, query_imports: bool = False) -> RemoteFunction:
        """The function of that name.

        Raises:
            RPCError: if there is none.
        """
        return RemoteFunction(self._session, self._session.ask({"do": "member", "module": self.number, "name": name})[0]["function"])

    def __getitem__(self, name: str) -> RemoteFunction:
        return self.get_function(name)

    def __call__(self, *args: Any) -> Any:
        """Call the entry function."""
        return self.get_function(self.entry_name)(*args)

    def time_evaluator(
        self,
        func_name: str,
        dev: Any = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str = "",
        ctx: Any = None,
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures there; arguments as of `runtime.Module.time_evaluator`."""
        options = {
            **{"number": number, "repeat": repeat, "min_repeat_ms": min_repeat_ms, "cache_flush_bytes": cache_flush_bytes},
            **{"limit_zero_time_iterations": limit_zero_time_iterations, "cooldown_interval_ms": cooldown_interval_ms},
            **{"repeats_to_cooldown": repeats_to_cooldown, "f_preproc": f_preproc},
        }

        def measure(*args: Any) -> BenchmarkResult:
            words = [_word(arg, self._session) for arg in args]
            head = {"do": "time", "module": self.number, "name": func_name, "options": options, "args": words}
            return BenchmarkResult(tuple(self._session.ask(head)[0]["results"]))

        return measure


class RemoteNetwork:
    """A network that a server loaded: `graph_executor.GraphModule(network["default"](dev))` runs it there."""

    def __init__(self, session: RPCSession, number: int) -> None:
        self._session, self._number = session, number
        weakref.finalize(self, session.release, number)

    def __getitem__(self, name: str) -> Callable[..., RemoteExecutor]:
        """What makes executors, by the name "default".

        Raises:
            ArgumentError: for another name.
        """
        if name != "default":
            raise ArgumentError(f'no {name!r} in a network that is elsewhere; it is called "default"')
        return lambda *devices: self._executor("graph")

    def machine(self) -> RemoteExecutor:
        """A virtual machine there, whose methods `call_executor` calls."""
        return self._executor("machine")

    def _executor(self, kind: str) -> RemoteExecutor:
        answer, _ = self._session.ask({"do": "executor", "network": self._number, "kind": kind})
        return RemoteExecutor(self._session, answer["executor"])


class RemoteExecutor:
    """The executor of a network that a server loaded."""

    def __init__(self, session: RPCSession, number: int) -> None:
        self._session, self._number = session, number
        weakref.finalize(self, session.release, number)

    def call_executor(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of a `GraphModule` or a `VirtualMachine` of `relay` there; arrays that are here are sent.

        Raises:
            ArgumentError: for an argument that can't be sent.
            RPCError: if it fails there.
        """
        given = [self._sent(arg) for arg in args]
        named = {key: self._sent(value) for key, value in kwargs.items()}
        words = {
            "args": [_word(arg, self._session) for arg in given],
            "kwargs": {key: _word(arg, self._session) for key, arg in named.items()},
        }
        answer, _ = self._session.ask({"do": "method", "executor": self._number, "name": name, **words})
        return BenchmarkResult(tuple(answer["results"])) if "results" in answer else self._session.made(answer["result"])

    def _sent(self, value: Any) -> Any:
        if isinstance(value, RemoteArray) or not isinstance(value, (NDArray, np.ndarray, list, tuple)):
            return value
        return array(value.numpy() if isinstance(value, NDArray) else np.asarray(value), self._session.cpu())

    def time_evaluator(
        self, func_name: str = "run", dev: Any = None, number: int = 10, repeat: int = 1, min_repeat_ms: int = 0, **_: Any
    ) -> Callable[[], BenchmarkResult]:
        """A function that measures runs there."""

        def measure() -> BenchmarkResult:
            options = {"number": number, "repeat": repeat, "min_repeat_ms": min_repeat_ms}
            made: BenchmarkResult = self.call_executor("benchmark", func_name=func_name, **options)
            return made

        return measure


def _word(value: Any, session: RPCSession) -> Any:
    """An argument as JSON."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (RemoteArray, RemoteFunction, RemoteModule)):
        if value._session is not session:
            raise ArgumentError("an argument belongs to another session; make it on a device of this one")
        return {"object": value.number}
    raise ArgumentError(f"{type(value).__name__} can't be sent; make arrays on a device of the session: nd.array(x, session.cpu())")


def connect(
    url: str, port: int, key: str = "", session_timeout: float = 0, session_constructor_args: Any = None, enable_logging: bool = False
) -> RPCSession:
    """A session with a server.

    Args:
        url: its address.
        port: its port.
        key: what the server wants to know.
        session_timeout: seconds that an answer may take; 0 for any.
        session_constructor_args, enable_logging: of programs with proxies, which are not built; without effect.

    Raises:
        RPCError: if there is no server, or it refuses.
    """
    where = f"{url}:{port}"
    with ExitStack() as stack:
        try:
            connection = stack.enter_context(socket.create_connection((url, port), timeout=session_timeout or None))
            protocol.send(connection, {"version": protocol.VERSION, "key": key})
            answer, _ = protocol.receive(connection)
        except (OSError, EOFError) as error:
            raise RPCError(f"no server at {where}: {error}") from None
        if "error" in answer:
            raise RPCError(f"the server at {where} refused: {answer['error']}")
        stack.pop_all()  # from here on the session holds the connection
        return RPCSession(SocketLink(connection, where))
