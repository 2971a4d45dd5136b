"""How long a worker stays."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable

import pytest

from tensorexpr.fleet import serve
from tensorexpr.fleet.serve import WorkerOptions


class Nanny:
    """One that is over at once; what is called when it starts and ends says how."""

    def __init__(self, starts: Callable[[], None], ends: Callable[[], None]) -> None:
        self._starts, self._ends = starts, ends

    async def __aenter__(self) -> Nanny:
        self._starts()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._ends()

    async def finished(self) -> None:
        """It is."""


def served(monkeypatch: pytest.MonkeyPatch, nannies: list[Nanny], port: int, retry_s: float) -> int:
    monkeypatch.setattr(serve, "_nanny", lambda *_: nannies.pop(0))
    options = WorkerOptions(f"tcp://127.0.0.1:{port}", retry_s=retry_s)
    return asyncio.run(asyncio.wait_for(serve._serve(options, "127.0.0.1", {}), 60))


def nothing() -> None:
    """Happens."""


def test_a_worker_whose_nanny_gives_up_is_started_again_as_long_as_there_is_a_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """A nanny ends when its worker takes too long to start again: where workers were killed on a busy machine, all were lost."""
    scheduler = socket.create_server(("127.0.0.1", 0))
    nannies = [Nanny(nothing, nothing), Nanny(nothing, nothing), Nanny(nothing, scheduler.close), Nanny(nothing, nothing)]
    assert served(monkeypatch, nannies, scheduler.getsockname()[1], retry_s=0.0) == 0
    assert len(nannies) == 1


def test_a_worker_that_takes_too_long_to_start_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask's nanny then fails an assertion, with which the command ended."""

    def fails() -> None:
        raise AssertionError("Status.starting")

    nannies = [Nanny(fails, nothing), Nanny(lambda: os.kill(os.getpid(), signal.SIGTERM), nothing), Nanny(nothing, nothing)]
    assert served(monkeypatch, nannies, 1, retry_s=3600.0) == 0
    assert len(nannies) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_that_still_looks_for_its_scheduler_ends_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Ctrl-C was heard when the nanny had given up, half a minute later."""
    closed = []

    class Waiting(Nanny):
        async def __aenter__(self) -> Nanny:
            os.kill(os.getpid(), number)
            await asyncio.sleep(3600)
            return self

        async def close(self) -> None:
            closed.append(True)

    assert served(monkeypatch, [Waiting(nothing, nothing)], 1, retry_s=3600.0) == 0
    assert closed == [True]
