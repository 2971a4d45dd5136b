"""`python -m tensorexpr rpc_tracker`, `rpc_server` and `query_rpc_tracker`: TVM's names for a scheduler, a worker and what is there."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Callable

from ..errors import TuningError
from ..fleet.security import security_of
from ..fleet.serve import WorkerOptions, serve
from ..fleet.shared import address_of
from ..rpc.server import Server
from ..rpc.tracker import Tracker, connect_tracker

_PORT, _PORT_END = 9190, 9199


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of one of the three subcommands, by the parser's name."""
    name = parser.prog.split()[-1]
    if name == "query_rpc_tracker":
        parser.add_argument("--host", help="of the tracker; TVM_TRACKER_HOST")
        parser.add_argument("--port", type=int, help="its port; TVM_TRACKER_PORT")
        return
    _add_listening(parser, _PORT if name == "rpc_tracker" else 9090, _PORT_END)
    if name == "rpc_server":
        parser.add_argument("--tracker", metavar="HOST:PORT", help="where to register; the server then is a worker of its fleet")
        parser.add_argument("--key", default="", help="what the device is known by; without a tracker what sessions have to know")
    _add_security(parser)


def _add_listening(parser: argparse.ArgumentParser, port: int, end: int) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on; this machine alone")
    parser.add_argument("--port", type=int, default=port, help=f"the first port to try; {port}")
    parser.add_argument("--port-end", type=int, default=end, help=f"the end of the ports to try; {end}")
    parser.add_argument("--silent", action="store_true", help="say less")


def _add_security(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tls-ca-file", help="certificates to trust, as of Dask")
    parser.add_argument("--tls-cert", help="own certificate")
    parser.add_argument("--tls-key", help="its key")
    parser.add_argument("--insecure", action="store_true", help="listen on an address that others reach, without TLS")


def _track(options: argparse.Namespace) -> int:
    files = (options.tls_ca_file, options.tls_cert, options.tls_key)
    with Tracker(options.host, options.port, options.port_end, options.silent, True, None, *files, options.insecure) as tracker:
        print(f"tracker at {tracker.address}", flush=True)
        _wait()
    return 0


def _serve(options: argparse.Namespace) -> int:
    if options.tracker:
        host, _, port = str(options.tracker).rpartition(":")
        if not host or not port.isdigit():
            raise TuningError(f"rpc_server: --tracker is {options.tracker!r}; it takes HOST:PORT")
        security = security_of(options.tls_ca_file, options.tls_cert, options.tls_key)
        named = None if options.host in ("0.0.0.0", "::", "127.0.0.1", "localhost") else options.host
        address = address_of(host if security is None else f"tls://{host}", port)
        keys = [options.key] if options.key else []
        return serve(WorkerOptions(address, keys, host=named, jobs=1, security=security, insecure=options.insecure))
    with Server(options.host, options.port, options.port_end, key=options.key, silent=options.silent) as server:
        print(f"server at {server.host}:{server.port}", flush=True)
        _wait()
    return 0


def _query(options: argparse.Namespace) -> int:
    host, _, port = address_of(options.host, options.port).rpartition(":")
    print(connect_tracker(host, int(port)).text_summary(), end="")
    return 0


def _wait() -> None:
    """Until the process is told to end."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {"query_rpc_tracker": _query, "rpc_server": _serve, "rpc_tracker": _track}


def run(options: argparse.Namespace) -> int:
    """Run the one that was chosen; returns the exit code."""
    return _COMMANDS[options.command](options)
