"""TVM's names for a fleet: a tracker is a scheduler, a server that it knows is a worker, and a session is a loan."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar
from uuid import uuid4

from ..errors import RPCError, TuningError
from ..fleet import local
from ..fleet.fleet import Fleet
from ..fleet.security import check_listening, security_of
from ..fleet.shared import address_of, fleet_at, leave
from .client import RPCSession
from .links import LentLink

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
_START_SECONDS = 60.0
_END_SECONDS = 10.0
_PAUSE_SECONDS = 0.1


class Tracker:
    """A scheduler in this process, until `terminate`: servers and workers register there, clients ask it for devices.

    Args:
        host: the address to listen on; this machine alone by default.
        port: the first port to try; 0 for any that is free.
        port_end: the end of the ports to try.
        silent, reuse_addr, timeout: accepted.
        tls_ca_file, tls_cert, tls_key: files of TLS, as of Dask.
        insecure: listen on an address that others reach, without TLS.

    Raises:
        TuningError: without Dask, or for an address that others reach without TLS.
        RPCError: if no port is free.
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9190,
        port_end: int = 9199,
        silent: bool = False,
        reuse_addr: bool = True,
        timeout: float | None = None,
        tls_ca_file: str | None = None,
        tls_cert: str | None = None,
        tls_key: str | None = None,
        insecure: bool = False,
    ) -> None:
        security = security_of(tls_ca_file, tls_cert, tls_key)
        check_listening(host, security, insecure, "tracker")
        self._cluster = _scheduler(host, port, port_end, security)
        self.host, self.port = host, int(self._cluster.scheduler.port)
        self.address = str(self._cluster.scheduler_address)

    def terminate(self) -> None:
        """End it; its workers wait for another one. Safe to call again."""
        leave(self.address)
        self._cluster.close(timeout=_END_SECONDS)

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.terminate()


def _scheduler(host: str, port: int, port_end: int, security: Any) -> Any:
    last: Exception | None = None
    for number in range(port, max(port_end, port + 1)):
        try:
            return local.scheduler(host, number, security)
        except (OSError, RuntimeError) as error:
            last = error
    raise RPCError(f"no tracker can listen on {host} at a port from {port} up to {port_end}: {last}") from last


class TrackedServer:
    """A worker that lends this machine's CPU, as a process of its own, until `terminate`.

    Args:
        tracker: host and port of its tracker.
        key: what the device is known by.
        host: the address to listen on; None for the one on the way to the tracker.

    Raises:
        RPCError: if it doesn't start.
    """

    def __init__(self, tracker: tuple[str, int], key: str, host: str | None = None) -> None:
        address, name = address_of(*tracker), f"server-{uuid4().hex}"
        command = [sys.executable, "-m", "tensorexpr", "worker", address, "--name", name, "--jobs", "1"]
        command += [*(["--key", key] if key else []), *(["--host", host] if host else [])]
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=local.environment(), start_new_session=True
        )
        # at the end of this process at the latest
        self._end = weakref.finalize(self, local.end, self._process, _END_SECONDS)
        try:
            self._wait(fleet_at(*tracker), name)
        except BaseException:
            self.terminate()
            raise

    def _wait(self, fleet: Fleet, name: str) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while name not in fleet.names():
            if self._process.poll() is not None:
                raise RPCError(f"the server ended with code {self._process.returncode} before it had registered; see what it printed")
            if time.monotonic() > deadline:
                raise RPCError(f"the server has not registered at {fleet.address} within {_START_SECONDS:g} s")
            time.sleep(_PAUSE_SECONDS)

    def terminate(self) -> None:
        """End it and all that it started. Safe to call again."""
        self._end()


class TrackerSession:
    """What a tracker answers; made by `connect_tracker`.

    Args:
        fleet: its fleet.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def summary(self) -> dict[str, Any]:
        """For each key how many devices are free and how many jobs wait, and the servers with their addresses."""
        demands = {key: self._fleet.demand(key) for key in self._fleet.devices()}
        servers = [
            {"key": f"server:{key}", "addr": worker.address} for worker in self._fleet.workers() for key in worker.keys if worker.devices
        ]
        return {"queue_info": {key: {"free": free, "pending": waiting} for key, (free, waiting) in demands.items()}, "server_info": servers}

    def text_summary(self) -> str:
        """The same as two tables."""
        found, total = self.summary(), self._fleet.devices()
        servers = [(str(server["addr"]), str(server["key"])) for server in found["server_info"]]
        queue = [(key, str(total.get(key, 0)), str(of["free"]), str(of["pending"])) for key, of in sorted(found["queue_info"].items())]
        return f"Servers\n{_table(('address', 'key'), servers)}\n\nQueue\n{_table(('key', 'total', 'free', 'pending'), queue)}\n"

    def request(
        self, key: str, priority: int = 1, session_timeout: float = 0, max_retry: int = 5, session_constructor_args: Any = None
    ) -> RPCSession:
        """A session with a device, once one is free.

        Args:
            key: of the device.
            priority: higher ones get a device sooner.
            session_timeout: seconds that the session lasts at most; 0 for any.
            max_retry: how often a device that is lost before it serves is asked for again.
            session_constructor_args: of programs with proxies; without effect.

        Raises:
            RPCError: if there is no such device.
        """
        return RPCSession(LentLink(_retried(lambda: self._fleet.lend(key, priority, session_timeout), key, max_retry)))

    def request_and_run(
        self, key: str, func: Callable[[RPCSession], Result], priority: int = 1, session_timeout: float = 0, max_retry: int = 2
    ) -> Result:
        """Call a function with a session, and again with another one if that fails.

        Raises:
            RPCError: if it failed each time.
        """

        def attempt() -> Result:
            session = self.request(key, priority, session_timeout)
            try:
                return func(session)
            except BaseException:
                # now: the error holds the frames of the function, and those what came of the session
                session.close()
                raise

        return _retried(attempt, key, max_retry)

    def close(self) -> None:
        """Nothing: other sessions of this process share the connection."""


def _retried(call: Callable[[], Result], key: str, times: int) -> Result:
    last: Exception | None = None
    for _ in range(max(1, times)):
        try:
            return call()
        except (RPCError, TuningError) as error:
            last = error
    raise RPCError(f"no session with a device of key {key!r}: {last}") from last


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def connect_tracker(url: str, port: int) -> TrackerSession:
    """The tracker at an address.

    Args:
        url: its host; with "tls://" in front for an encrypted connection, whose files Dask's configuration names.
        port: its port.

    Raises:
        RPCError: if none answers.
    """
    return _asked(url, port)


def request_remote(device_key: str, host: str | None = None, port: int | None = None, priority: int = 1, timeout: int = 60) -> RPCSession:
    """A session with a device of a tracker, once one is free.

    Args:
        device_key: of the device.
        host, port: of the tracker; None for TVM_TRACKER_HOST and TVM_TRACKER_PORT.
        priority: higher ones get a device sooner.
        timeout: seconds that the session lasts at most; 0 for any.

    Raises:
        RPCError: if there is no tracker, or no such device.
    """
    return _asked(host, port).request(device_key, priority, timeout)


def check_remote(device_key: str, host: str | None = None, port: int | None = None, priority: int = 100, timeout: int = 10) -> bool:
    """Whether a tracker has a device that is free within `timeout` seconds."""
    try:
        fleet_at(host, port).lend(device_key, priority, timeout, timeout).close()
    except TuningError as error:
        logger.info("%s", error)
        return False
    return True


def _asked(host: str | None, port: int | None) -> TrackerSession:
    try:
        return TrackerSession(fleet_at(host, port))
    except TuningError as error:
        raise RPCError(str(error)) from None
