"""Where the devices of a fleet are, as options of the command line."""

from __future__ import annotations

from .model import TVMCException


def tracker_host_port_from_cli(rpc_tracker_str: str | None) -> tuple[str | None, int | None]:
    """`host:port` as both; a port is 9090 if it isn't said.

    Raises:
        TVMCException: for a port that is no number.
    """
    if not rpc_tracker_str:
        return None, None
    host, _, port = rpc_tracker_str.partition(":")
    if port and not port.isdigit():
        raise TVMCException(f"--rpc-tracker {rpc_tracker_str}: expected host:port")
    return host, int(port or 9090)


def check_tracker(hostname: str | None, key: str | None) -> None:
    """Refuse a tracker without a key of its devices, and a key without a tracker.

    Raises:
        TVMCException: for one of them alone.
    """
    if bool(hostname) != bool(key):
        raise TVMCException("--rpc-tracker HOST:PORT and --rpc-key KEY go together: where devices are, and which of them")
