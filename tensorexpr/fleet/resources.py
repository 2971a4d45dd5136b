"""The names of what workers offer and jobs ask for. Dask gives a job to workers that hold its resource, and to no others."""

from __future__ import annotations

from collections.abc import Iterable

from .. import __version__

# The version is part of every name: a worker of another one is offered no job, since it may make other programs of a trace.
_PREFIX = f"tensorexpr-{__version__}"
BUILD = f"{_PREFIX}:build"
_RUN = f"{_PREFIX}:run:"


def run_on(key: str) -> str:
    """The resource of a device with a key."""
    return f"{_RUN}{key}"


def offered(cores: int, keys: Iterable[str], devices: int) -> dict[str, float]:
    """What a worker offers that compiles on so many cores and has so many devices, each known by any of the keys."""
    return {BUILD: float(cores), **({run_on(key): float(devices) for key in keys} if devices else {})}


def keys_of(resources: Iterable[str]) -> list[str]:
    """The keys of the devices among some resources."""
    return sorted(name.removeprefix(_RUN) for name in resources if name.startswith(_RUN))


def other_versions(resources: Iterable[str]) -> list[str]:
    """The versions of tensorexpr that offer some of these resources, without this one."""
    ours = {name for name in resources if name.startswith("tensorexpr-") and not name.startswith(_PREFIX + ":")}
    return sorted({name.removeprefix("tensorexpr-").partition(":")[0] for name in ours})
