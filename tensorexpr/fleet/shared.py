"""Fleets by the addresses that TVM's names take, one for each address however often it is named."""

from __future__ import annotations

import atexit
import os
from pathlib import Path

from ..errors import TuningError
from ..tune.measure.places import OpenRunning, Running, Subject
from ..tune.measure.results import MeasureOptions
from ..tune.measure.workers import Workers
from .fleet import Fleet

_ANY_ADDRESS = ("0.0.0.0", "::", "")
_known: dict[str, Fleet] = {}


def address_of(host: str | None, port: int | str | None) -> str:
    """A scheduler's address.

    Args:
        host: with a scheme or without; what listens on any address is reached on this machine. None for TVM_TRACKER_HOST.
        port: None for TVM_TRACKER_PORT.

    Raises:
        TuningError: if neither says it.
    """
    host, port = host or os.environ.get("TVM_TRACKER_HOST"), port or os.environ.get("TVM_TRACKER_PORT")
    if not host or not port:
        raise TuningError("the tracker's host and port are given, or come from TVM_TRACKER_HOST and TVM_TRACKER_PORT")
    scheme, _, name = host.rpartition("://")
    name = "127.0.0.1" if name in _ANY_ADDRESS else name
    return f"{scheme or 'tcp'}://{f'[{name}]' if ':' in name else name}:{int(port)}"


def fleet_at(host: str | None, port: int | str | None) -> Fleet:
    """The fleet whose scheduler has an address; connected when it is first named. Encrypted connections follow Dask's configuration.

    Raises:
        TuningError: if no scheduler answers.
    """
    address = address_of(host, port)
    found = _known.get(address)
    if found is None or found.is_closed:
        if not _known:
            atexit.register(_close)
        found = _known[address] = Fleet(address)
    return found


def running_at(host: str | None, port: int | str | None, key: str, priority: int = 0) -> OpenRunning:
    """What opens a device with a key, at a scheduler that is asked only then."""

    def opened(subject: Subject, options: MeasureOptions, folder: Path, workers: Workers | None = None) -> Running:
        return fleet_at(host, port).runner(key, priority=priority).open(subject, options, folder, workers)

    return opened


def leave(address: str) -> None:
    """Close the fleet of an address, if there is one."""
    if (fleet := _known.pop(address, None)) is not None:
        fleet.close()


def _close() -> None:
    for address in list(_known):
        leave(address)
