"""A server of sessions: a thread that listens, and one for each session."""

from __future__ import annotations

import hmac
import logging
import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

from ..errors import RPCError
from ..fleet.security import is_loopback
from . import protocol
from .commands import Commands
from .tracker import TrackedServer

_log = logging.getLogger(__name__)
# The first message says a version and a key.
_LONGEST_INTRODUCTION = 1 << 16
_SECONDS_TO_INTRODUCE = 10.0


class Server:
    """Serves sessions until `terminate`, or until the process ends. It listens when this returns.

    Args:
        host: the address to listen on; this machine alone by default. Others can run code here through any other address.
        port: the first port to try; 0 for any that is free.
        port_end: the end of the ports to try.
        key: what a session has to know to be served; nothing by default.
        silent: don't log sessions.
        tracker_addr: host and port of a tracker, which then lends this machine's CPU under the key. A process of its own serves those
            sessions and listens on the way to the tracker; `port` is 0.
        is_proxy, load_library, custom_addr, no_fork: of programs with proxies, which are not built.

    Raises:
        RPCError: if no port is free, the tracker doesn't answer, or for a proxy.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9091,
        port_end: int = 9199,
        is_proxy: bool = False,
        tracker_addr: Any = None,
        key: str = "",
        load_library: Any = None,
        custom_addr: Any = None,
        silent: bool = False,
        no_fork: bool = True,
    ) -> None:
        if is_proxy or load_library is not None:
            raise RPCError("proxies and libraries to load are not built; connect to a server by its address, or through a tracker")
        self.host, self._key, self._silent = host, key, silent
        self._tracked: TrackedServer | None = None
        if tracker_addr is not None:
            self.port, wildcard = 0, host in ("0.0.0.0", "::", "127.0.0.1", "localhost")
            self._tracked = TrackedServer(tuple(tracker_addr), key, None if wildcard else host)
            return
        self._socket = _bound(host, port, port_end)
        self.port = int(self._socket.getsockname()[1])
        if not is_loopback(host):
            _log.warning("the RPC server on %s:%d lets everybody who reaches it run code on this machine", host, self.port)
        self._sessions: set[socket.socket] = set()
        self._thread = threading.Thread(target=self._listen, name="tensorexpr-rpc", daemon=True)
        self._thread.start()

    def terminate(self) -> None:
        """Stop listening and end all sessions."""
        if self._tracked is not None:
            self._tracked.terminate()
            return
        _end(self._socket)
        # only then the sessions: whoever came in meanwhile is among them
        self._thread.join(timeout=10)
        for connection in tuple(self._sessions):
            _end(connection)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.terminate()

    def _listen(self) -> None:
        while True:
            try:
                connection, address = self._socket.accept()
            except OSError:
                return
            if not self._silent:
                _log.info("session from %s", address)
            # before the thread starts, which takes it out again
            self._sessions.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="tensorexpr-rpc-session", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            # whoever doesn't know the key yet gets no memory, and no thread for ever
            connection.settimeout(_SECONDS_TO_INTRODUCE)
            head, _ = protocol.receive(connection, _LONGEST_INTRODUCTION, 0)
            connection.settimeout(None)
            if head.get("version") != protocol.VERSION:
                protocol.send(connection, {"error": f"the server speaks version {protocol.VERSION} of the protocol"})
                return
            # in constant time: how long a comparison takes would tell how much of a guess is right
            if not hmac.compare_digest(_bytes(str(head.get("key", ""))), _bytes(self._key)):
                protocol.send(connection, {"error": "the server has another key"})
                return
            protocol.send(connection, {})
            commands = Commands()
            while True:
                protocol.send(connection, *commands.run(*protocol.receive(connection)))
        except (EOFError, OSError, RPCError) as error:
            _log.debug("session ended: %s", error)
        finally:
            self._sessions.discard(connection)
            connection.close()


def _bytes(key: str) -> bytes:
    # JSON may hold halves of surrogate pairs, which have no UTF-8
    return key.encode("utf-8", "surrogatepass")


def _end(connection: socket.socket) -> None:
    with suppress(OSError):
        # closing alone doesn't wake a thread that waits in accept or recv
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def _bound(host: str, port: int, port_end: int) -> socket.socket:
    for number in range(port, max(port_end, port + 1)):
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.bind((host, number))
            made.listen()
        except OSError:
            made.close()
            continue
        return made
    raise RPCError(f"no port of {host} is free from {port} up to {port_end}")
