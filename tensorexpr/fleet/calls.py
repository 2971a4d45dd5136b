"""What Dask calls on workers, by its name: functions of bytes that give bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import TuningError

if TYPE_CHECKING:
    from .station import Station

_serving: list[Station] = []


def serve_with(station: Station) -> None:
    """Let a station serve the calls of this process."""
    _serving[:] = [station]


def _station() -> Station:
    if not _serving:
        raise TuningError("this Dask worker doesn't measure: start workers with `python -m tensorexpr worker SCHEDULER`")
    return _serving[0]


def subject(data: bytes) -> bytes:
    """A subject, as a result that Dask carries to the workers that need it."""
    return data


def build(data: bytes, job: bytes) -> bytes:
    """Compile a program; see `messages.build_job`."""
    return _station().build(data, job)


def run(data: bytes, job: bytes) -> bytes:
    """Run candidates; see `messages.run_job` and `messages.interleave_job`."""
    return _station().run(data, job)


# Coroutines: those Dask runs without the client waiting for them.
async def start(data: bytes) -> None:
    """Begin to get ready for a subject, without waiting."""
    _station().start(data)


async def release(digest: str) -> None:
    """End the processes of a subject that nobody measures any more."""
    if _serving:
        _serving[0].release(digest)


def describe() -> dict[str, Any] | None:
    """The worker; None if it is none of ours."""
    return _serving[0].describe() if _serving else None
