"""What Dask calls on workers, by its name: functions of bytes that give bytes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..errors import TuningError

if TYPE_CHECKING:
    from .station import Station

# Where workers announce what they lend.
LOANS = "tensorexpr-loans"
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


def lend(name: str, seconds: float) -> None:
    """Lend a device under a name until its client gives it up, or for some seconds; see `loans.Loans.lend`."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def is_wanted() -> bool:
        # Dask lets a call go on that its client has given up, or whose client is gone
        state = worker.state.tasks.get(key)
        return state is not None and state.state == "executing"

    _station().loans.lend(name, seconds, is_wanted, lambda: worker.log_event(LOANS, {"loan": name, "worker": worker.address}))


async def say(name: str, data: bytes) -> bytes:
    """The answer to a message of the client that has a loan."""
    return await asyncio.to_thread(_station().loans.answer, name, data)


# Coroutines: those Dask runs without the client waiting for them.
async def start(data: bytes) -> None:
    """Begin to get ready for a subject, without waiting."""
    _station().start(data)


async def release(digest: str) -> None:
    """End the processes of a subject that nobody measures any more."""
    if _serving:
        _serving[0].release(digest)


def used(dask_worker: Any) -> dict[str, float]:
    """How much of each resource of the worker is in use; the argument is Dask's."""
    state = dask_worker.state
    return {name: total - state.available_resources[name] for name, total in state.total_resources.items()}


def describe() -> dict[str, Any] | None:
    """The worker; None if it is none of ours."""
    return _serving[0].describe() if _serving else None
