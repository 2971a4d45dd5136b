"""Whom a fleet trusts: Dask's TLS options, and addresses that only this machine reaches.

Whoever reaches a Dask scheduler or worker can run code there. Without TLS only this machine is listened on, unless a user says otherwise.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..errors import TuningError


def distributed_package() -> Any:
    """The package `distributed`.

    Raises:
        TuningError: if it isn't there.
    """
    try:
        import distributed
    except ImportError as error:
        raise TuningError(f'a fleet needs Dask: pip install "tensorexpr[distributed]" ({error})') from error
    return distributed


def security_of(ca_file: str | None, cert: str | None, key: str | None) -> Any:
    """Dask's `Security` of the files of TLS; None without any.

    Raises:
        TuningError: if only some of them are given, or one isn't there.
    """
    given = {"--tls-ca-file": ca_file, "--tls-cert": cert, "--tls-key": key}
    missing = [name for name, value in given.items() if not value]
    if len(missing) == len(given):
        return None
    if missing:
        raise TuningError(f"TLS takes {', '.join(given)}; {', '.join(missing)} is missing")
    for name, value in given.items():
        if not Path(str(value)).is_file():
            raise TuningError(f"there is no file {value}, which {name} names")
    options = {
        **{"tls_ca_file": ca_file, "require_encryption": True},
        **{f"tls_{role}_{what}": value for role in ("worker", "client", "scheduler") for what, value in (("cert", cert), ("key", key))},
    }
    return distributed_package().Security(**options)


def host_of(address: str) -> str:
    """The host of an address such as tcp://10.0.0.5:8786.

    Raises:
        TuningError: for what is no such address.
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if not parts.hostname:
        raise TuningError(f"{address!r} is no address of a scheduler; it is written as tcp://HOST:PORT, or tls://HOST:PORT")
    return parts.hostname


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_listening(host: str, security: Any, insecure: bool, who: str = "worker") -> None:
    """Refuse to listen where others could run code.

    Raises:
        TuningError: for an address that other machines reach, without TLS and without `insecure`.
    """
    if security is None and not insecure and not is_loopback(host):
        raise TuningError(
            f"a {who} on {host or 'all interfaces'} lets everyone who reaches it run code on this machine: give --tls-ca-file, --tls-cert "
            "and --tls-key, or --host 127.0.0.1 for this machine alone, or --insecure if the network is trusted"
        )
